"""Numbers in memory that compiled code knows by its address: int64 and float64, at a number of words after the address."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["number_at", "set_number", "set_word", "word_at"]


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
