"""Queue orders in the kernels' form: a number for a built-in order; for any other, the addresses of a compiled function and its data."""

from __future__ import annotations

import dis
import functools
import math
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from types import BuiltinFunctionType, CodeType, MappingProxyType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numba
import numpy as np

from walltime.engine.kernel.callbacks import FIRST_OFFSET, HISTORY, LONGEST, SYSTEM, compile_score
from walltime.engine.kernel.history import MEASURES, OWN, new_history, new_longest, new_system
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_LENGTH, BY_USER, BY_WFP, NEVER
from walltime.engine.kernel.words import address_of, set_number, set_word, word_at
from walltime.engine.problem import Problem
from walltime.errors import PolicyError
from walltime.plugins.files import location_of, user_code
from walltime.policy import FCFS, Order, ScoredOrder, Wfp
from walltime.policy.log_view import Calendar, LogView
from walltime.policy.orders import ShortestFirst, UserOrder

Array = np.ndarray
PLACE = "_place"
"""Name of an extra column with each job's index, so that a user's order can report which job has an invalid score."""
DAY = 86_400
END_OF_CALENDAR = 253_370_764_800
"""Start of the year 9999, s since 1970; dates cannot be much later."""


class LoweredOrder(NamedTuple):
    """A queue order in the kernels' form.

    * `kind`: one of BY_...; `parameter`: its exponent, or the address of `facts`
    * `reads_time`: whether scores change while jobs wait; `grows`: whether they only grow; `lasting`: whether they change only with the
      history
    * `starvation`: the wait after which a job comes first, s; `limited`: whether that wait also grows with the longest wait so far
    * `read`: the records of history.py that the order reads, by their positions in `facts`
    * `facts`: the data of the compiled function (SCORE in callbacks.py), int64
    * `arrays`, `kept`: arrays and other objects that these data point to, which must stay alive
    * `own`: the user's order; `fault`: the number (from 1) of the first job with an invalid score, 0 for none, and the bits of that score,
      int64
    """

    kind: int
    parameter: int = 0
    reads_time: bool = False
    grows: bool = False
    starvation: int = NEVER
    limited: bool = False
    lasting: bool = False
    read: Mapping[int, Any] = MappingProxyType({})
    facts: Array | None = None
    arrays: tuple[Array, ...] = ()
    kept: tuple[Any, ...] = ()
    own: UserOrder | None = None
    fault: Array | None = None

    def check(self) -> None:
        """Raise PolicyError if a user's function has returned NaN, a score that cannot be ordered."""
        if self.own is not None and self.fault is not None and self.fault[0]:
            job, score = int(self.fault[0]) - 1, float(self.fault[1:].view(np.float64)[0])
            self.fault[0] = 0
            raise self.own.bad_score(score, job)

    def address(self, place: int, needed: bool) -> int:
        """Return the address of a record that the order reads, or 0 if it is not needed."""
        return address_of(self.read[place]) if needed else 0

    def copied(self) -> LoweredOrder:
        """Return a copy of the order, with its own records, for a copy of the simulation."""
        read, arrays = {place: one.copy() for place, one in self.read.items()}, self.arrays
        if HISTORY in read:
            arrays = (arrays[0], *(array.copy() for array in arrays[1:]))  # the first has the jobs' slots
            for field, array in zip(OWN, arrays[1:], strict=True):
                read[HISTORY][field] = array.ctypes.data
        if self.facts is None or not read:
            return self._replace(read=read)
        facts = self.facts.copy()
        for place, one in read.items():
            facts[place] = address_of(one)
        return self._replace(parameter=facts.ctypes.data, facts=facts, arrays=arrays, read=read)


def lower_order(order: Order, known: LogView, submit: Array, longest: int) -> LoweredOrder:
    """Lower an order for jobs submitted at these times (int64 s), with all events within `longest` seconds of the last submission.

    Raises PolicyError for an order that only the reference engine supports, that cannot be compiled, or that needs a missing calendar.
    """
    given, limit = order.bounds
    if order == FCFS:
        return LoweredOrder(BY_ARRIVAL)
    starvation = (NEVER if limit is None else 0) if given is None else min(given, NEVER)
    read: dict[int, Any] = {LONGEST: new_longest(limit or 0.0)} if order.reads_longest else {}
    bounds: dict[str, Any] = {"starvation": starvation, "limited": limit is not None, "read": read}
    if isinstance(order, ShortestFirst):
        return LoweredOrder(BY_LENGTH, **bounds)
    if isinstance(order, Wfp):
        return LoweredOrder(BY_WFP, order.exponent, True, True, **bounds)
    if not isinstance(order, ScoredOrder):
        raise PolicyError(f"the compiled engine does not support the order {order!r}; use engine='auto'", "unsupported_order")
    if order.reads_calendar and known.calendar is None:
        raise order.without_calendar()
    fault = np.zeros(2, np.int64)
    own_order = order if isinstance(order, UserOrder) else None
    columns: tuple[str, ...] = order.columns
    numbers, function, arguments = np.asarray(order.parameters, np.float64), order.scoring, order.arguments
    if own_order is not None:
        captured, helpers = captured_constants(function, order.name)
        _refresh(helpers, captured)
        function = _watched(function, len(arguments), len(numbers), own_order.may_be_infinite, captured)
        columns, arguments = (*columns, PLACE), (*arguments, PLACE)
        numbers = np.append(numbers, float(fault.ctypes.data))  # exact, as addresses have fewer than 53 bits
    if order.reads_system_state:
        read[SYSTEM] = new_system()
    try:
        real = tuple(name for name in columns if name in known.columns and known.columns[name].dtype.kind == "f")
        compiled = compile_score(arguments, columns, function, len(numbers), order.history_of, real)
    except Exception as error:  # Numba has no common class of errors for code that it cannot compile
        raise _not_compiled(order, error) from error
    table = np.full((len(submit), len(columns)), -1, np.int64)
    for place, name in enumerate(columns):
        values = np.arange(len(submit)) if name == PLACE else known.columns.get(name, np.full(len(submit), -1))
        table[:, place] = values.view(np.int64) if name in real else values
    clock = [0]
    if order.reads_calendar and known.calendar is not None and len(submit):
        clock = clock_of(known.calendar, int(submit[0]), int(submit[-1]) + longest)
    first = int(submit[0]) if len(submit) else 0
    arrays: tuple[Array, ...] = ()
    if order.history_of:
        read[HISTORY], arrays = _history(order, known, len(submit))
    own = [address_of(read[place]) if place in read else 0 for place in (HISTORY, LONGEST, SYSTEM)]
    facts = np.array([compiled.address, table.ctypes.data, len(clock) // 2, first, numbers.ctypes.data, *own, *clock], np.int64)
    assert len(facts) - len(clock) == FIRST_OFFSET, "as the compiled function reads it"
    changing = order.reads_calendar or order.reads_longest or order.reads_system_state or "wait" in order.arguments or starvation != NEVER
    lasting = bool(getattr(order, "last", None)) and not changing
    bounds |= {"lasting": lasting, "facts": facts, "arrays": arrays, "kept": (compiled, table, numbers), "own": own_order, "fault": fault}
    return LoweredOrder(BY_USER, facts.ctypes.data, order.changes, order.is_monotone, **bounds)


@functools.lru_cache(maxsize=64)
def _watched(
    function: Callable[..., float], arguments: int, parameters: int, may_be_infinite: bool, _captured: Any
) -> Callable[..., float]:
    """Return the function with two more arguments, the job's index and the address of the fault, to which it writes an invalid score.

    `arguments`, `parameters`: their numbers. `_captured` is part of the cache key: other constants give another function.
    """
    inner = numba.njit(nogil=True, error_model="numpy")(function)
    takes, given = [f"a{k}" for k in range(arguments)], [f"p{k}" for k in range(parameters)]
    bad = "math.isnan(score)" if may_be_infinite else "not math.isfinite(score)"
    text = f"""def watched({", ".join([*takes, "place", *given, "fault"])}):
    score = 1.0 * inner({", ".join([*takes, *given])})
    if {bad} and word_at(int(fault), 0) == 0:
        set_word(int(fault), 0, place + 1)
        set_number(int(fault), 1, score)
    return score"""
    names: dict[str, Any] = {"inner": inner, "math": math, "set_word": set_word, "set_number": set_number, "word_at": word_at}
    exec(text, names)
    watched: Callable[..., float] = names["watched"]
    return watched


def _refresh(helpers: list[Any], captured: Any) -> None:
    """Compile the helpers of a function again, innermost first, if the constants that they read have changed."""
    with _refreshing:
        for helper in helpers:
            if _compiled_with.get(helper, captured) != captured and helper.signatures:
                helper.recompile()
            _compiled_with[helper] = captured


_refreshing = threading.Lock()
_compiled_with: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The constants that each helper was last compiled with."""


def _history(order: ScoredOrder, known: LogView, jobs: int) -> tuple[Any, tuple[Array, ...]]:
    """Return the record of the history that the order uses, and its arrays; a column that the log lacks has the same value for all jobs."""
    slots, width = np.zeros((jobs, len(order.history_of)), np.int64), 0
    for place, name in enumerate(order.history_of):
        values, of = np.unique(known.columns.get(name, np.full(jobs, -1, np.int64)), return_inverse=True)
        slots[:, place] = of.reshape(-1) + width
        width += len(values)
    columns = [
        sum(1 << place for place, name in enumerate(order.history_of) if f"{name}_{measure}" in order.arguments) for measure in MEASURES
    ]
    alike = all(name.startswith(f"{order.history_of[0]}_") for name in order.arguments)  # and nothing else, such as the job's size
    last, half_life = getattr(order, "last", None) or 0, getattr(order, "half_life", None) or 0
    return new_history(slots, width, last, half_life, columns, alike)


def clock_of(calendar: Calendar, first: int, last: int) -> list[int]:
    """Return the site's clock from `first` to `last` (s): the offset of local time from log time, then each change and the new offset.

    All values are seconds: `[offset, time, offset, time, offset, ...]`. Local time counts from midnight on a Monday. Raises WorkloadError
    if the first of these times is beyond the calendar's range.
    """
    span = 1 << (last - first).bit_length()  # runs that are a little longer or shorter have the same clock
    offsets = _utc_offsets(calendar.zone, calendar.begin + first, calendar.begin + first + span)
    monday = 3 * DAY  # 1970 began on a Thursday
    clock = [calendar.begin + monday + offsets[0][1]]
    for moment, offset in offsets[1:]:
        clock += [moment - calendar.begin, calendar.begin + monday + offset]
    return clock


@functools.lru_cache(maxsize=8)
def _utc_offsets(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return the zone's offset from UTC (s) at `first`, and the times up to `last` at which it changes (s since 1970 UTC)."""

    def offset(moment: int) -> int:
        ahead = Calendar(0, zone).local(moment).utcoffset()
        return 0 if ahead is None else round(ahead.total_seconds())

    offsets = [(first, offset(first))]
    if zone.utcoffset(None) is not None:
        return offsets  # it never changes
    before, last = first, min(last, END_OF_CALENDAR)
    while before < last:
        after = min(before + DAY, last)
        if offset(after) != offsets[-1][1]:
            moments = range(before + 1, after + 1)
            changed = moments[bisect_left(moments, True, key=lambda moment: offset(moment) != offsets[-1][1])]
            offsets.append((changed, offset(changed)))
        before = after
    return offsets


def _not_compiled(order: ScoredOrder, error: Exception) -> PolicyError:
    """Return the error of an order that cannot be compiled: the exception it raises, or the line at which the compiler stops."""
    what, place = f"the order {order.name!r} cannot be compiled", location_of(order.scoring)
    try:
        with user_code(f"{what}: it", order.scoring):
            result: Any = order.scoring(*[1] * len(order.arguments), *order.parameters)
    except PolicyError as raised:
        return raised
    if not isinstance(result, int | float | np.number):
        return PolicyError(f"{place}{what}: it returns {result!r}, which is not a number", "own_code_failure")
    line = getattr(getattr(error, "loc", None), "line", None)
    file = place.split(":")[0] if place else ""
    where = f"{file}:{line}: " if file and line else place
    text = "it may use only numbers, the module math, and functions that also use only these"
    return PolicyError(f"{where}{what}: {text}", "own_code_failure")


def lower_orders(problem: Problem, longest: int = 0) -> tuple[LoweredOrder, LoweredOrder]:
    """Return the orders of the queue and of backfilling.

    `longest`: how much later the last job may end than if the jobs ran one after the other, s.
    """
    longest += int(np.maximum(problem.runtime, problem.planned).sum())
    longest += 0 if problem.think is None else int(np.maximum(problem.think, 0).sum())
    known = problem.known or LogView({"requested": problem.planned})
    order, own = problem.policy.order, getattr(problem.policy, "backfill_order", None)
    first = lower_order(order, known, problem.submit, longest)
    return first, first if own is None or own == order else lower_order(own, known, problem.submit, longest)


def point_to_orders(rules: Any, orders: tuple[LoweredOrder, LoweredOrder]) -> None:
    """Write the addresses of the orders to the rules; the orders must be kept alive."""
    for prefix, order in zip(("order", "backfill"), orders, strict=True):
        rules[f"{'' if prefix == 'order' else 'backfill_'}order"] = order.kind
        rules[f"{prefix}_parameter"], rules[f"{prefix}_starvation"] = order.parameter, order.starvation
        rules[f"{prefix}_limit"] = order.address(LONGEST, order.limited)
    rules["own_backfill_order"] = orders[1] is not orders[0]
    rules["order_reads_time"] = orders[0].reads_time
    if "order_grows" in rules.dtype.names:
        rules["order_grows"] = orders[0].grows
    if "order_history" in rules.dtype.names:
        rules["order_history"] = orders[0].address(HISTORY, orders[0].lasting)


CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, type(None))
_VALUED = (*sys.stdlib_module_names, "numpy", "numba")
"""Modules whose numbers never change."""


def captured_constants(function: Callable[..., Any], name: str) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the values of the constants that an order's function and its compiled helpers read, and the helpers, innermost first.

    `name`: the name of the order. Raises PolicyError for a value that can change in place, such as a list.

    >>> factor = 2
    >>> captured_constants(lambda procs: factor * procs, "mine")[0]
    (('factor', 'int', 2),)
    """
    values: list[tuple[Any, ...]] = []
    helpers: list[Any] = []

    def follow(inner: Any) -> None:
        for word, value in _surroundings(inner):
            if hasattr(value, "py_func"):
                if value not in helpers:
                    follow(value.py_func)
                    helpers.append(value)
            elif isinstance(value, np.ndarray):
                values.append((word, value.dtype.str, value.shape, value.tobytes()))
            elif isinstance(value, CONSTANTS) or (isinstance(value, tuple) and all(isinstance(one, CONSTANTS) for one in value)):
                values.append((word, type(value).__name__, value))
            elif isinstance(value, list | dict | set | bytearray):
                kind = type(value).__name__
                raise PolicyError(
                    f"{location_of(inner)}the order {name!r} reads {word}, a {kind}, which may change after it is compiled; use numbers "
                    "or a tuple of them, or make it a parameter with a default",
                    "changing_value",
                )

    if getattr(function, "__code__", None) is not None:
        follow(function)
    return tuple(values), helpers


def _surroundings(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each global, variable of an outer function, and number of a module that a function reads."""
    code: CodeType = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    codes = [code]
    for one in codes:
        codes += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
        for name in dict.fromkeys(step.argval for step in dis.get_instructions(one) if step.opname == "LOAD_GLOBAL"):
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _VALUED:
                known = ((word, getattr(value, word, None)) for word in one.co_names)
                yield from ((f"{name}.{word}", found) for word, found in known if not isinstance(found, ModuleType))
            elif not isinstance(value, BuiltinFunctionType | type | ModuleType):
                yield name, value
