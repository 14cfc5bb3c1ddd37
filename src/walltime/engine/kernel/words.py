"""Memory that compiled code knows by its address: int64 and float64, at a number of words after the address, and records."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic


def _loader(kind: Any) -> Any:
    """A function (address, place) that gives the value of this type at a number of words after the address."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        return builder.load(builder.gep(pointer, [args[1]]))

    return codegen


def _storer(kind: Any) -> Any:
    """A function (address, place, value) that stores a value of this type at a number of words after the address."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], kind.as_pointer())
        builder.store(args[2], builder.gep(pointer, [args[1]]))
        return context.get_dummy_value()

    return codegen


@intrinsic
def _word_at(typingctx, address, place):
    return types.int64(types.int64, types.int64), _loader(ir.IntType(64))


@intrinsic
def _number_at(typingctx, address, place):
    return types.float64(types.int64, types.int64), _loader(ir.DoubleType())


@intrinsic
def _set_word(typingctx, address, place, value):
    return types.none(types.int64, types.int64, types.int64), _storer(ir.IntType(64))


@intrinsic
def _set_number(typingctx, address, place, value):
    return types.none(types.int64, types.int64, types.float64), _storer(ir.DoubleType())


word_at: Any = _word_at
number_at: Any = _number_at
set_word: Any = _set_word
set_number: Any = _set_number


def records_at(dtype: np.dtype[np.void]) -> Any:
    """A function (address, place) for compiled code that gives the record of this type at this place of an array, to read and to write."""
    kind = from_dtype(dtype)

    def codegen(context, builder, signature, args):
        byte = builder.add(args[0], builder.mul(args[1], ir.Constant(ir.IntType(64), dtype.itemsize)))
        return builder.inttoptr(byte, context.get_value_type(kind))

    @intrinsic
    def record_at(typingctx, address, place):
        return kind(types.int64, types.int64), codegen

    return record_at


def address_of(record: Any, field: str | None = None) -> int:
    """Where a record is in memory, or one of its fields."""
    begin: int = record.__array_interface__["data"][0]
    return begin + (0 if field is None else record.dtype.fields[field][1])
