"""The entity-relationship diagram: tables as boxes, foreign keys as lines, drawn as SVG.

Tables stand in layers: one that refers to another stands to its left. Within a layer the order
follows the neighbours, so that few lines cross. Groups that nothing connects stand below one
another; tables without any key come last, in a grid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from muniment.sql.model import Schema, Table
from muniment.web.site import OpenArchive
from muniment.web.urls import Urls

__all__ = ["Box", "Diagram", "Line", "draw"]

_LINE, _HEAD, _GAP_X, _GAP_Y, _WIDTH = 18, 30, 90, 26, 230
_MOST_COLUMNS = 14  # in a box
_DETAILED = 30  # tables; in larger diagrams boxes show their keys only
_TALLEST = 14  # boxes in a layer before it is broken into two
_DEEPEST = 7  # layers; longer chains of keys would make a ribbon of the diagram


@dataclass
class Box:
    """A table in the diagram."""

    name: str
    url: str
    focus_url: str
    rows: int
    columns: list[dict[str, object]]
    more: int = 0
    focused: bool = False
    x: float = 0
    y: float = 0
    width: float = _WIDTH

    @property
    def height(self) -> float:
        return _HEAD + _LINE * (len(self.columns) + bool(self.more)) + 8


@dataclass(frozen=True)
class Line:
    """A foreign key in the diagram."""

    path: str
    title: str
    ends: tuple[int, int] = (0, 0)  # the boxes that it joins, by their places in the list


@dataclass
class Diagram:
    """Boxes and lines, and the size of the paper."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    width: float = 0
    height: float = 0


Name = tuple[str, str]


def draw(archive: OpenArchive, focus: str = "", depth: int = 1) -> Diagram:
    """Return the diagram of an archive, or of a table and what is near it."""
    tables = {(s.name, t.name): (s, t) for s, t in archive.tables}
    links = [
        ((s.name, t.name), (k.referenced_schema, k.referenced_table), k.name)
        for s, t in archive.tables
        for k in t.foreign_keys
        if (k.referenced_schema, k.referenced_table) in tables
    ]
    urls = Urls(archive)
    centre = next((n for n, pair in tables.items() if urls.focus_name(*pair) == focus), None)
    if centre is not None:
        near = _near(centre, links, depth)
        tables = {name: pair for name, pair in tables.items() if name in near}
        links = [link for link in links if link[0] in near and link[1] in near]
    detailed = len(tables) <= _DETAILED
    several = len({name[0] for name in tables}) > 1
    boxes = {
        name: _box(archive, *pair, detailed, several, name == centre)
        for name, pair in tables.items()
    }
    _place(boxes, [(a, b) for a, b, _ in links if a != b])
    diagram = Diagram(list(boxes.values()))
    at = {name: number for number, name in enumerate(boxes)}
    diagram.lines = [
        replace(_line(boxes[a], boxes[b], f"{a[1]} → {b[1]} ({key})"), ends=(at[a], at[b]))
        for a, b, key in links
    ]
    diagram.width = max((box.x + box.width for box in diagram.boxes), default=0) + 20
    diagram.height = max((box.y + box.height for box in diagram.boxes), default=0) + 20
    return diagram


def _near(centre: Name, links: list[tuple[Name, Name, str]], depth: int) -> set[Name]:
    near = {centre}
    for _ in range(depth):
        near |= {b for a, b, _ in links if a in near} | {a for a, b, _ in links if b in near}
    return near


def _box(
    archive: OpenArchive, schema: Schema, table: Table, detailed: bool, several: bool, focused: bool
) -> Box:
    urls = Urls(archive)
    primary = set(table.primary_key.columns) if table.primary_key else set()
    foreign = {r.column for key in table.foreign_keys for r in key.references}
    columns: list[dict[str, object]] = [
        {"name": c.name, "type": str(c.type), "pk": c.name in primary, "fk": c.name in foreign}
        for c in table.columns
        if detailed or focused or c.name in primary
    ]
    most = _MOST_COLUMNS if detailed or focused else 2
    return Box(
        f"{schema.name}.{table.name}" if several else table.name,
        urls.table(schema, table),
        urls.focus(schema, table),
        table.rows,
        columns[:most],
        max(0, len(columns) - most),
        focused,
    )


def _place(boxes: dict[Name, Box], links: list[tuple[Name, Name]]) -> None:
    groups = _groups(boxes, links)
    alone = [group[0] for group in groups if len(group) == 1]
    y = 20.0
    for group in (g for g in groups if len(g) > 1):
        own = [(a, b) for a, b in links if a in group and b in group]
        y = _place_group(boxes, _ordered(_layers(group, own), own), y) + _GAP_Y
    if alone:
        across = max(3, int(len(alone) ** 0.5 * 0.9) + 1)
        for start in range(0, len(alone), across):
            some = alone[start : start + across]
            for number, name in enumerate(some):
                boxes[name].x, boxes[name].y = 20 + number * (_WIDTH + 30), y
            y += max(boxes[name].height for name in some) + _GAP_Y


def _groups(names: Iterable[Name], links: list[tuple[Name, Name]]) -> list[list[Name]]:
    """The tables that hang together, the largest group first."""
    beside = defaultdict(set)
    for a, b in links:
        beside[a].add(b)
        beside[b].add(a)
    left, groups = dict.fromkeys(names), []
    while left:
        start = next(iter(left))
        group, waiting = {start: None}, [start]
        while waiting:
            for other in beside[waiting.pop()]:
                if other not in group:
                    group[other] = None
                    waiting.append(other)
        groups.append([name for name in left if name in group])
        for name in group:
            left.pop(name, None)
    return sorted(groups, key=len, reverse=True)


def _layers(group: list[Name], links: list[tuple[Name, Name]]) -> list[list[Name]]:
    """Layers from left to right; lines of a ring that would lead back are ignored."""
    targets = defaultdict(set)
    for a, b in links:
        targets[a].add(b)
    level: dict[Name, int] = {}
    for start in group:  # depth first, without recursion: chains may be long
        stack: list[tuple[Name, bool]] = [(start, False)]
        open_now: set[Name] = set()
        while stack:
            name, leaving = stack.pop()
            if leaving:
                open_now.discard(name)
                below = [level[t] for t in targets[name] if t in level and t not in open_now]
                level[name] = max(below, default=-1) + 1
            elif name not in level and name not in open_now:
                open_now.add(name)
                stack.append((name, True))
                stack += [(t, False) for t in sorted(targets[name]) if t not in level]
    deepest = min(max(level.values()), _DEEPEST - 1)
    layers: list[list[Name]] = [[] for _ in range(deepest + 1)]
    for name in group:
        layers[max(0, deepest - level[name])].append(name)
    return [part for layer in layers for part in _broken(layer)]


def _broken(layer: list[Name]) -> list[list[Name]]:
    return [layer[start : start + _TALLEST] for start in range(0, len(layer), _TALLEST)]


def _ordered(layers: list[list[Name]], links: list[tuple[Name, Name]]) -> list[list[Name]]:
    """The same layers, each in the order of its neighbours' middles."""
    beside = defaultdict(list)
    for a, b in links:
        beside[a].append(b)
        beside[b].append(a)
    for _ in range(4):
        position = {
            name: k / max(1, len(layer)) for layer in layers for k, name in enumerate(layer)
        }
        for layer in layers:
            layer.sort(
                key=lambda name: (
                    sum(position[n] for n in beside[name]) / len(beside[name])
                    if beside[name]
                    else 0.5
                )
            )
            position.update({name: k / max(1, len(layer)) for k, name in enumerate(layer)})
    return layers


def _place_group(boxes: dict[Name, Box], layers: list[list[Name]], top: float) -> float:
    tall = max(sum(boxes[n].height + _GAP_Y for n in layer) for layer in layers)
    for number, layer in enumerate(layers):
        used = sum(boxes[n].height + _GAP_Y for n in layer)
        y = top + (tall - used) / 2
        for name in layer:
            boxes[name].x, boxes[name].y = 20 + number * (_WIDTH + _GAP_X), y
            y += boxes[name].height + _GAP_Y
    return top + tall


def _line(a: Box, b: Box, title: str) -> Line:
    ya, yb = a.y + _HEAD / 2, b.y + _HEAD / 2
    if a is b:
        right = a.x + a.width
        loop = f"M{right:.0f} {ya:.0f} c40 -10 40 {_LINE * 2} 0 {_LINE}"
        return Line(loop, title)
    if a.x + a.width <= b.x:
        xa, xb = a.x + a.width, b.x
    elif b.x + b.width <= a.x:
        xa, xb = a.x, b.x + b.width
    else:  # in the same layer: around the right-hand side
        xa = xb = max(a.x + a.width, b.x + b.width)
        return Line(f"M{xa:.0f} {ya:.0f} C{xa + 50:.0f} {ya:.0f} {xb + 50:.0f} {yb:.0f} "
                    f"{xb:.0f} {yb:.0f}", title)  # fmt: skip
    bend = (xb - xa) / 2
    path = (
        f"M{xa:.0f} {ya:.0f} C{xa + bend:.0f} {ya:.0f} {xb - bend:.0f} {yb:.0f} {xb:.0f} {yb:.0f}"
    )
    return Line(path, title)
