"""Jobs as Slurm's accounting has them, from whichever of its outputs: what becomes a job, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from walltime.errors import LogError
from walltime.logs.batch_systems import STILL_PENDING, STILL_RUNNING, Counts, make_log, nothing_left
from walltime.logs.clock import AMBIGUOUS, SKIPPED, ZONE_UNKNOWN, Local, settle
from walltime.logs.joblog import BadLines, JobLog
from walltime.logs.rules import Rule
from walltime.logs.slurm.fields import CANCELLED, COMPLETED, OTHER, PENDING, RUNNING
from walltime.workload import MISSING

Array = np.ndarray

STEP = Rule("step", "drop", "A step of a job, such as `12.batch` or `12.0`; the job has its own record.")
PART_OF_RESIZED = Rule("part_of_resized", "drop", "The record is of a job up to a change of its size (state RESIZING), not of a whole job.")
NEVER_STARTED = Rule("never_started", "drop", "The job ended without having started, and was not cancelled by its user.")
LOST_START = Rule("lost_start", "drop", "The accounting lost the job's start, and the log has no step of it that tells it.")
START_FROM_STEP = Rule("start_from_step", "change", "The accounting lost the job's start; those of its batch step are taken.")
SHRUNK_LIMIT = Rule(
    "shrunk_limit",
    "change",
    "Slurm lowered the limit to start the job early (`--time-min`): the request is the one of the command line (SubmitLine).",
)
REQUEUED = Rule("requeued", "notice", "A run that ended because its job was put back into the queue; each run is a job of its own.")
HET_COMPONENT = Rule("het_component", "notice", "A component of a heterogeneous job; each is a job of its own.")
ELAPSED_DIFFERS = Rule(
    "elapsed_differs",
    "notice",
    "The time elapsed, which is the runtime, is not that from start to end: the job was suspended, or the log is odd.",
)
RULES = (
    STEP,
    PART_OF_RESIZED,
    NEVER_STARTED,
    LOST_START,
    START_FROM_STEP,
    SHRUNK_LIMIT,
    REQUEUED,
    HET_COMPONENT,
    ELAPSED_DIFFERS,
)
TEXT_COLUMNS = {
    "user": "user",
    "account": "group",
    "qos": "queue",
    "partition": "partition",
    "jobname": "executable",
    "state": "state",
    "reason": "reason",
    "reservation": "reservation",
    "cluster": "cluster",
}
"""The texts of Slurm that become numbers with names, and their columns."""


class SlurmLog(JobLog):
    """A log from Slurm's accounting. Besides the common columns it has those of `docs/reference/columns.md`, in Slurm's own names."""

    format: ClassVar[str] = "slurm"
    endings: ClassVar[tuple[str, ...]] = (".json", ".sacct", ".txt", ".csv", ".log")


@dataclass
class Steps:
    """Batch steps, which know when their job started: the job's number, times in Unix time and the time elapsed, s; int64."""

    job: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    start: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    elapsed: Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass
class SlurmJobs:
    """Records of jobs; all arrays int64 with an entry per record, -1 unknown.

    `key`: a number of the job that its steps have too. `requested`: s, NO_LIMIT for none. `asked`: s, limit of the command line of jobs
    with `--time-min`. `status`: see `walltime.logs.slurm.fields.STATES`. `requeued`, `local` (its times came as local time): bool.
    `columns`: others, by the name in the log.
    """

    submit: Local
    eligible: Local
    start: Local
    end: Local
    key: Array
    elapsed: Array
    requested: Array
    asked: Array
    status: Array
    requeued: Array
    allocated: Array
    needed: Array
    local: Array
    columns: Mapping[str, Array]


def slurm_log(jobs: SlurmJobs, steps: Steps, bad: BadLines, names: Mapping[str, Sequence[str]], counts: Counts) -> SlurmLog:
    """The log of the jobs that have ended."""
    times, is_open = settle(jobs.submit, jobs.eligible, jobs.start, jobs.end, jobs.elapsed)
    submit, eligible, start, end = times.values()
    runtime = np.where(jobs.elapsed >= 0, jobs.elapsed, np.where((start >= 0) & (end >= start), end - start, MISSING))
    kept = np.ones(len(submit), bool)

    def drop(rule: Rule, mask: Array) -> None:
        counts.add(rule, mask & kept)
        np.logical_and(kept, ~mask, out=kept)

    drop(STILL_PENDING, jobs.status == PENDING)
    drop(STILL_RUNNING, jobs.status == RUNNING)
    drop(PART_OF_RESIZED, jobs.status == OTHER)
    cancelled = jobs.status == CANCELLED
    lost = kept & (start < 0) & ~cancelled & (jobs.status != MISSING)
    start, runtime, of_steps = _from_steps(lost, jobs, steps, submit, end, start, runtime)
    counts.add(START_FROM_STEP, of_steps)
    drop(NEVER_STARTED, lost & ~of_steps & (jobs.status != COMPLETED) & (runtime <= 0))
    drop(LOST_START, lost & ~of_steps & (runtime <= 0))
    runtime = np.where(cancelled & (start < 0), 0, runtime)
    if not kept.any():
        raise LogError(nothing_left(bad, counts))

    gap = np.abs(end - start - runtime) > 1
    shrunk = (jobs.asked > jobs.requested) & (jobs.requested > 0)
    requested = np.where(shrunk, jobs.asked, jobs.requested)
    counts.add(AMBIGUOUS, is_open & kept)
    counts.add(SKIPPED, kept & np.logical_or.reduce([t.skipped for t in (jobs.submit, jobs.eligible, jobs.start, jobs.end)]))
    counts.add(SHRUNK_LIMIT, shrunk & kept)
    counts.add(REQUEUED, jobs.requeued & kept)
    if "het_job" in jobs.columns:
        counts.add(HET_COMPONENT, (jobs.columns["het_job"] >= 0) & kept)
    counts.add(ELAPSED_DIFFERS, kept & (start >= 0) & (end >= 0) & (jobs.elapsed >= 0) & ~of_steps & gap)
    if bad.options.time_zone is None:
        counts.add(ZONE_UNKNOWN, jobs.local & kept)
    ran = (start >= 0) | (runtime > 0)
    columns = dict(jobs.columns) | {"submit": submit, "eligible": eligible, "start": start, "runtime": runtime, "requested": requested}
    columns |= {
        "status": np.where(jobs.status >= 0, jobs.status, MISSING),
        "allocated_procs": np.where(ran & (jobs.allocated > 0), jobs.allocated, MISSING),
        "requested_procs": np.where(jobs.needed > 0, jobs.needed, MISSING),
    }
    return make_log(SlurmLog, bad, counts, {name: values[kept] for name, values in columns.items()}, names)


def _from_steps(
    lost: Array, jobs: SlurmJobs, steps: Steps, submit: Array, end: Array, start: Array, runtime: Array
) -> tuple[Array, Array, Array]:
    """Starts and runtimes, those that were lost taken from batch steps, and for which jobs they were found."""
    of_steps = np.zeros(len(lost), bool)
    if not lost.any() or not len(steps.job):
        return start, runtime, of_steps
    start, runtime = start.copy(), runtime.copy()
    order = np.argsort(steps.job, kind="stable")
    by_job = steps.job[order]
    for row in np.flatnonzero(lost):
        low, high = np.searchsorted(by_job, [jobs.key[row], jobs.key[row] + 1])
        for place in order[low:high]:
            begin, spent = int(steps.start[place]), int(steps.elapsed[place])
            if begin >= submit[row] and spent >= 0 and (end[row] < 0 or begin + spent <= end[row] + 1):
                start[row], runtime[row], of_steps[row] = begin, spent, True
                break
    return start, runtime, of_steps
