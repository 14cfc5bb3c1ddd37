"""Queue orders lowered to numbers: their kind, and for custom ones the data that the compiled function reads."""

from __future__ import annotations

import functools
import re
from datetime import tzinfo
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.kernel.callbacks import COLUMNS, FIRST_OFFSET, compile_score
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_LENGTH, BY_USER, BY_WFP, NEVER
from walltime.errors import PolicyError
from walltime.policy import FCFS, Order, ScoredOrder, Wfp
from walltime.policy.log_view import Calendar, LogView
from walltime.policy.orders import ShortestFirst

__all__ = ["Lowered", "clock_of", "lower_order"]

Array = np.ndarray
DAY = 86_400
END_OF_CALENDAR = 253_370_764_800
"""Start of the year 9999, s since 1970; dates cannot be much later."""


class Lowered(NamedTuple):
    """An order for the kernel.

    One of BY_... and its parameter; whether scores of waiting jobs change, and whether they only grow; the wait (s) after which a job
    starves; and objects to keep alive.
    """

    kind: int
    parameter: int = 0
    reads_time: bool = False
    grows: bool = False
    starvation: int = NEVER
    kept: tuple[Any, ...] = ()

    def of_jobs_from(self, first: int) -> Array:
        """The data of a custom order for a loop that numbers the jobs from this one on; they are to be kept with those of all jobs."""
        _, table, _, facts = self.kept
        moved: Array = facts.copy()
        moved[COLUMNS] += first * table.strides[0]
        return moved


def lower_order(order: Order, known: LogView, submit: Array, longest: int) -> Lowered:
    """Lower an order for jobs submitted at these times (int64 s), with all events within `longest` seconds of the last submission.

    Raises PolicyError for an order that only the reference engine supports, that cannot be compiled, or that needs a calendar if
    there is none.
    """
    given = getattr(order, "starvation", None)
    starvation = NEVER if given is None else min(given, NEVER)
    if order == FCFS:
        return Lowered(BY_ARRIVAL)
    if isinstance(order, ShortestFirst):
        return Lowered(BY_LENGTH, starvation=starvation)
    if isinstance(order, Wfp):
        return Lowered(BY_WFP, order.exponent, True, True, starvation)
    if not isinstance(order, ScoredOrder):
        raise PolicyError(f"the compiled engine does not know the order {order!r}")
    if order.reads_calendar and known.calendar is None:
        raise order.without_calendar()
    try:
        compiled = compile_score(order.asks(), order.columns, order.scoring, len(order.parameters))
    except Exception as error:  # Numba has no class of its own for all that it cannot compile
        raise PolicyError(f"the order {order.name!r} cannot be compiled: {_numba_reason(error)}") from error
    table = np.full((len(submit), len(order.columns)), -1, np.int64)
    for place, name in enumerate(order.columns):
        table[:, place] = known.columns.get(name, -1)
    clock = [0]
    if order.reads_calendar and known.calendar is not None and len(submit):
        clock = clock_of(known.calendar, int(submit[0]), int(submit[-1]) + longest)
    first = int(submit[0]) if len(submit) else 0
    numbers = np.asarray(order.parameters, np.float64)
    facts = np.array([compiled.address, table.ctypes.data, len(clock) // 2, first, numbers.ctypes.data, *clock], np.int64)
    assert len(facts) - len(clock) == FIRST_OFFSET, "as the compiled function reads it"
    return Lowered(BY_USER, facts.ctypes.data, order.reads_time, order.growing, starvation, (compiled, table, numbers, facts))


def clock_of(calendar: Calendar, first: int, last: int) -> list[int]:
    """The site's clock from `first` to `last` (s): the offset of local time from the log's time, then each change and the new offset.

    All in seconds: `[offset, time, offset, time, offset, ...]`. Local time counts from midnight on a Monday. Raises WorkloadError
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
    """The zone's offset from UTC (s) at `first`, and the times up to `last` at which it changes (s since 1970 UTC)."""

    def offset(moment: int) -> int:
        ahead = Calendar(0, zone).local(moment).utcoffset()
        return 0 if ahead is None else round(ahead.total_seconds())

    found = [(first, offset(first))]
    if zone.utcoffset(None) is not None:
        return found  # it never changes
    before, last = first, min(last, END_OF_CALENDAR)
    while before < last:
        after = min(before + DAY, last)
        if offset(after) != found[-1][1]:
            low, high = before, after  # it changes after `low`, at `high` at the latest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == found[-1][1] else (low, middle)
            found.append((high, offset(high)))
        before = after
    return found


def _numba_reason(error: Exception) -> str:
    """The line of Numba's message with the reason."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip() and not line.startswith("Failed in nopython")]
    return next((line for line in lines if not line.startswith(("During:", "File ", "<"))), type(error).__name__)
