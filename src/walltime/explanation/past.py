"""What users, groups, queues and partitions have had before a time, of a schedule, as the orders of queues ask for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from walltime.policy import Order
from walltime.policy.orders import HISTORY
from walltime.schedule.schedule import Schedule

Array = np.ndarray


class Past:
    """What an order asks of the past of a schedule; `columns`: of the log, by name, int64 of shape (jobs,)."""

    def __init__(self, order: Order, schedule: Schedule, columns: Mapping[str, Array]):
        self._schedule, self._columns = schedule, columns
        self._asked = [name for name in order.asks() if name in HISTORY]
        self._last: int | None = getattr(order, "last", None)
        self._half_life: int | None = getattr(order, "half_life", None)
        self._kept: dict[tuple[str, int], tuple[Array, Array]] = {}

    def of(self, job: int, now: int) -> dict[str, float]:
        """By the names that orders have for it, for a job that waits now: seconds, processor seconds, and starts, all before now."""
        return {name: self._total(name, job, now) for name in self._asked}

    def _total(self, name: str, job: int, now: int) -> float:
        times, amounts = self._events(name, job)
        until = int(np.searchsorted(times, now))
        since = 0 if self._last is None else int(np.searchsorted(times, now - self._last))
        counted = amounts[since:until]
        if self._half_life is not None:
            counted = counted * 0.5 ** ((now - times[since:until]) / self._half_life)
        return float(counted.sum())

    def _events(self, name: str, job: int) -> tuple[Array, Array]:
        """When the jobs like this one (all if the log lacks it) started, or ended, int64 s, and what that counts, float64."""
        of, measure = self._columns.get(HISTORY[name]), name.rpartition("_")[2]
        key = (name, -1 if of is None else int(of[job]))
        if key not in self._kept:
            one = self._schedule
            alike = np.ones(len(one), bool) if of is None else of == of[job]
            times = (one.end if measure == "used" else one.start)[alike]
            amounts = {"waited": one.wait, "used": one.runtime * one.workload.procs, "started": np.ones(len(one))}[measure][alike]
            order = np.argsort(times, kind="stable")
            self._kept[key] = times[order], amounts[order].astype(np.float64)
        return self._kept[key]
