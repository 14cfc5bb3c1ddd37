"""The scores by which queues are ordered, computed again from the orders themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walltime.policy import Calendar, Order
from walltime.policy.orders import ScoredOrder, ShortestFirst
from walltime.workload import Workload


class Scores:
    """Scores of the jobs of a workload under some orders."""

    def __init__(self, workload: Workload, orders: Sequence[Order]):
        self._procs = workload.procs.tolist()
        self._first = int(workload.submit[0]) if len(workload) else 0
        begin = workload.origin.unix_start_time
        self._calendar = None if begin is None else Calendar(begin, workload.origin.tzinfo())
        own = {"requested": workload.requested, "job_id": workload.job_id}
        self._columns: dict[str, list[int]] = {}
        for name in {name for order in orders for name in order.columns}:
            values = own.get(name, workload.columns.get(name))
            if values is not None:
                self._columns[name] = np.asarray(values, np.int64).tolist()
        self._known: dict[tuple[Order, int, int], float] = {}

    def of(self, job: int, order: Order, now: int, length: int, submit: int) -> float:
        """A waiting job's score now, the highest first; one that stays as it is while jobs wait is computed once."""
        stays = isinstance(order, ShortestFirst) or (isinstance(order, ScoredOrder) and not order.reads_time)
        stays = stays and getattr(order, "starvation", None) is None
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
        wait = now - submit
        value = order.standing(order.score(wait, length, self._procs[job], submit, **others), wait)
        if stays:
            self._known[key] = value
        return value
