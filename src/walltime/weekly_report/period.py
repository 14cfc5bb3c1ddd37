"""Compute waits, utilization, causes of waits and lost hours of a period of a recorded schedule, such as the last week."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from walltime.accuracy.adjusted import has_column
from walltime.errors import LogError, OutputError, WorkloadError
from walltime.files import whole_file
from walltime.machine import Machine
from walltime.metrics.estimates import FAILED, has_limit, reached_limit
from walltime.metrics.machine import utilization
from walltime.metrics.summary import Averages
from walltime.schedule.groups import UNKNOWN, group_jobs, largest_groups
from walltime.weekly_report.causes import CAUSES, wait_causes
from walltime.wording import printable, sanitize
from walltime.workload import Array, Workload
from walltime.workload.columns import GROUPED_COLUMNS

DAY = 86_400
WEEK = 7 * DAY
FEWEST = 8
"""Smallest number of earlier changes that are needed to decide whether a change is unusual."""
USUAL = 0.9
"""A change is unusual if it is larger than this share of all earlier changes."""
LOSSES = ("failed_hours", "limit_hours", "unused_hours")
"""The fields with hours that jobs lost, or requested but did not use."""
MOST_ROWS = 10
"""Largest number of users and jobs in a table."""
GROUPED_BY = (*GROUPED_COLUMNS, "size", "length", "user")
"""The groupings for which waits are tabulated."""


@dataclass(frozen=True)
class PeriodNumbers(Averages):
    """The numbers of a period: log times, s; waits, s, over the jobs that started; and processor-hours."""

    begin: int
    end: int
    submitted: int
    started: int
    ended: int
    mean_wait: float
    """nan if no job started"""
    median_wait: float
    p90_wait: float
    utilization: float
    """used share of the processors, 0 to 1"""
    second_utilization: float
    """used share of the machine's second resource, such as GPUs; nan without one"""
    waited_hours: float
    """total time that jobs waited within the period, h"""
    used_hours: float
    """hours used by the jobs that ended"""
    unused_hours: float
    """hours requested but not used by the jobs that ended and have a limit; nan without limits"""
    failed_hours: float
    """hours used by failed jobs that did not end at their limit; nan if the log has no status"""
    limit_hours: float
    """hours used by jobs that ended at their limit; nan without limits"""
    waiting_at_end: int

    @property
    def lost_hours(self) -> float:
        """Return the hours used by jobs that failed or ended at their limit, as far as known; nan if neither is known."""
        known = [hours for hours in (self.failed_hours, self.limit_hours) if not np.isnan(hours)]
        return sum(known) if known else float("nan")


@dataclass(frozen=True, eq=False)
class Period:
    """The numbers of a period and of earlier periods, and tables by group, user, job and cause."""

    workload: Workload
    numbers: PeriodNumbers
    before: Sequence[PeriodNumbers]
    """numbers of the earlier periods of the same length, in order"""
    groups: Mapping[str, Sequence[Mapping[str, Any]]]
    """rows by grouping: jobs that started, mean, median and p90 wait, s, and the mean wait of the previous period (None without jobs)"""
    users: Sequence[Mapping[str, Any]]
    """the users with the most hours used by jobs that failed or ended at their limit"""
    longest: Sequence[Mapping[str, Any]]
    """the jobs that started after the longest waits, with the main cause and its share of the wait"""
    causes: Sequence[Mapping[str, Any]]
    """waited hours by cause (`CAUSES`): a row for all jobs, then one for each partition in which jobs waited"""
    second: str
    """the name of the machine's second resource"""
    second_total: int
    """amount of the second resource in the machine; 0 if it has none, or if the log does not record requests"""
    unknown: int
    """number of jobs left out because their wait is unknown"""
    missing: int
    """time between the start of the requested period and the first submission, s, which is left out if it is at least a day"""
    site: str
    """the name of the machine in its file, otherwise the name of the log"""


def period(workload: Workload, begin: int, end: int, machine: Machine | None = None) -> Period:
    """Return the numbers of the period from `begin` to `end` (log times, s) and of the earlier periods of the same length.

    A period that begins a day or more before the first submission is shortened to begin there. `machine`: used to find the causes of waits;
    by default one pool of the log's processors.

    Raises WorkloadError if the log records no waits, or if no job was submitted, started or ended in the period.
    """
    waits = workload.recorded_wait
    name = workload.origin.name
    if waits is None:
        raise WorkloadError(f"{name} does not record waits; simulate it, or use another log", "missing_waits")
    jobs = workload.without({"unknown_wait": waits < 0}, {"unknown_wait": "The log does not record the job's start."})
    missing = int(jobs.submit[0]) - begin if len(jobs) else 0
    missing = missing if missing >= DAY and begin + missing < end else 0
    begin += missing
    record = _Record(jobs, machine)
    numbers = record.numbers(begin, end)
    if not numbers.submitted and not numbers.started and not numbers.ended:
        raise WorkloadError(
            f"{name} has no job from {jobs.origin.span(begin, end)}; use another window (walltime info shows the log's period)",
            "empty_window",
        )
    length, first = end - begin, int(jobs.submit[0])
    starts = range(begin - length, first - 1, -length) if length > 0 else range(0)
    before = [record.numbers(one, one + length) for one in starts][::-1]
    groups = {by: rows for by in GROUPED_BY if (rows := record.groups(by, begin, end))}
    return Period(
        workload=jobs,
        numbers=numbers,
        before=before,
        groups=groups,
        users=record.lost(begin, end),
        longest=record.longest(begin, end),
        causes=_causes(jobs, begin, end, machine),
        second="gpus" if machine is None else machine.second,
        second_total=0 if machine is None or record.second is None else machine.second_total,
        site=sanitize(workload.origin.site if machine is None or machine.name == "machine" else machine.name),
        unknown=len(workload) - len(jobs),
        missing=missing,
    )


def _causes(jobs: Workload, begin: int, end: int, machine: Machine | None) -> list[dict[str, Any]]:
    seconds, partition = wait_causes(jobs, machine, begin, end)
    names = [] if machine is None or len(machine.partitions) < 2 else [one.name for one in machine.partitions]
    masks = {"all jobs": np.ones(len(jobs), bool)} | {f"partition {name}": partition == k for k, name in enumerate(names)}
    hours = {name: seconds[mask].sum(axis=0) / 3600 for name, mask in masks.items()}
    waited = {name: one for name, one in hours.items() if one.any()}
    return [{"group": name, "hours": float(one.sum()), **dict(zip(CAUSES, one.tolist(), strict=True))} for name, one in waited.items()]


def last_week(workload: Workload) -> tuple[int, int]:
    """Return start and end, s, of the last whole week, Monday to Sunday at the site; without dates, of the last seven days.

    If the log ends before its first Monday, the period is the whole log, until its last job has ended.
    """
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    start = workload.origin.unix_start_time
    if start is None:
        return last + 1 - WEEK, last + 1
    zone = workload.origin.tzinfo()
    day = datetime.fromtimestamp(start + last, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    end = day - timedelta(days=day.weekday())
    if int(end.timestamp()) - start <= first:
        wait = workload.recorded_wait
        ends = workload.submit + workload.runtime + (0 if wait is None else np.maximum(wait, 0))
        return first, max(last, int(ends.max())) + 1
    return int((end - timedelta(days=7)).timestamp()) - start, int(end.timestamp()) - start


def unusual(now: float, before: Sequence[float]) -> tuple[float, bool | None]:
    """Return the change of a number since the previous period, and whether it is larger than 90 % of the earlier changes.

    The second value is None with fewer than 8 earlier changes.

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
    """Compute the numbers of periods of a recorded schedule."""

    def __init__(self, jobs: Workload, machine: Machine | None):
        self.jobs, self.machine = jobs, machine
        self.second = None if machine is None or not machine.second_total else jobs.columns.get(machine.second)
        self.wait = jobs.columns["wait"]
        self.start = jobs.submit + self.wait
        self.end = self.start + jobs.runtime
        self.used = jobs.procs * (jobs.runtime / 3600)
        self.limited = has_limit(jobs)
        self.at_limit = reached_limit(jobs)
        unknown = np.full(len(jobs), np.nan)
        has_status, any_limit = has_column(jobs, "status"), bool(self.limited.any())
        self.failed_hours = np.where((jobs.columns["status"] == FAILED) & ~self.at_limit, self.used, 0.0) if has_status else unknown
        self.limit_hours = np.where(self.at_limit, self.used, 0.0) if any_limit or self.at_limit.any() else unknown
        unused = np.maximum(jobs.requested - jobs.runtime, 0) * (jobs.procs / 3600)
        self.unused_hours = np.where(self.limited, unused, 0.0) if any_limit else unknown

    def numbers(self, begin: int, end: int) -> PeriodNumbers:
        """Return the numbers of one period."""
        w = self.jobs
        started, ended = _within(self.start, begin, end), _within(self.end, begin, end)
        waits = self.wait[started]
        median, p90 = np.percentile(waits, [50, 90]) if len(waits) else (np.nan, np.nan)
        waited = np.maximum(np.minimum(self.start, end) - np.maximum(w.submit, begin), 0).sum()
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
            second_utilization=self._second_utilization(begin, end),
            waited_hours=float(waited) / 3600,
            used_hours=float(self.used[ended].sum()),
            **{name: float(getattr(self, name)[ended].sum()) if len(w) else np.nan for name in LOSSES},
            waiting_at_end=int(((w.submit < end) & (self.start >= end)).sum()),
        )

    def _second_utilization(self, begin: int, end: int) -> float:
        if self.machine is None or self.second is None:
            return float("nan")
        return utilization(self.start, self.end, np.maximum(self.second, 0).astype(np.int64), self.machine.second_total, begin, end)

    def groups(self, by: str, begin: int, end: int) -> list[dict[str, Any]]:
        """Return the waits of the jobs that started, by group; empty with fewer than two recorded groups."""
        w, started = self.jobs, _within(self.start, begin, end)
        column = by if by in ("user", *GROUPED_COLUMNS) else None
        if column is not None and not has_column(w, column):
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
        """Return users in descending order of the hours of jobs that failed or ended at their limit, then of unused hours."""
        w, ended = self.jobs, _within(self.end, begin, end)
        if not has_column(w, "user"):
            return []
        users = w.columns["user"]
        columns = {"used_hours": self.used, **{name: getattr(self, name) for name in LOSSES}}
        rows: list[dict[str, Any]] = []
        for user in np.unique(users[ended]).tolist():
            mine = (users == user) & ended
            hours = {name: float(values[mine].sum()) for name, values in columns.items()}
            name = w.origin.name_of("user", user) if user >= 0 else UNKNOWN
            rows.append({"user": name, "jobs": int(mine.sum()), **hours})
        rows.sort(key=lambda row: (-np.nansum((row["failed_hours"], row["limit_hours"])), -np.nansum(row["unused_hours"])))
        return rows[:MOST_ROWS]

    def longest(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Return the jobs that started after the longest waits, with their main cause and its share of the wait."""
        w, inside = self.jobs, np.flatnonzero(_within(self.start, begin, end))
        users = w.columns.get("user")
        rows = []
        chosen = inside[np.argsort(-self.wait[inside], kind="stable")][:MOST_ROWS]
        seconds, _ = wait_causes(w, self.machine, int(w.submit[chosen].min(initial=begin)), end)
        for k in chosen.tolist():
            user = w.origin.name_of("user", int(users[k])) if users is not None and users[k] >= 0 else UNKNOWN
            cause = int(seconds[k].argmax())
            row = {"job": int(w.job_id[k]), "user": user, "procs": int(w.procs[k]), "requested": int(w.requested[k])}
            share = float(seconds[k, cause] / max(seconds[k].sum(), 1))
            rows.append(row | {"wait": int(self.wait[k]), "cause": CAUSES[cause], "cause_share": share})
        return rows


def _within(times: Array, begin: int, end: int) -> Array:
    inside: Array = (times >= begin) & (times < end)
    return inside


# ---------------------------------------------------------------------- stored periods, for trends longer than the log

FLOATS = {field.name for field in fields(PeriodNumbers) if field.type == "float"}


def write_trend(folder: str | Path, periods: Sequence[PeriodNumbers], clock: int) -> None:
    """Write these periods, each to its own file; an existing file is replaced.

    `clock`: Unix time minus log time, s. Raises OutputError if the folder cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"{printable(target)}: cannot create the folder ({reason}); use another one") from error
    for one in periods:
        record = one.as_dict() | {"begin": one.begin + clock, "end": one.end + clock}
        with whole_file(target / f"period-{record['begin']}-{record['end']}.json") as sink:
            sink.write((json.dumps(record, indent=2) + "\n").encode())


def read_trend(folder: str | Path, clock: int) -> list[PeriodNumbers]:
    """Return the stored periods in order of time; empty if the folder does not exist. Raises LogError for an invalid file."""
    periods = []
    for path in sorted(Path(folder).glob("period-*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            values = {field.name: record[field.name] for field in fields(PeriodNumbers)}
            values = {name: float("nan") if value is None and name in FLOATS else value for name, value in values.items()}
            values |= {"begin": int(values["begin"]) - clock, "end": int(values["end"]) - clock}
            periods.append(PeriodNumbers(**values))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            fault = f"{printable(path)}: not a record of a period ({type(error).__name__}); remove the file"
            raise LogError(fault, "not_a_period") from error
    return sorted(periods, key=lambda one: one.begin)
