"""The scores by which queues are ordered, computed again from the orders themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walltime.policy import LogView, Order
from walltime.policy.orders import ScoredOrder
from walltime.workload import Workload

__all__ = ["LongestWait", "Scores"]

Array = np.ndarray


class LongestWait:
    """The longest wait so far, of jobs that were submitted and started at these times (int64 s)."""

    def __init__(self, submit: Array, start: Array):
        order = np.argsort(start, kind="stable")
        self._start, self._longest = start[order], np.maximum.accumulate((start - submit)[order])

    def before(self, now: int) -> int:
        """That of the jobs that started before now, s; 0 if there are none."""
        count = int(np.searchsorted(self._start, now))
        return int(self._longest[count - 1]) if count else 0


class Scores:
    """Scores of the jobs of a workload under some orders; `waits`: of its schedule."""

    def __init__(self, workload: Workload, orders: Sequence[Order], waits: LongestWait):
        self._waits = waits
        self._procs = workload.procs.tolist()
        self._first = int(workload.submit[0]) if len(workload) else 0
        view = LogView.of({name for order in orders for name in order.reads}, workload, workload.requested)
        self._calendar = view.calendar
        self._columns: dict[str, list[int]] = {name: values.tolist() for name, values in view.columns.items()}
        self._known: dict[tuple[Order, int, int], float] = {}

    def of(self, job: int, order: Order, now: int, length: int, submit: int) -> float:
        """A waiting job's score now, the highest first; one that stays as it is while jobs wait is computed once."""
        stays = isinstance(order, ScoredOrder) and not order.reads_time and order.bounds == (None, None)
        key = (order, job, length)
        if stays and key in self._known:
            return self._known[key]
        others = {name: values[job] for name, values in self._columns.items() if name in order.columns}
        others["elapsed"] = submit - self._first
        if order.reads_calendar:
            if self._calendar is None:
                raise order.without_calendar()
            local = self._calendar.local(now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        wait, longest = now - submit, self._waits.before(now) if order.reads_longest else 0
        value = order.standing(order.score(wait, length, self._procs[job], submit, longest=longest, **others), wait, longest)
        if stays:
            self._known[key] = value
        return value
