"""Calls of C functions of other libraries, by their addresses, out of loops that are compiled.

A change here asks for one in the files of those loops, for the reason that ``wide`` gives.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["function"]


def function(result: int, *arguments: int) -> Any:
    """Return a call of the C function at an address; numbers of so many bits go in and out."""
    places = [ir.IntType(bits) for bits in arguments]

    def call(_typing: Any, _address: Any, _values: Any) -> Any:
        signature = types.int64(types.uint64, types.UniTuple(types.uint64, len(places)))

        def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            address, values = given
            shape = ir.FunctionType(ir.IntType(result), places)
            numbers = [builder.extract_value(values, k) for k in range(len(places))]
            narrow = [
                number if place.width == 64 else builder.trunc(number, place)
                for number, place in zip(numbers, places, strict=True)
            ]
            value = builder.call(builder.inttoptr(address, shape.as_pointer()), narrow)
            return value if result == 64 else builder.sext(value, ir.IntType(64))

        return signature, generate

    return intrinsic(call)
