"""Complex values of row XML in bulk: the inside of a cell becomes what a batch holds (sql.batch).

From the innermost values outwards, expressions put structure bytes where tags were, until only the
cells' own tags are left and rows of plain cells are read. An expression matches nothing but the
usual spelling (parts in order, no attributes). What it does not match keeps its tags, and whoever
counts them notices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from muniment.siard.rows import in_utc
from muniment.sql.batch import CLOSE, ITEM, OPEN
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["MISSING", "nested_cells"]

MISSING = b"\xf6"  # a part that is NULL, until NULL cells have been counted
_PART = b"\xf5"  # begins a part of a UDT, until those that are missing have been marked
_ELEMENT = re.compile(rb"<a(\d++)>")
_ELEMENT_END = re.compile(rb"</a\d++>")
_UTC_ELEMENT_END = re.compile(rb"Z?+</a\d++>")
_GAPS = 64  # places of an array for each element that is there; a larger number may be an attack
_numbers: list[bytes] = []

Step = Callable[[bytes], bytes]


def nested_cells(shapes: Sequence[Shape]) -> Step | None:
    """Return what rewrites the complex cells of rows; None if tags do not tell shapes apart.

    A tag may stand for plain values here and for one kind of complex values there.
    """
    complex_by_tag: dict[bytes, Struct | Array] = {}
    plain: set[bytes] = set()
    for tag, shape in _tagged(shapes):
        if isinstance(shape, Leaf):
            plain.add(tag)
        elif complex_by_tag.setdefault(tag, shape) != shape or not any(_inside(shape)):
            return None
    inner_first = sorted(complex_by_tag.items(), key=lambda each: _depth(each[1]))
    steps = [
        _array_step(tag, shape, tag in plain)
        if isinstance(shape, Array)
        else _struct_step(tag, shape, tag in plain)
        for tag, shape in inner_first
    ]

    def rewritten(xml: bytes) -> bytes:
        for step in steps:
            xml = step(xml)
        return xml

    return rewritten


def _tagged(shapes: Sequence[Shape]) -> Iterator[tuple[bytes, Shape]]:
    """Yield all shapes, inner ones too, with the name of their elements; <a1>, <a2> … are "a"."""
    for number, shape in enumerate(shapes, 1):
        yield b"c%d" % number, shape
        yield from _inside(shape)


def _inside(shape: Shape) -> Iterator[tuple[bytes, Shape]]:
    parts: list[tuple[bytes, Shape]] = []
    if isinstance(shape, Array):
        parts = [(b"a", shape.element)]
    elif isinstance(shape, Struct):
        parts = [(b"u%d" % number, part) for number, part in enumerate(shape.parts, 1)]
    for tag, part in parts:
        yield tag, part
        yield from _inside(part)


def _depth(shape: Shape) -> int:
    return 1 + max((_depth(part) for _, part in _inside(shape)), default=0)


def _array_step(tag: bytes, shape: Array, or_plain: bool) -> Step:
    start, end = _tags(tag)
    some = rb"(?=<a)" if or_plain else b""  # without elements it could be an empty text
    element = _text(shape.element) + _zone(shape.element)
    text = rb"(?:<a(?P<n>\d++)>%b</a(?P=n)>)*+" % element
    pattern = re.compile(rb"%b%b(?P<all>%b)%b" % (start, some, text, end))
    ending = _UTC_ELEMENT_END if in_utc(shape.element) else _ELEMENT_END

    def rewritten(match: re.Match[bytes]) -> bytes:
        content = match["all"]
        numbers = _ELEMENT.findall(content)
        content = _ELEMENT.sub(b"", content)
        if numbers == _first_numbers(len(numbers)):
            content = ending.sub(ITEM, content)
        else:
            content = _with_gaps(ending.split(content), [*map(int, numbers)])
            if not content:
                return match[0]
        first, last = match.span("all")
        whole, begin = match[0], match.start()
        return whole[: first - begin] + OPEN + content + CLOSE + whole[last - begin :]

    return lambda xml: pattern.sub(rewritten, xml)


def _with_gaps(elements: list[bytes], numbers: list[int]) -> bytes:
    """Return an array with elements that are NULL; nothing if its numbers are unusual."""
    last = numbers[-1]
    if last > _GAPS * len(numbers) or numbers[0] < 1 or sorted(set(numbers)) != numbers:
        return b""
    filled = [MISSING] * last
    for number, element in zip(numbers, elements, strict=False):  # the last one is what follows
        filled[number - 1] = element
    return b"".join([element + ITEM for element in filled])


def _struct_step(tag: bytes, shape: Struct, or_plain: bool) -> Step:
    start, end = _tags(tag)
    some = rb"(?=<u)" if or_plain else b""
    # The ">" shows that a part is there, though it may be empty.
    parts = [
        rb"(?:<u%d(>%b)%b</u%d>)?+" % (n, _text(part), _zone(part), n)
        for n, part in enumerate(shape.parts, 1)
    ]
    shift = 1 if tag == b"a" else 0  # its number is the first group
    pattern = re.compile(start + some + b"".join(parts) + end)
    groups = b"".join(b"%b\\g<%d>" % (_PART, n + shift) for n in range(1, len(parts) + 1))
    opening, closing = (rb"<a\g<1>>", rb"</a\g<1>>") if shift else (start, end)
    template = opening + OPEN + groups + ITEM + CLOSE + closing

    def rewritten(xml: bytes) -> bytes:
        xml = pattern.sub(template, xml).replace(_PART + ITEM, _PART + MISSING + ITEM)
        while _PART * 2 in xml:  # each time every second one of several
            xml = xml.replace(_PART * 2, _PART + MISSING + _PART)
        xml = xml.replace(_PART + b">", _PART)
        return xml.replace(OPEN + _PART, OPEN).replace(_PART, ITEM)

    return rewritten


def _tags(tag: bytes) -> tuple[bytes, bytes]:
    """The expressions for the tags around a value; an element of an array has its number."""
    if tag == b"a":
        return rb"<a(?P<own>\d++)>", rb"</a(?P=own)>"
    return b"<%b>" % tag, b"</%b>" % tag


def _text(shape: Shape) -> bytes:
    """What a part holds: complex values have been rewritten, others never begin as they do."""
    if not isinstance(shape, Leaf):
        return rb"\xfa[^<]*+"
    if shape.type.kind is Kind.BINARY:
        return rb"(?:[0-9A-F]{2})*+"
    return rb"[^<Z\s\xfa]*+" if in_utc(shape) else rb"[^<\xfa]*+"


def _zone(shape: Shape) -> bytes:
    return rb"Z?+" if in_utc(shape) else b""


def _first_numbers(count: int) -> list[bytes]:
    while len(_numbers) < count:
        _numbers.append(b"%d" % (len(_numbers) + 1))
    return _numbers[:count]
