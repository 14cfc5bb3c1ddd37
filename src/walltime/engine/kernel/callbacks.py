"""Compiled functions that the loop calls by their address, so that one compiled loop serves every order and every predictor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic

from walltime.compiled.jit import callback
from walltime.compiled.prediction_memory import PredictorMemory
from walltime.engine.kernel.history import MEASURES, SYSTEM_STATE, history_at, longest_at, system_at
from walltime.engine.kernel.words import number_at, word_at

SCORE = types.float64(types.int64, types.int64, types.int64, types.int64, types.int64, types.int64)
"""Signature of a compiled user order: (facts, job, now, planned, procs, submit) -> score, where `job` is the job's index.

`facts` is the address of int64 words, in this order:

* the address of the function, the address of its table of columns (one row per job), the number of clock changes, the first submission (s)
* the addresses of the order's parameters (float64), of the history, of the longest wait, and of the system state (history.py; 0 for none)
* the clock, as made by interface/orders.py"""
COLUMNS, HISTORY, LONGEST, SYSTEM, FIRST_OFFSET = 1, 5, 6, 7, 8
"""Positions in `facts`: the addresses of the table of columns and of the records of history.py, and the beginning of the clock."""

_config: Any = numba.config
_without_compiler: dict[int, Callable[..., Any]] = {}
"""Functions by address if the compiler is disabled (NUMBA_DISABLE_JIT)."""


@functools.lru_cache(maxsize=64)
def compile_score(
    arguments: tuple[str, ...],
    columns: tuple[str, ...],
    function: Callable[..., float],
    numbers: int = 0,
    keys: tuple[str, ...] = (),
    real: tuple[str, ...] = (),
) -> Any:
    """Compile a user's order for `call_score`; keep the result alive as long as its `.address` is used.

    `arguments`: the function's parameters; `columns`: the parameters that are columns of the table, in this order; `keys`: the columns
    whose history it uses, as in `user_waited`; `real`: the columns of float64. After them the function takes `numbers` float64 values,
    which are read when it is called, so that other values need no new compilation. Division by zero gives infinity or NaN. Raises Numba's
    error if the function cannot be compiled.
    """
    inner = numba.njit(nogil=True, error_model="numpy")(function)
    own = {"wait": "now - submit", "hour": "local_time(facts, now) // 3600 % 24", "weekday": "local_time(facts, now) // 86400 % 7"}
    own |= {"elapsed": "submit - word_at(facts, 3)", "longest": f"longest_at(word_at(facts, {LONGEST}), now)"}
    own |= {name: f"system_at(word_at(facts, {SYSTEM}), {place}, now)" for place, name in enumerate(SYSTEM_STATE)}
    own |= {
        name: f"{'number_at' if name in real else 'word_at'}(word_at(facts, 1), job * {len(columns)} + {place})"
        for place, name in enumerate(columns)
    }
    own |= {
        f"{key}_{measure}": f"history_at(word_at(facts, {HISTORY}), {place}, {kind}, job, now)"
        for place, key in enumerate(keys)
        for kind, measure in enumerate(MEASURES)
    }
    reading = {"history_at": history_at, "longest_at": longest_at, "system_at": system_at, "local_time": local_time}
    names: dict[str, Any] = reading | {"inner": inner, "word_at": word_at, "number_at": number_at}
    values = ", ".join([*(own.get(name, name) for name in arguments), *(f"number_at(word_at(facts, 4), {k})" for k in range(numbers))])
    exec(f"def score(facts, job, now, planned, procs, submit):\n    return 1.0 * inner({values})", names)
    return numba.cfunc(SCORE)(names["score"])


@numba.njit(nogil=True)
def local_time(facts, now):
    """Return the site's local time, s since midnight on a Monday."""
    low, high = 0, word_at(facts, 2)
    while low < high:
        middle = (low + high + 1) // 2
        if word_at(facts, FIRST_OFFSET + 2 * middle - 1) <= now:
            low = middle
        else:
            high = middle - 1
    return now + word_at(facts, FIRST_OFFSET + 2 * low)


@functools.cache
def compile_callback(function: Callable[..., Any], returns: Any) -> int:
    """Compile a predictor's function of (learning, job, now) for `call_predict` or `call_notice`; return its address."""
    if not _config.DISABLE_JIT:
        return callback(returns(typeof(PredictorMemory()), types.int64, types.int64), function)
    _without_compiler[id(function)] = function
    return id(function)


def _predictor_caller(returns: Any) -> Any:
    """Return a function of (address, learning, job, now) for compiled code that calls the function at this address."""

    def codegen(context, builder, signature, args):
        takes = [context.get_value_type(argument) for argument in signature.args[1:]]
        pointer = builder.inttoptr(args[0], ir.FunctionType(context.get_value_type(returns), takes).as_pointer())
        return builder.call(pointer, args[1:])

    @intrinsic
    def call(typingctx, address, learning, job, now):
        return returns(types.int64, learning, types.int64, types.int64), codegen

    return call


@intrinsic
def _call_score(typingctx, facts, job, now, planned, procs, submit):
    def codegen(context, builder, signature, args):
        function = ir.FunctionType(ir.DoubleType(), [ir.IntType(64)] * len(args))
        address = builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))
        return builder.call(builder.inttoptr(address, function.as_pointer()), args)

    return SCORE, codegen


def _call_without_compiler(address, *arguments):
    return _without_compiler[int(address)](*arguments)


call_score: Any = _call_score
call_predict: Any = _call_without_compiler if _config.DISABLE_JIT else _predictor_caller(types.float64)
call_notice: Any = _call_without_compiler if _config.DISABLE_JIT else _predictor_caller(types.int64)
