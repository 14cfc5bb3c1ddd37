"""What users, groups and queues have had, as orders may ask: summed anew from all starts and ends, as the words say it."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence

from walltime.policy import Order
from walltime.policy.orders import HISTORY

__all__ = ["History"]


class History:
    """The starts and ends so far. `columns`: of the log, by name, a number for each job."""

    def __init__(self, columns: Mapping[str, Sequence[int]]):
        self._columns = columns
        self._starts: list[tuple[int, int, int]] = []  # time, job, wait
        self._longest: list[int] = []  # wait, of the starts so far
        self._ends: list[tuple[int, int, int]] = []  # time, job, processor seconds

    def started(self, job: int, submit: int, now: int) -> None:
        """A job has started."""
        self._starts.append((now, job, now - submit))
        self._longest.append(max(*self._longest[-1:], now - submit, 0))

    def ended(self, job: int, runtime: int, procs: int, now: int) -> None:
        """A job has ended."""
        self._ends.append((now, job, runtime * procs))

    def longest(self, now: int) -> int:
        """The longest wait of the jobs that started before now, s; 0 if there are none."""
        before = bisect.bisect_left(self._starts, (now,))
        return self._longest[before - 1] if before else 0

    def of(self, order: Order, job: int, now: int) -> dict[str, float]:
        """What an order asks of the history, for a job that waits now."""
        return {name: self._one(order, name, job, now) for name in order.asks() if name in HISTORY}

    def _one(self, order: Order, name: str, job: int, now: int) -> float:
        column, measure = HISTORY[name], name.rpartition("_")[2]
        of = self._columns.get(column)
        events = self._ends if measure == "used" else self._starts
        last: int | None = getattr(order, "last", None)
        half_life: int | None = getattr(order, "half_life", None)
        first = 0 if last is None else bisect.bisect_left(events, (now - last,))
        total, since = 0.0, 0
        for time, other, amount in events[first:]:
            if time >= now:
                break
            if of is not None and of[other] != of[job]:
                continue
            value = 1.0 if measure == "started" else float(amount)
            if half_life is not None:
                total, since = total * math.pow(0.5, (time - since) / half_life), time
            total += value
        return total if half_life is None else total * math.pow(0.5, (now - since) / half_life)
