"""Memory that compiled code reads and writes by its address: int64, float64 and records."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic


def _access(kind: Any, value: Any) -> tuple[Any, Any]:
    """Return functions for compiled code that load and store a value of a type, a number of words after an address."""

    def pointer(builder, args):
        return builder.gep(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    def load(context, builder, signature, args):
        return builder.load(pointer(builder, args))

    def store(context, builder, signature, args):
        builder.store(args[2], pointer(builder, args))
        return context.get_dummy_value()

    @intrinsic
    def value_at(typingctx, address, place):
        return value(types.int64, types.int64), load

    @intrinsic
    def set_value(typingctx, address, place, new):
        return types.none(types.int64, types.int64, value), store

    return value_at, set_value


word_at, set_word = _access(ir.IntType(64), types.int64)
number_at, set_number = _access(ir.DoubleType(), types.float64)


def records_at(dtype: np.dtype[np.void]) -> Any:
    """Return a function (address, place) for compiled code that returns the record with this index in an array of this type."""
    kind = from_dtype(dtype)

    def codegen(context, builder, signature, args):
        byte = builder.add(args[0], builder.mul(args[1], ir.Constant(ir.IntType(64), dtype.itemsize)))
        return builder.inttoptr(byte, context.get_value_type(kind))

    @intrinsic
    def record_at(typingctx, address, place):
        return kind(types.int64, types.int64), codegen

    return record_at


def address_of(record: Any, field: str | None = None) -> int:
    """Return the address of a record, or of one of its fields."""
    begin: int = record.__array_interface__["data"][0]
    return begin + (0 if field is None else record.dtype.fields[field][1])
