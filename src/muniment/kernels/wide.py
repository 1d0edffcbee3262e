"""Sixteen bytes at a time, by LLVM's vectors, for which Numba has no words.

Places are addresses: whoever reads sees to it that sixteen bytes are there, and whoever writes that
those behind the wanted ones may be overwritten. A mask has a bit for each of the sixteen bytes.
Numba keeps compiled code while the file of its loops is the same: a change here asks for one there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "SIZE", "bits", "copy", "copy_cells", "count_row_tags", "find_beyond_ascii", "find_ends",
    "find_markup", "find_odd", "find_row_ends", "find_spaces", "find_tags", "find_time_end",
    "first", "place", "word",
]  # fmt: skip

SIZE = 16

_BYTE, _LONG = ir.IntType(8), ir.IntType(64)
_OCTETS = ir.VectorType(_BYTE, SIZE)


def _load(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _OCTETS.as_pointer()), align=1)


def _all(byte: int) -> Any:
    return ir.Constant(_OCTETS, [byte] * SIZE)


def _bits(builder: Any, found: Any) -> Any:
    return builder.zext(builder.bitcast(found, ir.IntType(SIZE)), _LONG)


def _is_one_of(builder: Any, octets: Any, wanted: bytes) -> Any:
    found = builder.icmp_unsigned("==", octets, _all(wanted[0]))
    for byte in wanted[1:]:
        found = builder.or_(found, builder.icmp_unsigned("==", octets, _all(byte)))
    return found


def _is_outside(builder: Any, octets: Any, low: int, high: int) -> Any:
    """Whether bytes are less than one or more than another."""
    return builder.icmp_unsigned(">", builder.sub(octets, _all(low)), _all(high - low))


def _finder(test: Callable[[Any, Any], Any], doc: str) -> Any:
    """Return a function from an address to the mask of the bytes that a test finds."""

    def find(_typing: Any, _address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            return _bits(builder, test(builder, _load(builder, given[0])))

        return types.uint64(types.uint64), generate

    find.__doc__ = doc
    return intrinsic(find)


find_ends = _finder(
    lambda builder, octets: builder.icmp_unsigned(">=", octets, _all(0xFD)),
    "Find the ends of cells and rows, and NULLs.",
)
find_row_ends = _finder(
    lambda builder, octets: _is_one_of(builder, octets, b"\xfd"),
    "Find the ends of rows.",
)
find_beyond_ascii = _finder(
    lambda builder, octets: builder.icmp_unsigned(">=", octets, _all(0x80)),
    "Find the bytes beyond ASCII.",
)
find_spaces = _finder(
    lambda builder, octets: _is_one_of(builder, octets, b" "),
    "Find spaces.",
)
find_tags = _finder(
    lambda builder, octets: _is_one_of(builder, octets, b"<"),
    "Find where tags begin.",
)
find_odd = _finder(
    lambda builder, octets: builder.or_(
        _is_outside(builder, octets, 0x20, 0x7E), _is_one_of(builder, octets, b"\"&'<>\\")
    ),
    "Find what text in XML does not have as it is: control characters, markup, escapes.",
)
find_markup = _finder(
    lambda builder, octets: builder.or_(
        _is_outside(builder, octets, 0x20, 0x7F), _is_one_of(builder, octets, b"&<\\")
    ),
    "Find what is more than text in XML: tags, references, escapes, what is not ASCII.",
)

find_time_end = _finder(
    lambda builder, octets: builder.or_(
        _is_outside(builder, octets, 0x21, 0x7E), _is_one_of(builder, octets, b"&<Z\\")
    ),
    "Find what does not stand within a date or a time.",
)


@intrinsic
def place(_typing: Any, array: Any) -> Any:
    """Return the address of an array."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, given[0])
        return builder.ptrtoint(made.data, _LONG)

    return types.uint64(array), generate


@intrinsic
def copy(_typing: Any, _source: Any, _target: Any) -> Any:
    """Copy the bytes at one address to another."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        pointer = builder.inttoptr(given[1], _OCTETS.as_pointer())
        builder.store(_load(builder, given[0]), pointer, align=1)
        return ir.Constant(_LONG, 0)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def copy_cells(_typing: Any, _source: Any, _target: Any) -> Any:
    """Copy COPY text as a batch has it; return the mask of its backslashes."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        octets = _load(builder, given[0])
        cells = builder.select(_is_one_of(builder, octets, b"\t"), _all(0xFF), octets)
        rows = builder.select(_is_one_of(builder, octets, b"\n"), _all(0xFD), cells)
        builder.store(rows, builder.inttoptr(given[1], _OCTETS.as_pointer()), align=1)
        return _bits(builder, _is_one_of(builder, octets, b"\\"))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def first(_typing: Any, _mask: Any) -> Any:
    """Return the place of the first bit of a mask that has one."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def count_row_tags(_typing: Any, _address: Any) -> Any:
    """Return how many tags begin here that begin with an r, given one byte more."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        after = builder.add(given[0], ir.Constant(_LONG, 1))
        begins = _is_one_of(builder, _load(builder, given[0]), b"<")
        follows = _is_one_of(builder, _load(builder, after), b"r")
        return builder.ctpop(_bits(builder, builder.and_(begins, follows)))

    return types.uint64(types.uint64), generate


@intrinsic
def bits(_typing: Any, _number: Any) -> Any:
    """Return how many bits a number has."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        zeros = builder.ctlz(given[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(_LONG, 64), zeros)

    return types.uint64(types.uint64), generate


@intrinsic
def word(_typing: Any, _address: Any) -> Any:
    """Return the eight bytes at an address as a number."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.load(builder.inttoptr(given[0], _LONG.as_pointer()), align=1)

    return types.uint64(types.uint64), generate
