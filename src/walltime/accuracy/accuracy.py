"""Measure the accuracy of users' walltimes: requested and used hours by user, account, partition and time (tang13, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.accuracy.adjusted import AdjustedWalltimes, Bars, adjust_walltimes, has_column, is_too_slow, no_bars
from walltime.accuracy.advice import UserAdvice, advise_users
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine
from walltime.metrics.estimates import FAILED, YEAR, jobs_by_use
from walltime.provenance import plain
from walltime.schedule.groups import UNKNOWN, Groups, group_jobs, largest_groups
from walltime.tables import Table, number
from walltime.wording import counted, shown
from walltime.workload import Array, Workload
from walltime.workload.columns import GROUPED_COLUMNS

if TYPE_CHECKING:
    import polars as pl


LARGEST = 15
"""Number of users, accounts, partitions and queues that are listed, those with the most requested hours."""
COLUMNS = {"user": "user", "account": "group", **{column: column for column in GROUPED_COLUMNS}}
"""Names of groupings, and the columns of the log that they use."""
FEW_JOBS = 1000
"""Results for fewer jobs than this have a caveat."""
DAY = 86_400
STATUS = {0: "failed", 1: "completed", 5: "cancelled"}


@dataclass(frozen=True, eq=False)
class WalltimeAccuracy:
    """Requested and used hours, the gain from adjusted walltimes, and advice for the users with the most unused hours."""

    workload: Workload
    """the whole log"""
    jobs: Workload
    """the jobs that have a limit; all results except the simulations are computed from them"""
    total: metrics.RequestedTime
    groups: Mapping[str, Sequence[Mapping[str, Any]]]
    """rows of each grouping that the log supports: `user`, `account`, `partition`, `queue`, `size`, `length`, `time`"""
    ends: Sequence[Mapping[str, Any]]
    """rows by the share of the request that jobs used"""
    states: Sequence[Mapping[str, Any]]
    """rows by the recorded states of the jobs; empty if not recorded"""
    adjusted: AdjustedWalltimes | None
    """simulations with adjusted walltimes; None if not simulated, or if the log does not record users"""
    advice: Sequence[UserAdvice]
    caveats: Sequence[str]

    def table(self, by: str = "user") -> pl.DataFrame:
        """Return a grouping, `ends`, `states`, `adjusted`, `schemes` or `advice` as a polars DataFrame; raises PolicyError otherwise."""
        import polars as pl

        tables: dict[str, Sequence[Mapping[str, Any]]] = {**self.groups, "ends": self.ends, "states": self.states}
        tables["advice"] = [
            {"user": one.user} | {k: v for k, v in row.items() if k != "kind"} | {"kind": ", ".join(row["kind"].values())}
            for one in self.advice
            for row in (kind.as_dict() for kind in one.kinds)
        ]
        if self.adjusted is not None:
            tables |= {"adjusted": self.adjusted.rows(), "schemes": self.adjusted.schemes(len(self.adjusted.replays))}
        if by not in tables:
            raise PolicyError(f"unknown table {shown(by)}. Valid tables: {', '.join(tables)}", "unknown_table")
        return pl.DataFrame(list(tables[by]), infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the analysis as a dictionary for JSON."""
        a = self.adjusted
        adjusted = None
        if a is not None:
            spread = None if a.spread is None else {"shake": a.spread.seconds, "copies": a.spread.copies}
            adjusted = {"instead_of": a.instead or None, "ends": a.ends, "spread": spread, "rows": a.rows(), "schemes": a.schemes()}
        record = {"total": self.total.as_dict(), "groups": self.groups, "ends": self.ends, "states": self.states, "adjusted": adjusted}
        whole: dict[str, Any] = plain(record | {"advice": [one.as_dict() for one in self.advice], "caveats": self.caveats})
        return whole

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        by = "user" if "user" in self.groups else "size"
        names = ("jobs", "asked_hours", "unused_hours", "used_share", "mean_accuracy")
        whole = {"group": "all jobs", **self.total.as_dict()}
        rows = [[str(row["group"]), *(number(row[name]) for name in names)] for row in (whole, *self.groups[by])]
        note = "processor-hours; used share: used over requested; accuracy: runtime over request (tang13, eq. 3)"
        return Table(["", *(name.replace("_", " ") for name in names)], rows, self.workload.origin.name, note)._repr_html_()

    def __repr__(self) -> str:
        t = self.total
        return f"<WalltimeAccuracy of {t.jobs:,} jobs: {t.used_share:.1%} of {t.asked_hours:,.0f} processor-hours used>"


def estimate_accuracy(
    workload: Workload,
    *,
    adjust: bool = True,
    machine: Machine | None = None,
    replications: int | None = None,
    most: int = LARGEST,
    progress: Bars = no_bars,
) -> WalltimeAccuracy:
    """Return the accuracy of users' walltimes, the requested hours that are not used, and the gain from adjusted walltimes.

    Accuracy and hours are computed over all jobs with a limit, by user, account, partition and queue (the `most` groups with the most
    requested hours), size, length and time. `adjust`: whether to simulate adjusted walltimes, on the `machine` if given, with
    `replications` shaken copies (by default as many as take little time), and to suggest requests for the users with the most unused hours.
    `progress`: see `Bars`.

    Raises WorkloadError for a log without users' estimates, PolicyError for an invalid number. Source: tang13, section 3.

    >>> jobs = Workload.from_arrays(submit=[0, 9], runtime=[1800, 3600], requested=[3600, 7200], procs=[2, 1], machine_procs=2)
    >>> found = estimate_accuracy(jobs, adjust=False)
    >>> found.total.asked_hours, found.total.unused_hours, found.total.used_share
    (4.0, 2.0, 0.5)
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise PolicyError(f"the number of groups must be a whole number of at least 1, not {shown(most)}", "number_out_of_range")
    limited = check_requests(workload)
    jobs = workload if limited.all() else workload.take(np.flatnonzero(limited), "jobs that have a limit")
    adjusted, advice = None, []
    if adjust:
        advice = advise_users(workload, limited, progress=progress)
        if has_column(jobs, "user") and not is_too_slow(workload, machine):
            adjusted = adjust_walltimes(workload, machine=machine, replications=replications, progress=progress)
    return WalltimeAccuracy(
        workload=workload,
        jobs=jobs,
        total=metrics.requested_time(jobs.runtime, jobs.requested, jobs.procs),
        groups=_groups(jobs, most),
        ends=jobs_by_use(jobs.runtime, jobs.requested, jobs.procs, failed_jobs(jobs)),
        states=_states(jobs),
        adjusted=adjusted,
        advice=advice,
        caveats=_caveats(workload, jobs, adjust, adjusted, machine),
    )


def check_requests(workload: Workload) -> Array:
    """Return a mask (bool) of the jobs with a limit; raises WorkloadError if no job has one, or if all requests equal the runtimes."""
    limited: Array = workload.requested < YEAR
    name = workload.origin.name
    if not limited.any():
        raise WorkloadError(f"{name} has no job with a limit; use a log with requested times", "missing_requests")
    if np.array_equal(workload.requested, np.maximum(workload.runtime, 1)):
        raise WorkloadError(f"{name} has no users' estimates: each equals the runtime; use a log with requested times", "missing_requests")
    return limited


def _groups(jobs: Workload, most: int) -> dict[str, list[dict[str, Any]]]:
    asked = (jobs.requested * jobs.procs).astype(np.float64)
    groups_by = {by: largest_groups(jobs, column, asked, most, by) for by, column in COLUMNS.items() if has_column(jobs, column)}
    groups_by |= {by: group_jobs(jobs, by, jobs.submit, jobs.submit) for by in ("size", "length")}
    groups_by["time"] = _over_time(jobs)
    return {by: _rows(jobs, groups) for by, groups in groups_by.items()}


def _rows(jobs: Workload, groups: Groups) -> list[dict[str, Any]]:
    """Return a row for each group: requested and used hours, and its share of all unused hours."""
    members = groups.members(np.ones(len(jobs), bool))
    times = [(name, metrics.requested_time(jobs.runtime[k], jobs.requested[k], jobs.procs[k])) for name, k in members]
    unused = sum(one.unused_hours for _, one in times)
    return [{"group": name, **one.as_dict(), "share_of_unused": one.unused_hours / unused if unused else None} for name, one in times]


def _over_time(jobs: Workload) -> Groups:
    """Group jobs by month of submission, in short logs by week or day; if the log has no dates, by 30 days instead of months."""
    begin, span = jobs.origin.unix_start_time, int(jobs.submit[-1] - jobs.submit[0])
    if begin is not None and span > 62 * DAY:
        return group_jobs(jobs, "month", jobs.submit, jobs.submit)
    days = 30 if span > 62 * DAY else 7 if span > 14 * DAY else 1
    place = (jobs.submit - jobs.submit[0]) // (days * DAY)
    numbers, group = np.unique(place, return_inverse=True)
    names = dates(jobs, jobs.submit[0] + numbers * days * DAY) or [f"day {1 + k * days}" for k in numbers.tolist()]
    return Groups(names, group)


def dates(workload: Workload, times: Array) -> list[str] | None:
    """Return these log times (int64, s) as dates at the site; None if the log has no start date or a date is out of range."""
    days = [f"{day:%Y-%m-%d}" for day in map(workload.origin.moment, times.tolist()) if day is not None]
    return days if workload.origin.unix_start_time is not None and len(days) == len(times) else None


def failed_jobs(jobs: Workload) -> Array | None:
    """Return a mask (bool) of the jobs with the status failed; None if there are none."""
    status = jobs.columns.get("status")
    return None if status is None or not (status == FAILED).any() else status == FAILED


def _states(jobs: Workload) -> list[dict[str, Any]]:
    """Return rows by state or, if the log has no states, by status."""
    if has_column(jobs, "state"):
        asked = (jobs.requested * jobs.procs).astype(np.float64)
        rows = _rows(jobs, largest_groups(jobs, "state", asked, LARGEST))
        return [row | {"group": str(row["group"]).removeprefix("state ")} for row in rows]
    status = jobs.columns.get("status")
    if status is None or len(np.unique(status[status >= 0])) < 2:
        return []
    known, group = np.unique(status, return_inverse=True)
    return _rows(jobs, Groups([STATUS.get(k, UNKNOWN if k < 0 else f"status {k}") for k in known.tolist()], group))


def _caveats(workload: Workload, jobs: Workload, adjust: bool, adjusted: AdjustedWalltimes | None, machine: Machine | None) -> list[str]:
    origin = workload.origin
    sentences = []
    if len(jobs) < FEW_JOBS:
        have = "job has" if len(jobs) == 1 else "jobs have"
        sentences.append(f"Only {len(jobs):,} {have} a limit: a few of them can change these numbers considerably.")
    missing = origin.changed.get("runtime_as_estimate", 0)
    if missing:
        sentences.append(
            f"{missing:,} of {counted(origin.records, 'record')} have no requested time; the runtime is used instead. "
            "Accuracies are therefore too high, and unused hours too low."
        )
    if "recon" in origin.name:
        sentences.append("The log is a reconstruction: runtimes end at the estimate, and jobs with runtime 0 are missing.")
    free = len(workload) - len(jobs)
    if free:
        sentences.append(
            f"{free:,} job{' has' if free == 1 else 's have'} no limit, or a limit of a year. Accuracies and hours exclude these jobs; "
            "simulations plan with a year."
        )
    shrunk = origin.changed.get("shrunk_limit", 0)
    if shrunk:
        sentences.append(f"For {counted(shrunk, 'job')} that Slurm shortened (--time-min), the request is taken from the command line.")
    elif any("from slurm" in line for line in origin.header):
        sentences.append(
            "Slurm's accounting records the last limit of each job. With --time-min, this limit may be shorter than the user's request, "
            "which is known only if the log has the command lines (SubmitLine)."
        )
    over = int((jobs.runtime > jobs.requested).sum())
    if over:
        sentences.append(
            f"{counted(over, 'job')} ran longer than requested (grace times or changed limits). Their accuracy is request over runtime, "
            "and their hours beyond the request count as used."
        )
    if adjusted is None:
        unknown = (
            "The log does not record users, so predictors cannot learn from their earlier jobs; adjusted walltimes were not simulated."
        )
        if adjust and has_column(jobs, "user"):
            unknown = (
                "Adjusted walltimes were not simulated: the compiled engine does not simulate predictions on a machine of nodes, and the "
                "plain Python engine would take hours. Under Slurm's scheduling, a what-if simulates them as the change "
                "adjust=tang13:key=request."
            )
        return [*sentences, unknown] if adjust else sentences
    sentences.append(
        "The simulations replay the recorded submissions. In reality, users who wait less would submit other jobs at other times, and "
        "users whose requests are adjusted would change them."
    )
    if adjusted.instead:
        sentences.append(f"The machine's own policy, {adjusted.instead}, takes no predictions: EASY backfilling is simulated instead.")
    if machine is None and has_column(workload, "partition") and len(np.unique(workload.columns["partition"])) > 1:
        sentences.append(
            "The log has several partitions, but the machine is simulated as one pool of processors; describe it in a machine file "
            "(--machine; in Python machine=...)."
        )
    lost = len(workload) - len(adjusted.schedules[0].workload)
    if lost:
        sentences.append(f"Left out: {counted(lost, 'job')} that cannot run on the simulated machine.")
    if adjusted.ends != "log":
        sentences.append(
            "The log has no wait times, so the schemes learn from the job ends of a simulation (EASY with the users' requests)."
        )
    if adjusted.spread is None:
        sentences.append("The simulations are single runs, so the effect of chance on their averages is unknown; use replications.")
    return sentences
