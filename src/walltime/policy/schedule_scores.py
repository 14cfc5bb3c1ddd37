"""The scores by which a queue was ordered, computed from a given schedule: for the auditor and for explanations.

No engine uses this module: each computes its scores from what it has simulated so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from walltime.policy.log_view import LogView
from walltime.policy.orders import HISTORY, Order, ScoredOrder
from walltime.workload import Workload

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


class Standing:
    """How queue and machine stand at a time, of jobs with these times (s), processors and estimates (s), on a machine; int64.

    What has ended or arrived by then counts, what starts then does not yet.
    """

    def __init__(self, submit: Array, start: Array, end: Array, procs: Array, estimate: Array, machine: int):
        self._machine = machine
        held = np.where(end > start, procs, 0)  # who ends as they start never holds processors at another time
        self._arrivals, self._starts = (_Sums(times, np.ones_like(procs), procs * estimate) for times in (np.minimum(submit, start), start))
        self._taken, self._given = _Sums(start, held), _Sums(end, held)

    def at(self, now: int) -> dict[str, int]:
        """The values by the names that orders have for them."""
        waiting, queued = (a - s for a, s in zip(self._arrivals.before(now + 1), self._starts.before(now), strict=True))
        free = self._machine - self._taken.before(now)[0] + self._given.before(now + 1)[0]
        return {"waiting": waiting, "queued": queued, "free": free, "machine": self._machine}


class Given:
    """What users, groups, queues and partitions have had by a time, of some jobs with these times (s) and processors; int64.

    What starts or ends at that time does not count yet. `columns`: of all jobs, by name; `job`: which of them the times are of.
    """

    def __init__(self, columns: Mapping[str, Array], job: Array, submit: Array, start: Array, end: Array, procs: Array):
        self._columns, self._job = columns, job
        self._events = {"waited": (start, start - submit), "used": (end, (end - start) * procs), "started": (start, np.ones_like(start))}
        self._kept: dict[tuple[str, int | None, int], tuple[Array, Array]] = {}

    def of(self, order: Order, jobs: Array, now: int) -> dict[str, Array]:
        """Return what an order asks of the past of each of these jobs, by the names that orders have for it, float64."""
        return {name: self._each(name, order, jobs, now) for name in order.asks() if name in HISTORY}

    def _each(self, name: str, order: Order, jobs: Array, now: int) -> Array:
        known, place = np.unique(self._columns[HISTORY[name]][jobs], return_inverse=True)
        return np.array([self._one(name, order, value, now) for value in known.tolist()])[place]

    def _one(self, name: str, order: Order, value: int, now: int) -> float:
        half_life: int | None = getattr(order, "half_life", None)
        times, totals = self._totals(name, half_life, value)
        until = int(np.searchsorted(times, now))
        if half_life is not None:
            return float(totals[until]) * 0.5 ** ((now - int(times[until - 1])) / half_life) if until else 0.0
        return float(totals[until] - totals[int(np.searchsorted(times, now - getattr(order, "last", now)))])

    def _totals(self, name: str, half_life: int | None, value: int) -> tuple[Array, Array]:
        """When amounts came, and the total after so many of them, as it was at the last one of these."""
        key = (name, half_life, value)
        if key not in self._kept:
            (times, amounts), mine = self._events[name.rpartition("_")[2]], self._columns[HISTORY[name]][self._job] == value
            order = np.argsort(times[mine], kind="stable")
            times, amounts = times[mine][order], amounts[mine][order]
            totals = [0.0]
            for amount, gap in zip(amounts.tolist(), np.diff(times, prepend=times[:1]).tolist(), strict=True):
                totals.append(totals[-1] * (1.0 if half_life is None else 0.5 ** (gap / half_life)) + amount)
            self._kept[key] = times, np.array(totals)
        return self._kept[key]


class _Sums:
    """Sums of amounts over all that has a time before another one."""

    def __init__(self, times: Array, *amounts: Array):
        order = np.argsort(times, kind="stable")
        self._times, self._sums = times[order], [np.append(0, np.cumsum(one[order])) for one in amounts]

    def before(self, time: int) -> list[int]:
        place = int(np.searchsorted(self._times, time))
        return [int(one[place]) for one in self._sums]


class Scores:
    """Scores of the jobs of a workload under some orders, as a schedule has made them.

    `times`: submissions, starts, ends and estimates of its jobs, int64 s, shape (jobs,) each. `job`: their places in the workload, int64,
    by default all in its order. `machine`: processors, by default those of the workload. A column that the log lacks has one value.
    """

    def __init__(
        self,
        workload: Workload,
        orders: Sequence[Order],
        times: tuple[Array, Array, Array, Array],
        job: Array | None = None,
        machine: int | None = None,
    ):
        submit, start, end, estimate = times
        job = np.arange(len(workload)) if job is None else job
        procs, alike = workload.procs[job], np.zeros(len(workload), np.int64)
        self._workload, self._waits = workload, LongestWait(submit, start)
        self._standing = Standing(submit, start, end, procs, estimate, workload.machine_procs if machine is None else machine)
        columns = {name: workload.columns.get(name, alike) for order in orders for name in order.history_of}
        self._given = Given(columns, job, submit, start, end, procs)
        self._procs = workload.procs.tolist()
        self._first = int(workload.submit[0]) if len(workload) else 0
        view = LogView.of({name for order in orders for name in order.reads}, workload, workload.requested)
        self._calendar = view.calendar
        self._columns: dict[str, list[int]] = {name: values.tolist() for name, values in view.columns.items()}
        self._known: dict[tuple[Order, int, int], float] = {}

    def many(self, order: Order, jobs: Array, lengths: Array, submit: Array, now: int | None) -> Array | None:
        """The scores of many jobs at a time, float64; None where they have to be asked one by one.

        Without a time, under an order by which they stay as they are.
        """
        if not isinstance(order, ScoredOrder) or type(order).score is not ScoredOrder.score:
            return None
        columns = {"believed": lengths, "procs": self._workload.procs[jobs], "submit": submit, "elapsed": submit - self._first}
        columns |= {name: np.array(self._columns[name], np.int64)[jobs] for name in order.columns if name in self._columns}
        if now is not None:
            columns |= self._given.of(order, jobs, now)
            columns |= {"wait": now - submit, "longest": np.full(len(jobs), self._waits.before(now) if order.reads_longest else 0)}
        if order.bounds != (None, None) or (now is None and order.reads_time) or not set(order.asks()) <= set(columns):
            return None
        scores = order.scores(columns)
        return np.where(np.isnan(scores), -np.inf, scores)

    def of(self, job: int, order: Order, now: int, length: int, submit: int) -> float:
        """A waiting job's score now, the highest first; one that stays as it is while jobs wait is computed once."""
        stays = isinstance(order, ScoredOrder) and not order.reads_time and order.bounds == (None, None)
        key = (order, job, length)
        if stays and key in self._known:
            return self._known[key]
        others: dict[str, Any] = {name: values[job] for name, values in self._columns.items() if name in order.columns}
        others["elapsed"] = submit - self._first
        if order.reads_calendar:
            if self._calendar is None:
                raise order.without_calendar()
            local = self._calendar.local(now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        if order.reads_standing:
            others |= self._standing.at(now)
        others |= {name: float(values[0]) for name, values in self._given.of(order, np.array([job]), now).items()}
        wait, longest = now - submit, self._waits.before(now) if order.reads_longest else 0
        value = order.standing(order.score(wait, length, self._procs[job], submit, longest=longest, **others), wait, longest)
        if stays:
            self._known[key] = value
        return value
