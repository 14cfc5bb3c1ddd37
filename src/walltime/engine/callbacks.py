"""Compiled functions that the loop calls by their address, so that one compiled loop serves every order and every predictor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from walltime.engine.jit import callback
from walltime.engine.learning import nothing_learned

SCORE = types.float64(types.int64, types.int64, types.int64, types.int64)
"""Signature of a compiled user order: (wait, requested, procs, submit) -> score."""

_config: Any = numba.config
_without_compiler: dict[int, Callable[..., Any]] = {}
"""Functions by address where nothing is compiled (NUMBA_DISABLE_JIT)."""


@functools.lru_cache(maxsize=64)
def compile_score(arguments: tuple[str, ...], function: Callable[..., float]) -> Any:
    """Compile a user's order for `call_score`; keep the result alive as long as its `.address` is used.

    `arguments` are the names, among wait, requested, procs and submit, that the function takes. A division by zero gives
    infinity or NaN. Raises whatever Numba raises where the function cannot be compiled.
    """
    inner = numba.njit(nogil=True, error_model="numpy")(function)
    names: dict[str, Any] = {"inner": inner}
    exec(f"def score(wait, requested, procs, submit):\n    return float(inner({', '.join(arguments)}))", names)
    return numba.cfunc(SCORE)(names["score"])


@functools.cache
def learning_type() -> Any:
    """Numba's type of what a predictor remembers."""
    return typeof(nothing_learned())


@functools.cache
def compile_predict(function: Callable[..., float]) -> int:
    """The address of a predictor's (learning, job, now) -> seconds, -1 for none, compiled; for `call_predict`."""
    return _address(types.float64, function)


@functools.cache
def compile_notice(function: Callable[..., int]) -> int:
    """The address of (learning, job, now) -> 0, which notes a start or an end, compiled; for `call_notice`."""
    return _address(types.int64, function)


def _address(returns: Any, function: Callable[..., Any]) -> int:
    if not _config.DISABLE_JIT:
        return callback(returns(learning_type(), types.int64, types.int64), function)
    _without_compiler[id(function)] = function
    return id(function)


def _caller(returns: Any) -> Any:
    """A function (address, arguments...) that calls what is compiled there."""

    def codegen(context, builder, signature, args):
        takes = [context.get_value_type(argument) for argument in signature.args[1:]]
        pointer = builder.inttoptr(args[0], ir.FunctionType(context.get_value_type(returns), takes).as_pointer())
        return builder.call(pointer, args[1:])

    return codegen


@intrinsic
def _call_score(typingctx, address, wait, requested, procs, submit):
    return types.float64(types.int64, types.int64, types.int64, types.int64, types.int64), _caller(types.float64)


@intrinsic
def _call_predict(typingctx, address, learning, job, now):
    return types.float64(types.int64, learning, types.int64, types.int64), _caller(types.float64)


@intrinsic
def _call_notice(typingctx, address, learning, job, now):
    return types.int64(types.int64, learning, types.int64, types.int64), _caller(types.int64)


def _call_without_compiler(address, *arguments):
    return _without_compiler[int(address)](*arguments)


call_score: Any = _call_score
call_predict: Any = _call_without_compiler if _config.DISABLE_JIT else _call_predict
call_notice: Any = _call_without_compiler if _config.DISABLE_JIT else _call_notice
