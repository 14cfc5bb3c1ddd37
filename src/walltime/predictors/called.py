"""Let the compiled engine call a predictor in plain Python, through three C functions that acquire the interpreter lock.

This works only for simulations that run once from beginning to end; simulations that are copied or rewound need the reference engine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from walltime.compiled.prediction_memory import GENERAL, OWN, CompiledPredictor
from walltime.predictors.base import Basis

if TYPE_CHECKING:
    from walltime.predictors.base import Jobs
    from walltime.predictors.history import History

NOTHING, BELOW = -1.0, -2.0
"""Results of a call that predicts nothing, and of a call that predicts a negative value."""
OF_ALL = -10.0
"""A prediction of s seconds with the basis GENERAL is encoded as this value minus s."""
REFUSED = 3
"""Basis.BELOW for compiled code."""
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Calls:
    """The functions that the compiled loop calls with a job, the time and its runtime; the object must live as long as the loop runs.

    Exceptions cannot pass through compiled code, so they are stored; later calls do nothing, and `check` raises the exception.
    """

    def __init__(self, history: History) -> None:
        self._history, self.wants_starts = history, history.wants_starts
        self._submit: dict[int, int] = {}
        self._error: BaseException | None = None
        self._functions = [_SIGNATURE(self._guarded(one)) for one in (self._predict, self._observe, self._started)]

    @property
    def addresses(self) -> list[int]:
        """Return the addresses of the functions for prediction, end and start."""
        return [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self._functions]

    def check(self) -> None:
        """Raise the exception of a call, if there was one."""
        if self._error is not None:
            raise self._error

    def _guarded(self, call: Callable[[int, int, int], float]) -> Callable[[int, int, int], float]:
        def guarded(job: int, now: int, ran: int) -> float:
            if self._error is not None:
                return NOTHING
            try:
                return call(job, max(now, 0), ran)
            except BaseException as error:  # also Ctrl-C; `check` raises it
                self._error = error
                return NOTHING

        return guarded

    def _predict(self, job: int, now: int, ran: int) -> float:
        seconds, basis = self._history.predict(job, self._submit.setdefault(job, now), now)
        if basis == Basis.NOTHING:
            return NOTHING
        if basis == Basis.BELOW:
            return BELOW
        return OF_ALL - seconds if basis == Basis.GENERAL else float(seconds)

    def _observe(self, job: int, now: int, ran: int) -> float:
        self._history.observe(job, self._submit.get(job, now - ran), now - ran, now)
        return 0.0

    def _started(self, job: int, now: int, ran: int) -> float:
        self._history.started(job, self._submit.get(job, now), now)
        return 0.0


def called(calls: Calls, jobs: Jobs) -> CompiledPredictor:
    """Return the compiled form of a predictor in plain Python."""
    started = started_by_call if calls.wants_starts else None
    return CompiledPredictor(predict_by_call, observe_by_call, started, jobs.memory((), options=calls.addresses))


# ------------------------------------------------------------------------------------------------------------ compiled form

PREDICT, OBSERVE, STARTED = 0, 1, 2


@intrinsic
def _call_python(typingctx, address, job, now, ran):
    def codegen(context, builder, signature, args):
        function = ir.FunctionType(ir.DoubleType(), [ir.IntType(64)] * 3)
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])

    return types.float64(types.int64, types.int64, types.int64, types.int64), codegen


def _call_without_compiler(address, job, now, ran):
    return _SIGNATURE(int(address))(int(job), int(now), int(ran))


_config: Any = numba.config
call_python: Any = _call_without_compiler if _config.DISABLE_JIT else _call_python


def predict_by_call(learning, job, now):
    """Return the plain predictor's prediction; -1 if nothing is known."""
    seconds = call_python(learning.options[PREDICT], job, now, 0)
    if seconds == NOTHING:
        return NOTHING
    basis = OWN
    if seconds <= OF_ALL:
        basis = GENERAL
        seconds = OF_ALL - seconds
    elif seconds == BELOW:
        basis = REFUSED
        seconds = 1.0 * learning.jobs[job].limit
    learning.jobs[job].basis = basis
    return seconds


def observe_by_call(learning, job, now):
    """Pass a job that has ended to the plain predictor."""
    call_python(learning.options[OBSERVE], job, now, learning.jobs[job].ran)
    return 0


def started_by_call(learning, job, now):
    """Pass a job that starts to the plain predictor."""
    call_python(learning.options[STARTED], job, now, 0)
    return 0
