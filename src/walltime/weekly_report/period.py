"""A stretch of a recorded schedule, such as last week: who waited, what was used, what held jobs up, which hours were lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics.estimates import FAILED, YEAR
from walltime.metrics.machine import busy_processors, utilization
from walltime.schedule.groups import UNKNOWN, group_jobs, largest_groups
from walltime.workload import Workload
from walltime.workload.columns import GROUPED_COLUMNS

Array = np.ndarray

WEEK = 7 * 86_400
FEWEST = 8
"""Earlier changes that are needed to say what is usual."""
USUAL = 0.9
"""A change is unusual if it is larger than this share of the earlier ones."""
MOST_ROWS = 10
"""Users and jobs that are listed."""
GROUPED_BY = (*GROUPED_COLUMNS, "size", "length", "user")
"""The groupings whose waits are shown, the last one by single users."""


@dataclass(frozen=True)
class PeriodNumbers:
    """A period in numbers; times in s of the log's clock, waits in s over the jobs that started, hours are processor-hours."""

    begin: int
    end: int
    submitted: int
    started: int
    ended: int
    mean_wait: float
    """nan without any start"""
    median_wait: float
    p90_wait: float
    utilization: float
    """of the processors, from 0 to 1"""
    waited_hours: float
    """hours that jobs waited within the period, one for each job"""
    full_hours: float
    """of these, while fewer processors were free than the job asks for"""
    used_hours: float
    """of the jobs that ended"""
    unused_hours: float
    """asked for and not used, by the jobs that ended and have a limit"""
    failed_hours: float
    """used by jobs that failed, by the log"""
    limit_hours: float
    """used by jobs that ended at their limit"""
    waiting_at_end: int

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; None for what is not known."""
        return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Period:
    """A period, those before it, and its jobs by group."""

    workload: Workload
    numbers: PeriodNumbers
    before: Sequence[PeriodNumbers]
    """the periods before it, of the same length, the last one last; as far as the log has all of them"""
    groups: Mapping[str, Sequence[Mapping[str, Any]]]
    """rows by grouping: jobs that started, mean, median and p90 wait (s), and the mean wait of the period before (None without jobs)"""
    users: Sequence[Mapping[str, Any]]
    """users with the most hours of jobs that failed or ended at their limit"""
    longest: Sequence[Mapping[str, Any]]
    """the jobs that started after the longest waits"""
    unknown: int
    """jobs whose wait is not known, which are left out of all this"""


def period(workload: Workload, begin: int, end: int) -> Period:
    """What the log recorded from `begin` to `end`, s of its clock.

    Raises WorkloadError if the log records no waits, or if no job was submitted, ran or waited then.
    """
    waits = workload.recorded_wait
    name = workload.origin.name
    if waits is None:
        raise WorkloadError(
            f"{name} records no waits, so nothing can be said of what the machine did; simulate it, or give another log", "missing_waits"
        )
    known = waits >= 0
    jobs = workload if known.all() else workload.take(np.flatnonzero(known), "jobs whose wait is known")
    record = _Record(jobs)
    numbers = record.numbers(begin, end)
    if not numbers.submitted and not numbers.started and not numbers.ended:
        raise WorkloadError(
            f"{name} has no job from {begin:,} s to {end:,} s; take another window (walltime info says from when to when)", "empty_window"
        )
    length, first = end - begin, int(jobs.submit[0])
    starts = range(begin - length, first - 1, -length) if length > 0 else range(0)
    before = [record.numbers(one, one + length) for one in starts][::-1]
    groups = {by: rows for by in GROUPED_BY if (rows := record.groups(by, begin, end))}
    return Period(jobs, numbers, before, groups, record.lost(begin, end), record.longest(begin, end), int((~known).sum()))


def last_week(workload: Workload) -> tuple[int, int]:
    """Return begin and end, s, of the last whole week, Monday to Sunday at the site; without a calendar of the last seven days.

    Where the log ends before its first Monday, the span is the whole log.
    """
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    start = workload.origin.unix_start_time
    if start is None:
        return last + 1 - WEEK, last + 1
    zone = workload.origin.tzinfo()
    day = datetime.fromtimestamp(start + last, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    end = day - timedelta(days=day.weekday())
    if int(end.timestamp()) - start <= first:
        return first, last + 1
    return int((end - timedelta(days=7)).timestamp()) - start, int(end.timestamp()) - start


def unusual(now: float, before: Sequence[float]) -> tuple[float, bool | None]:
    """By how much a number changed since the period before, and whether that is more than 90 % of the earlier changes.

    None where fewer than 8 earlier changes are known.

    >>> unusual(30.0, [1.0, 2.0, 1.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0])
    (28.0, True)
    >>> unusual(3.0, [1.0, 2.0])
    (1.0, None)
    """
    if not len(before):
        return float("nan"), None
    change = now - before[-1]
    earlier = np.abs(np.diff(np.array(before, np.float64)))
    earlier = earlier[np.isfinite(earlier)]
    if len(earlier) < FEWEST or not np.isfinite(change):
        return change, None
    return change, bool((earlier < abs(change)).mean() >= USUAL)


class _Record:
    """The recorded schedule, and what can be asked of it."""

    def __init__(self, jobs: Workload):
        self.jobs = jobs
        self.wait = jobs.columns["wait"]
        self.start = jobs.submit + self.wait
        self.end = self.start + jobs.runtime
        self.times, self.levels = busy_processors(self.start, self.end, jobs.procs)
        self.full = self._full()

    def numbers(self, begin: int, end: int) -> PeriodNumbers:
        """One period."""
        w = self.jobs
        started, ended = _within(self.start, begin, end), _within(self.end, begin, end)
        waits = self.wait[started]
        median, p90 = np.percentile(waits, [50, 90]) if len(waits) else (np.nan, np.nan)
        used = w.procs * (w.runtime / 3600)
        limited = ended & (w.requested < YEAR)
        left = np.maximum(w.requested - w.runtime, 0) * (w.procs / 3600)
        waited, full = self._held(begin, end)
        return PeriodNumbers(
            begin=begin,
            end=end,
            submitted=int(_within(w.submit, begin, end).sum()),
            started=int(started.sum()),
            ended=int(ended.sum()),
            mean_wait=float(waits.mean()) if len(waits) else float("nan"),
            median_wait=float(median),
            p90_wait=float(p90),
            utilization=utilization(self.start, self.end, w.procs, w.machine_procs, begin, end),
            waited_hours=waited / 3600,
            full_hours=full / 3600,
            used_hours=float(used[ended].sum()),
            unused_hours=float(left[limited].sum()),
            failed_hours=float(used[ended & self._failed].sum()),
            limit_hours=float(used[limited & (w.runtime >= w.requested)].sum()),
            waiting_at_end=int(((w.submit < end) & (self.start >= end)).sum()),
        )

    def groups(self, by: str, begin: int, end: int) -> list[dict[str, Any]]:
        """Waits of the jobs that started, by group; nothing where the log does not say, or has one group."""
        w, started = self.jobs, _within(self.start, begin, end)
        column = by if by in ("user", *GROUPED_COLUMNS) else None
        if column is not None and not (w.columns.get(column, np.array([-1])) >= 0).any():
            return []
        weight = np.where(started, self.wait, 0).astype(np.float64)
        groups = group_jobs(w, by, w.submit, w.submit) if column is None else largest_groups(w, column, weight, MOST_ROWS, by)
        earlier = dict(groups.members(_within(self.start, 2 * begin - end, begin)))
        rows = []
        for name, inside in groups.members(started):
            waits, last = self.wait[inside], self.wait[earlier[name]] if name in earlier else np.zeros(0)
            median, p90 = np.percentile(waits, [50, 90])
            row = {"group": name, "jobs": len(inside), "mean_wait": float(waits.mean()), "median_wait": float(median)}
            rows.append(row | {"p90_wait": float(p90), "mean_wait_before": float(last.mean()) if len(last) else None})
        return rows if len(rows) > 1 else []

    def lost(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Users by the hours of jobs that failed or ended at their limit, then by those asked for and not used."""
        w, ended = self.jobs, _within(self.end, begin, end)
        users = w.columns.get("user")
        if users is None or not (users >= 0).any():
            return []
        used = np.where(ended, w.procs * (w.runtime / 3600), 0.0)
        limited = ended & (w.requested < YEAR)
        at_limit = limited & (w.runtime >= w.requested)
        failed = ended & self._failed & ~at_limit
        unused = np.where(limited, np.maximum(w.requested - w.runtime, 0) * (w.procs / 3600), 0.0)
        rows: list[dict[str, Any]] = []
        for user in np.unique(users[ended]).tolist():
            mine = users == user
            of = {"used_hours": used, "failed_hours": used * failed, "limit_hours": used * at_limit, "unused_hours": unused}
            hours = {name: float(values[mine].sum()) for name, values in of.items()}
            name = w.origin.name_of("user", user) if user >= 0 else UNKNOWN
            rows.append({"user": name, "jobs": int((ended & mine).sum()), **hours})
        rows.sort(key=lambda row: (-(row["failed_hours"] + row["limit_hours"]), -row["unused_hours"]))
        return rows[:MOST_ROWS]

    def longest(self, begin: int, end: int) -> list[dict[str, Any]]:
        """The jobs that started after the longest waits, and for how long of it fewer processors were free than they ask for."""
        w, inside = self.jobs, np.flatnonzero(_within(self.start, begin, end))
        users = w.columns.get("user")
        rows = []
        for k in inside[np.argsort(-self.wait[inside], kind="stable")][:MOST_ROWS].tolist():
            user = w.origin.name_of("user", int(users[k])) if users is not None and users[k] >= 0 else UNKNOWN
            full = self._full_time(k, int(w.submit[k]), int(self.start[k]))
            row = {"job": int(w.job_id[k]), "user": user, "procs": int(w.procs[k]), "requested": int(w.requested[k])}
            rows.append(row | {"wait": int(self.wait[k]), "full": full})
        return rows

    @property
    def _failed(self) -> Array:
        status = self.jobs.columns.get("status")
        return np.zeros(len(self.jobs), bool) if status is None else status == FAILED

    def _full(self) -> dict[int, Array]:
        """For each size of a job the time until each step in which fewer processors were free, int64 s."""
        lengths = np.diff(self.times)
        free = self.jobs.machine_procs - self.levels[:-1]
        return {
            procs: np.concatenate([[0], np.cumsum(lengths * (free < procs))]) if len(lengths) else np.zeros(1, np.int64)
            for procs in np.unique(self.jobs.procs).tolist()
        }

    def _full_time(self, k: int, begin: int, end: int) -> float:
        return float(np.diff(np.interp([begin, end], self.times, self.full[int(self.jobs.procs[k])]))[0])

    def _held(self, begin: int, end: int) -> tuple[float, float]:
        """Seconds that jobs waited in this period, and of these while fewer processors were free than they ask for."""
        w = self.jobs
        waiting = np.flatnonzero((w.submit < end) & (self.start > begin) & (self.wait > 0))
        first, last = np.maximum(w.submit[waiting], begin), np.minimum(self.start[waiting], end)
        full = 0.0
        for procs in np.unique(w.procs[waiting]).tolist():
            mine = w.procs[waiting] == procs
            until = self.full[procs]
            full += float((np.interp(last[mine], self.times, until) - np.interp(first[mine], self.times, until)).sum())
        return float((last - first).sum()), full


def _within(times: Array, begin: int, end: int) -> Array:
    inside: Array = (times >= begin) & (times < end)
    return inside
