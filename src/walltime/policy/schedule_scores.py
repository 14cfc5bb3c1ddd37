"""The scores that ordered a queue, computed from a given schedule, for the auditor and for explanations.

No engine uses this module, because each computes scores from its own state.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from walltime.policy.log_view import LogView
from walltime.policy.orders import HISTORY, Order, ScoredOrder
from walltime.workload import Array, Workload


class SystemState:
    """The `SYSTEM_STATE` over time, for jobs with these times (s), processors and estimates (s) on a machine; int64."""

    def __init__(self, submit: Array, start: Array, end: Array, procs: Array, estimate: Array, machine: int):
        self._machine = machine
        held = np.where(end > start, procs, 0)  # a job with runtime 0 holds no processors at any other time
        self._arrivals, self._starts = (_Sums(times, np.ones_like(procs), procs * estimate) for times in (np.minimum(submit, start), start))
        self._taken, self._freed = _Sums(start, held), _Sums(end, held)

    def at(self, now: int) -> dict[str, int]:
        """Return the values at a time, by name."""
        waiting, queued = (a - s for a, s in zip(self._arrivals.before(now + 1), self._starts.before(now), strict=True))
        free = self._machine - self._taken.before(now)[0] + self._freed.before(now + 1)[0]
        return {"waiting": waiting, "queued": queued, "free": free, "machine": self._machine}


class PastUse:
    """Past usage by users, groups, queues and partitions, for jobs with these times (s) and processors; int64.

    Starts and ends at the queried time are not included. `columns`: the columns of all jobs, by name; `job`: indices of the jobs with these
    times.
    """

    def __init__(self, columns: Mapping[str, Array], job: Array, submit: Array, start: Array, end: Array, procs: Array):
        self._columns, self._job = columns, job
        self._events = {"waited": (start, start - submit), "used": (end, (end - start) * procs), "started": (start, np.ones_like(start))}
        self._cache: dict[tuple[str, int | None, int], tuple[Array, Array]] = {}

    def of(self, order: Order, jobs: Array, now: int) -> dict[str, Array]:
        """Return the past usage that an order reads, for each of these jobs, float64, by argument."""
        found = {}
        for name in order.arguments:
            if name in HISTORY:
                known, place = np.unique(self._columns[HISTORY[name]][jobs], return_inverse=True)
                found[name] = np.array([self._one(name, order, value, now) for value in known.tolist()])[place]
        return found

    def _one(self, name: str, order: Order, value: int, now: int) -> float:
        half_life: int | None = getattr(order, "half_life", None)
        times, totals = self._totals(name, half_life, value)
        until = int(np.searchsorted(times, now))
        if half_life is not None:
            return float(totals[until]) * 0.5 ** ((now - int(times[until - 1])) / half_life) if until else 0.0
        return float(totals[until] - totals[int(np.searchsorted(times, now - getattr(order, "last", now)))])

    def _totals(self, name: str, half_life: int | None, value: int) -> tuple[Array, Array]:
        """Return the times of all amounts, and the running totals after 0, 1, ... amounts, decayed to the time of the last one included."""
        key = (name, half_life, value)
        if key not in self._cache:
            (times, amounts), mine = self._events[name.rpartition("_")[2]], self._columns[HISTORY[name]][self._job] == value
            order = np.argsort(times[mine], kind="stable")
            times, amounts = times[mine][order], amounts[mine][order]
            totals = [0.0]
            for amount, gap in zip(amounts.tolist(), np.diff(times, prepend=times[:1]).tolist(), strict=True):
                totals.append(totals[-1] * (1.0 if half_life is None else 0.5 ** (gap / half_life)) + amount)
            self._cache[key] = times, np.array(totals)
        return self._cache[key]


class _Sums:
    """Running sums of amounts over time."""

    def __init__(self, times: Array, *amounts: Array):
        order = np.argsort(times, kind="stable")
        self._times, self._sums = times[order], [np.append(0, np.cumsum(one[order])) for one in amounts]

    def before(self, time: int) -> list[int]:
        place = int(np.searchsorted(self._times, time))
        return [int(one[place]) for one in self._sums]


class Scores:
    """Scores of a workload's jobs under some orders, given a schedule.

    `times`: submissions, starts, ends and estimates of its jobs, int64 s, shape (jobs,) each. `job`: their indices in the workload, int64,
    by default all jobs. `machine`: processors, by default the workload's. A missing log column counts as one value for all jobs.
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
        procs, zeros = workload.procs[job], np.zeros(len(workload), np.int64)
        by_start = np.argsort(start, kind="stable")
        self._workload, self._starts = workload, start[by_start]
        self._longest = np.maximum.accumulate((start - submit)[by_start])
        self._system_state = SystemState(submit, start, end, procs, estimate, workload.machine_procs if machine is None else machine)
        columns = {name: workload.columns.get(name, zeros) for order in orders for name in order.history_of}
        self._past_use = PastUse(columns, job, submit, start, end, procs)
        self._procs = workload.procs.tolist()
        self._first = int(workload.submit[0]) if len(workload) else 0
        view = LogView.of({name: one for order in orders for name, one in order.reads.items()}, workload, workload.requested)
        self._calendar = view.calendar
        self._columns: dict[str, list[Any]] = {name: values.tolist() for name, values in view.columns.items()}
        self._known: dict[tuple[Order, int, int], float] = {}

    def _longest_wait(self, order: Order, now: int) -> int:
        """Return the longest wait of the jobs that started before now, s, if the order reads it; 0 if there are none."""
        count = int(np.searchsorted(self._starts, now)) if order.reads_longest else 0
        return int(self._longest[count - 1]) if count else 0

    def many(self, order: Order, jobs: Array, lengths: Array, submit: Array, now: int | None) -> Array | None:
        """Return the scores of many jobs at a time, float64; None if `of` has to compute them one by one.

        `now` is None for an order with constant scores.
        """
        if not isinstance(order, ScoredOrder) or type(order).score is not ScoredOrder.score:
            return None
        columns = {"planned": lengths, "procs": self._workload.procs[jobs], "submit": submit, "elapsed": submit - self._first}
        columns |= {name: np.array(self._columns[name])[jobs] for name in order.columns if name in self._columns}
        if now is not None:
            columns |= self._past_use.of(order, jobs, now)
            columns |= {"wait": now - submit, "longest": np.full(len(jobs), self._longest_wait(order, now))}
        if order.bounds != (None, None) or (now is None and order.reads_time) or not set(order.arguments) <= set(columns):
            return None
        scores = order.scores(columns)
        return np.where(np.isnan(scores), -np.inf, scores)

    def of(self, job: int, order: Order, now: int, length: int, submit: int) -> float:
        """Return a waiting job's sort key at a given time; the highest comes first."""
        is_constant = isinstance(order, ScoredOrder) and not order.reads_time and order.bounds == (None, None)
        key = (order, job, length)
        if is_constant and key in self._known:
            return self._known[key]
        others: dict[str, Any] = {name: values[job] for name, values in self._columns.items() if name in order.columns}
        others["elapsed"] = submit - self._first
        if order.reads_calendar:
            if self._calendar is None:
                raise order.without_calendar()
            local = self._calendar.local(now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        if order.reads_system_state:
            others |= self._system_state.at(now)
        others |= {name: float(values[0]) for name, values in self._past_use.of(order, np.array([job]), now).items()}
        wait, longest = now - submit, self._longest_wait(order, now)
        value = order.sort_key(order.score(wait, length, self._procs[job], submit, longest=longest, **others), wait, longest)
        if is_constant:
            self._known[key] = value
        return value
