"""Cells as pages show them: every value knows its kind, its text, and where it leads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from muniment.errors import MunimentError
from muniment.query.values import json_value, with_zone
from muniment.siard.lobs.location import parse_location
from muniment.sql.batch import NULL, OPEN, REF, cell_value, parts_of
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["Cell", "archived_cell", "object_cell", "size_text", "value_cell"]

_LONGEST = 200  # characters of a value in a table
THUMBNAILS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"}
_THUMBNAIL_LIMIT = 4 << 20


@dataclass
class Cell:
    """A value on a page."""

    kind: str  # "null", "text", "number", "truth", "date", "object", "nested", "binary"
    text: str = ""
    cut: bool = False
    href: str = ""
    media: str = ""
    size: int | None = None
    thumbnail: str = ""
    value: Any = None  # for programs

    def as_json(self) -> Any:
        """What the JSON twin of a page holds for this cell."""
        if self.kind == "object":
            return {"size": self.size, "type": self.media, "url": self.href}
        return self.value


def value_cell(value: Any, longest: int = _LONGEST) -> Cell:
    """Return a value that came out of the index."""
    match value:
        case None:
            return Cell("null")
        case bool():
            return Cell("truth", "true" if value else "false", value=value)
        case int() | float() | Decimal():
            plain = json_value(value)
            return Cell("number", str(plain), value=plain)
        case datetime(tzinfo=zone) if zone is not None:
            return Cell("date", json_value(value), value=json_value(value))
        case datetime():
            return Cell("date", value.isoformat(" "), value=value.isoformat())
        case date():
            return Cell("date", value.isoformat(), value=value.isoformat())
        case bytes():
            return _cut(Cell("binary", value.hex().upper(), value=value.hex().upper()), longest)
        case dict() | list():
            plain = json_value(value)
            return _cut(Cell("nested", json.dumps(plain, ensure_ascii=False), value=plain), longest)
    return _cut(Cell("text", str(value), value=str(value)), longest)


def object_cell(size: int | None, media: str | None, href: str) -> Cell:
    """Return a large object, by what is known about it."""
    media = media or "application/octet-stream"
    small = size is not None and size <= _THUMBNAIL_LIMIT
    thumbnail = f"{href}/raw" if media in THUMBNAILS and small else ""
    return Cell("object", f"{media}, {size_text(size)}", href=href, media=media, size=size,
                thumbnail=thumbnail)  # fmt: skip


def archived_cell(cell: bytes, shape: Shape, href: str) -> Cell:
    """Return a cell as the archive holds it, for pages that cannot wait for the index."""
    if cell == NULL:
        return Cell("null")
    if cell.startswith(REF):
        size = _stated_size(cell[1:])
        return Cell("object", size_text(size), href=href, size=size)
    if cell.startswith(OPEN):
        plain = _plain(cell, shape)
        text = json.dumps(plain, ensure_ascii=False)
        return _cut(Cell("nested", text, value=plain), _LONGEST)
    text = cell.decode("utf-8", "surrogatepass").encode("utf-8", "backslashreplace").decode()
    text = with_zone(text, shape)
    return _cut(Cell(_kind(shape), text, value=_typed(text, shape)), _LONGEST)


def _typed(text: str, shape: Shape) -> Any:
    """The value for programs, of the same type as the index will give it."""
    try:
        match shape.type.kind if isinstance(shape, Leaf) else None:
            case Kind.INTEGER:
                return json_value(int(text))
            case Kind.FLOAT:
                return json_value(float(text))
            case Kind.BOOLEAN if text in ("true", "false"):
                return text == "true"
    except ValueError:  # what the archive holds is not what it says; the text stays
        pass
    return text


def _plain(cell: bytes, shape: Shape) -> Any:
    if not cell.startswith(OPEN):
        if cell.startswith(REF):
            return {"object": size_text(_stated_size(cell[1:]))}
        value = cell_value(cell)
        if not isinstance(value, str):
            return value
        return with_zone(value.encode("utf-8", "backslashreplace").decode(), shape)
    parts = list(parts_of(cell))
    match shape:
        case Struct(shapes, names):
            titles = names or tuple(f"u{n}" for n in range(1, len(shapes) + 1))
            return dict(zip(titles, map(_plain, parts, shapes), strict=False))
        case Array(element):
            return [_plain(part, element) for part in parts]
    return None


def _stated_size(reference: bytes) -> int | None:
    try:
        return parse_location(reference).length
    except MunimentError:
        return None


def _kind(shape: Shape) -> str:
    if not isinstance(shape, Leaf):
        return "nested"
    match shape.type.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT:
            return "number"
        case Kind.BOOLEAN:
            return "truth"
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP:
            return "date"
        case Kind.BINARY:
            return "binary"
    return "text"


def _cut(cell: Cell, longest: int) -> Cell:
    if len(cell.text) > longest:
        cell.text, cell.cut = cell.text[: longest - 1] + "…", True
    return cell


def size_text(size: int | None) -> str:
    """Return a number of bytes as people read it.

    >>> size_text(9413), size_text(None)
    ('9.4 kB', 'size unknown')
    """
    if size is None:
        return "size unknown"
    number = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
