"""The fragment schemes for parts of an archived database: schema, table, view, col, row, cell, lob,
key and meta.

A place is a group of tagged numbers, ``(s0,t2,c4,r17)``: schema, table, view, routine and key count
from 0 in the order of metadata.xml, columns, rows, UDT fields and array elements from 1, as SIARD
itself counts (L_7.1-0). Numbers in folder names play no part. Ranges of rows and columns are
closed; ranges inside a large object are half-open.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from muniment.identifiers.problems import Problem, Problems

__all__ = ["SCHEMES", "Place", "parse_place"]

Position = str | tuple[str, ...]
Positions = tuple[Position, ...]

_PART = re.compile(r"([stvpk])(0|[1-9][0-9]*)|([crua])([1-9][0-9]*)")
_KEY_VALUE = re.compile(r"0|n?[1-9][0-9]*|x(?:[0-9a-f]{2})+")
_INNER = {"char": (2, 2), "byte": (2, 2), "sec": (2, 2), "msec": (2, 2), "rect": (4, 5)}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a database; UDT fields and array elements are a path inside the cell."""

    schema: int
    table: int | None = None
    view: int | None = None
    routine: int | None = None
    key: int | None = None
    column: int | None = None
    row: int | None = None
    path: tuple[tuple[str, int], ...] = ()


_FIELDS = {
    "s": "schema", "t": "table", "v": "view", "p": "routine", "k": "key", "c": "column", "r": "row",
}  # fmt: skip


def parse_place(group: Position) -> Place:
    """Return the numbers of a checked group; key values are left out."""
    values: dict[str, int] = {}
    path = []
    for part in group:
        letter, number = part[0], part[1:]
        if letter in "ua":
            path.append((letter, int(number)))
        elif letter in _FIELDS and _FIELDS[letter] not in values:
            values[_FIELDS[letter]] = int(number)
        if letter == "k":
            break
    return Place(path=tuple(path), **values)


def _refuse(message: str, code: str = "E_FRAG_SYNTAX") -> Problem:
    return Problem(code, message)


def _group(position: Position) -> tuple[str, ...]:
    if isinstance(position, str):
        raise _refuse(f"{position!r} should be a group in parentheses, such as (s0,t2)").error()
    return tuple(part.lower() for part in position)


def _letters(group: tuple[str, ...]) -> str:
    for part in group:
        if not _PART.fullmatch(part):
            message = (
                f"{part!r} is not a place: a letter of s t v p k with a number from 0, or of "
                "c r u a with a number from 1, without leading zeros"
            )
            raise _refuse(message).error()
    return "".join(part[0] for part in group)


def _ordered(group: tuple[str, ...], shape: re.Pattern[str], problems: Problems | None) -> None:
    """Refuse a group of another shape; in another order it is read, if slips are noted."""
    letters = _letters(group)
    if shape.fullmatch(letters):
        return
    if problems is not None and shape.fullmatch("".join(sorted(letters, key=_RANK.__getitem__))):
        problems.note("D_SIARD_ORDER", f"({','.join(group)}) is not in the order s,t,c,r")
        return
    raise _refuse(f"({','.join(group)}) does not name such a part").error()


_RANK = {letter: rank for rank, letter in enumerate("stvpkcrua")}


def _sorted(group: Position) -> Position:
    if isinstance(group, str):
        return group
    head = [part for part in group if part[0] not in "ua"]
    tail = [part for part in group if part[0] in "ua"]
    return (*sorted(head, key=lambda part: _RANK[part[0]]), *tail)


Check = Callable[[Positions, Problems | None], Positions]


def _single(shape: str) -> Check:
    pattern = re.compile(shape)

    def check(positions: Positions, problems: Problems | None) -> Positions:
        if len(positions) != 1:
            raise _refuse("one group in parentheses is needed").error()
        group = _group(positions[0])
        _ordered(group, pattern, problems)
        return (group,)

    return check


def _range(shape: str, end_shape: str) -> Check:
    """One place, and perhaps the end of a closed range."""
    pattern, end_pattern = re.compile(shape), re.compile(end_shape)

    def check(positions: Positions, problems: Problems | None) -> Positions:
        if len(positions) not in (1, 2):
            raise _refuse("a place is needed, and perhaps the end of a range").error()
        groups = tuple(map(_group, positions))
        _ordered(groups[0], pattern, problems)
        if len(groups) == 2:
            _ordered(groups[1], end_pattern, problems)
            _check_order(groups[0], groups[1])
        return groups

    return check


def _check_order(first: tuple[str, ...], last: tuple[str, ...]) -> None:
    start = {part[0]: int(part[1:]) for part in first}
    if "u" in start or "a" in start:
        raise _refuse("a part of a cell is no corner of a range").error()
    for part in last:
        if int(part[1:]) < start[part[0]]:
            message = f"{part} lies before {part[0]}{start[part[0]]}"
            raise _refuse(message, "E_FRAG_RANGE").error()


def _lob(positions: Positions, problems: Problems | None) -> Positions:
    if len(positions) not in (1, 2):
        raise _refuse("a cell is needed, and perhaps a part of its large object").error()
    groups = tuple(map(_group, positions))
    _ordered(groups[0], _CELL, problems)
    if len(groups) == 2:
        _check_inner(groups[1])
    return groups


def _check_inner(inner: tuple[str, ...]) -> None:
    scheme, *numbers = inner
    least, most = _INNER.get(scheme, (1, 0))
    if not (least <= len(numbers) <= most and all(n.isdigit() for n in numbers)):
        message = f"({','.join(inner)}) is not a part of a large object"
        raise _refuse(message).error()
    ends = [(0, 2), (1, 3)] if scheme == "rect" else [(0, 1)]
    for low, high in ends:
        start, end = int(numbers[low]), int(numbers[high])
        if end < start or (scheme == "rect" and end == start):
            raise _refuse(f"({','.join(inner)}) is empty or reversed", "E_FRAG_RANGE").error()


def _key(positions: Positions, _problems: Problems | None) -> Positions:
    if len(positions) != 1:
        raise _refuse("one group in parentheses is needed").error()
    group = _group(positions[0])
    if len(group) < 4 or _letters(group[:3]) != "stk":
        raise _refuse("a key is written (s0,t2,k0,value)").error()
    for value in group[3:]:
        if not _KEY_VALUE.fullmatch(value):
            message = (
                f"{value!r} is not a key value: a number, n and a number if negative, "
                "or x and the UTF-8 octets in hex"
            )
            raise _refuse(message).error()
    return (group,)


def _collapsed(positions: Positions) -> Positions:
    """Sort the parts, and drop the end of a range that has one element."""
    first, *rest = (_sorted(group) for group in positions)
    if rest and set(rest[0]) <= set(first):
        return (first,)
    return (first, *rest)


def _with_frame(positions: Positions) -> Positions:
    first, *rest = positions
    if rest and not isinstance(rest[0], str):
        inner = rest[0]
        numbers = [str(int(number)) for number in inner[1:]]
        if inner[0] == "rect" and len(numbers) == 4:
            numbers.append("0")
        return (_sorted(first), (inner[0], *numbers))
    return (_sorted(first),)


_CELL = re.compile("stcr[ua]*")

SCHEMES: tuple[tuple[str, str, Check, Callable[[Positions], Positions]], ...] = (
    ("schema", "a schema", _single("s"), _collapsed),
    ("table", "a table", _single("st"), _collapsed),
    ("view", "a view", _single("sv"), _collapsed),
    ("col", "columns", _range("stc", "c"), _collapsed),
    ("row", "rows", _range("str", "r"), _collapsed),
    ("cell", "cells", _range("stcr[ua]*", "cr"), _collapsed),
    ("lob", "a large object or a part of one", _lob, _with_frame),
    ("key", "a row by its key", _key, tuple),
    ("meta", "a definition", _single("s(?:t[ck]?|vc?|p)?"), _collapsed),
)
