"""Calibration: compare the waits simulated under the site's own policy with the recorded waits."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import LogError, WorkloadError
from walltime.files import whole_file
from walltime.machine import Machine, hindsight_note, omission_sentences, placing_notes, with_hindsight, write_machine
from walltime.machine.warm_start import carried_over
from walltime.metrics.recorded import NEAR, Agreement, agreement
from walltime.metrics.summary import Averages
from walltime.metrics.weekly_interval import LogWeeks
from walltime.policy import Policy
from walltime.provenance import jobs_sha256, plain, version
from walltime.schedule.groups import UNKNOWN, Groups, group_jobs, recorded_groups
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.whatif.setting import Setting, machine_of
from walltime.whatif.wait_causes import Evidence, PoolGroup, WaitCause, find_evidence, pool_groups
from walltime.wording import counted, human_difference, human_time, listed, printable, sanitize
from walltime.workload import Array, Workload, check_workload
from walltime.workload.columns import GROUPED_COLUMNS
from walltime.workload.drops import Drop, warning_of

GROUPED_BY = ("class", "user", "size", *GROUPED_COLUMNS)
"""The ways to group jobs; each group has its own calibration error."""
MOST_GROUPS = 40
"""Groupings with more groups are omitted."""
MANY_KILLED = 0.01
"""Smallest reported share of jobs that are killed only in the simulation."""
ALL = "all jobs"
ERROR = "error bound"
UNKNOWN_WAIT = {"unknown_wait": "The log does not record the job's wait, so the job is simulated but not compared."}


@dataclass(frozen=True)
class Utilization(Averages):
    """Recorded and simulated utilization of a month, or from the first to the last submission."""

    when: str
    recorded: float
    simulated: float


@dataclass(frozen=True)
class Calibration:
    """The agreement between the recorded waits and a simulation under the site's own policy.

    `rows`: agreement over all jobs, then for each group of `GROUPED_BY` that the log has; `months`: by month of submission.
    `evidence`: jobs that waited for something other than processors, and hints about the machine file. `by_hindsight`: waits count from
    eligible times, which are known only after the fact. The checksums identify the log file, its jobs and the machine.
    """

    log: str
    sha256: str
    jobs_sha256: str
    machine: str
    machine_digest: str
    policy: str
    trim: str
    rows: Sequence[Agreement]
    months: Sequence[Agreement]
    utilization: Sequence[Utilization]
    evidence: Evidence
    version: str
    by_hindsight: bool
    drops: Sequence[Drop] = ()
    """numbers of jobs left out, by rule"""

    @property
    def overall(self) -> Agreement:
        """Return the agreement over all jobs."""
        return self.rows[0]

    def row(self, by: str, group: str) -> Agreement | None:
        """Return the agreement of a group; None if the calibration does not include it."""
        return next((row for row in self.rows if (row.by, row.group) == (by, group)), None)

    def trusts(self, by: str, group: str, difference: float) -> bool:
        """Return whether a difference in mean wait, s, exceeds the calibration error of its group; False if the group is not usable."""
        row = self.row(by, group)
        return row is not None and not row.doubt and abs(difference) > row.threshold

    @property
    def verdict(self) -> list[str]:
        """Return the conclusions, one sentence each; the first gives the mean waits, the second the calibration error."""
        every = self.overall
        percent = 100 * every.bias / every.mean_recorded if every.mean_recorded else math.nan
        relative = f" ({human_difference(percent)})" if math.isfinite(percent) else ""
        before = [*warning_of(self.drops), *(["Waits count from eligible times known only in hindsight."] if self.by_hindsight else [])]
        sentences = [
            f"{' '.join([*before, 'Over'])} {counted(every.jobs, 'job')} of {self.log}, the mean wait is "
            f"{human_time(every.mean_recorded)} in the log and {human_time(every.mean_simulated)} in the simulation under "
            f"{self.policy}{relative}. "
            f"{100 * every.within[1]:.0f} % of the jobs start within 10 min of their recorded start, and the rank correlation is "
            f"{every.rank_correlation:.2f}.",
            f"For all jobs together, the size of a change in hours is not reliable: {every.doubt}."
            if every.doubt
            else f"Over all jobs, differences above {human_time(every.threshold)} are usable.",
        ]
        for by in ("class", "partition"):
            usable: dict[str, list[str]] = {}
            for row in self.rows:
                if row.by == by and not row.doubt:
                    usable.setdefault(human_time(row.threshold), []).append(row.group)
            told = [f"{threshold} for {listed(groups)}" for threshold, groups in usable.items()]
            sentences += [f"Usable differences by {by}: above {'; above '.join(told)}."] if told else []
        return sentences + self.doubted

    @property
    def doubted(self) -> list[str]:
        """Return a sentence, in a list, on the groups that are not usable, with the reasons; an empty list if there are none."""
        groups: dict[str, list[str]] = {}
        for row in self.rows[1:]:
            if row.doubt and row.by in ("class", "partition", "user"):
                groups.setdefault(row.doubt, []).append(group_name(row))
        return [f"Not usable for: {'; '.join(f'{listed(names)} ({why})' for why, names in groups.items())}."] if groups else []

    def table(self) -> Any:
        """Return `rows` and `months` as a polars DataFrame."""
        import polars as pl

        rows = [row.as_dict() for row in (*self.rows, *self.months)]
        for row in rows:
            row.update({f"within_{near}_s": share for near, share in zip(NEAR, row.pop("within"), strict=True)})
        return pl.DataFrame(rows, infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the calibration as a dictionary for JSON, which `read_calibration` can read."""
        record: dict[str, Any] = plain(asdict(self) | {"verdict": self.verdict})
        return record

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the calibration as JSON, atomically, and return the path; raises OutputError."""
        with whole_file(path) as file:
            file.write((json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n").encode())
        return Path(path)

    def check(self, workload: Workload, machine: Machine, policy: str) -> None:
        """Raise WorkloadError if the calibration was made for another log, machine or policy."""
        for what, mine, other in (
            ("log", self.jobs_sha256, jobs_sha256(workload)),
            ("machine", self.machine_digest, machine_digest(machine)),
            ("policy", self.policy, policy),
        ):
            if mine != other:
                text = f"the calibration belongs to another {what} ({getattr(self, what)}); run walltime calibrate again, or omit it"
                raise WorkloadError(text, "other_calibration")


def calibrate(
    workload: Workload,
    machine: Machine | None = None,
    policy: str | Policy | Scheduler | None = None,
    *,
    trim: str = "steady",
    overrun: str = "kill",
    schedule: Schedule | None = None,
    hindsight: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Simulate the log under the site's own policy, and return the agreement between simulated and recorded waits.

    `machine`: by default one pool of the log's processors under EASY. `policy`: by default the policy of the machine. `trim`: which
    jobs are compared, as in `Schedule.summary`; by default all but the first 1 % to end, which met an empty machine, and the jobs that end
    after the last submission, unless this leaves out over a tenth. `schedule`: the schedule, if it has already been simulated.

    Raises WorkloadError for a log without recorded waits, and the errors of `simulate`.

    >>> from walltime.machine import Machine, Partition, Pool
    >>> jobs = Workload.from_arrays(
    ...     submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4, columns={"wait": np.array([0, 30, 4])}
    ... )
    >>> groups = calibrate(jobs, Machine((Pool("a", 1, 4),), (Partition("main", ("a",)),)), "easy", trim="none")
    >>> groups.overall.jobs, round(groups.overall.bias, 1), groups.overall.doubt
    (3, -8.3, 'only 3 jobs')
    """
    check_workload(workload)
    workload, machine = with_hindsight(workload, machine, hindsight, "a calibration")
    if workload.recorded_wait is None:
        raise WorkloadError(f"{workload.origin.name} records no waits to compare with; use a log with start times", "missing_waits")
    machine = machine_of(workload, machine)
    setting = Setting.of(machine, policy)
    if schedule is None:
        schedule = setting.run(workload, overrun=overrun, progress=progress)
    assert schedule.placement is not None, "it ran on a machine of pools"
    jobs = schedule.workload
    recorded = jobs.recorded_wait
    if recorded is None:
        raise WorkloadError(f"no job of {workload.origin.name} with a recorded wait runs on {machine.name}; compare their partitions")
    mask = schedule.measured(trim) & (recorded >= 0) & ~carried_over(jobs)
    if not mask.any():
        raise WorkloadError(
            f"no job of {workload.origin.name} with a recorded wait is left to compare; use trim 'none' or a longer log", "no_measured_jobs"
        )
    start = np.where(recorded >= 0, jobs.submit + recorded, -1)
    since = jobs.columns.get("running_since")
    start = start if since is None else np.where(since >= 0, since, start)
    groups = pool_groups(machine, schedule.placement.partition, jobs.procs, start, start + jobs.runtime)
    rows, months = _rows(schedule, recorded, mask)
    evidence = find_evidence(schedule, schedule.placement, recorded, groups, mask)
    notes = [*placing_notes(jobs, machine), *schedule.interruption_notes, *filter(None, [hindsight_note(jobs)])]
    unknown = {"unknown_wait": (recorded < 0) & ~carried_over(jobs)}
    return Calibration(
        log=jobs.origin.site,
        sha256=jobs.origin.sha256,
        jobs_sha256=jobs_sha256(workload),
        machine=sanitize(machine.name),
        machine_digest=machine_digest(machine),
        policy=schedule.label,
        trim=trim,
        rows=rows,
        months=months,
        utilization=_utilization(schedule, start, groups),
        evidence=replace(evidence, hints=[*notes, *evidence.hints, *_killed(schedule), *omission_sentences([jobs])]),
        version=version(),
        by_hindsight=bool(hindsight_note(jobs)),
        drops=jobs.without(unknown, UNKNOWN_WAIT).origin.drops,
    )


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Read a calibration that `Calibration.write` wrote; raises LogError for an invalid file."""
    where = printable(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LogError(
            f"{where}: cannot be read ({(error.strerror or str(error)).lower()}); use a file that walltime calibrate wrote",
            "unreadable_file",
        ) from error
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not valid JSON; use a file that walltime calibrate wrote", "not_a_calibration") from error
    try:
        return _of(content)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise LogError(f"{where}: not a calibration; use a file that walltime calibrate wrote", "not_a_calibration") from error


def machine_digest(machine: Machine) -> str:
    """Return a checksum of a machine that does not depend on the formatting of its file."""
    return hashlib.sha256(write_machine(machine).encode()).hexdigest()


def _killed(schedule: Schedule) -> list[str]:
    """Return a note if at least 1 % of the jobs exceeded their request in the log and are killed in the simulation."""
    count, jobs = int((schedule.runtime < schedule.workload.runtime).sum()), len(schedule)
    killed = f"{count:,} of {jobs:,} jobs ran longer than requested in the log and are killed in the simulation; --overrun changes this."
    return [killed] if count >= MANY_KILLED * jobs else []


def _rows(schedule: Schedule, recorded: Array, mask: Array) -> tuple[list[Agreement], list[Agreement]]:
    """Return the agreement over all jobs and by group, then the agreement by month."""
    jobs = schedule.workload
    weeks = LogWeeks.of(jobs.submit, (schedule.submit, schedule.start))

    def rows(by: str, groups: Groups) -> list[Agreement]:
        if list(groups.names) == [UNKNOWN] or (len(groups.names) > MOST_GROUPS and by != "month"):
            return []
        return [agreement(by, name, recorded[inside], schedule.wait[inside], weeks, inside) for name, inside in groups.members(mask)]

    found = rows(ALL, Groups([ALL], np.zeros(len(jobs), np.int64)))
    for by in GROUPED_BY:
        found += rows(by, group_jobs(jobs, by, jobs.submit, schedule.end, runtime=schedule.runtime))
    return found, rows("month", recorded_groups(jobs, "month", schedule.runtime))


def _utilization(schedule: Schedule, start: Array, groups: Sequence[PoolGroup]) -> list[Utilization]:
    """Return the utilization from the first to the last submission and, if the log has dates, by calendar month."""
    jobs = schedule.workload
    procs = sum(group.procs for group in groups)
    known = start >= 0
    recorded = start[known], (start + jobs.runtime)[known], jobs.procs[known]
    simulated = schedule.start, schedule.end, jobs.procs

    def used(when: str, begin: int, end: int) -> Utilization:
        shares = [metrics.utilization(start, end_of, size, procs, begin, end) for start, end_of, size in (recorded, simulated)]
        return Utilization(when, shares[0], shares[1])

    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    rows = [used("while jobs arrive", first, last)]
    since = jobs.origin.unix_start_time
    if since is None:
        return rows
    try:
        months = metrics.month_starts(since + first, since + last, jobs.origin.tzinfo())
    except WorkloadError:  # the times of the log are beyond the calendar's range
        return rows
    for (year, month, begin), (_, _, end) in pairwise(months):
        rows.append(used(f"{year}-{month:02d}", max(begin - since, first), min(end - since, last)))
    return rows


def _of(content: Mapping[str, Any]) -> Calibration:
    """Return the calibration stored in a JSON object."""

    def numbers(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: math.nan if value is None else tuple(value) if isinstance(value, list) else value for name, value in row.items()}

    known = {f.name: content[f.name] for f in fields(Calibration)}
    kinds: dict[str, Any] = {"rows": Agreement, "months": Agreement, "utilization": Utilization, "drops": Drop}
    known |= {name: [kind(**numbers(row)) for row in known[name]] for name, kind in kinds.items()}
    evidence = known["evidence"]
    known["evidence"] = Evidence(**(evidence | {"rows": [WaitCause(**row) for row in evidence["rows"]]}))
    if not known["rows"]:
        raise KeyError("rows")
    return Calibration(**known)


def group_name(row: Agreement) -> str:
    """Return the name of a group as sentences and tables show it."""
    return f"{row.group} users" if row.by == "user" else row.group
