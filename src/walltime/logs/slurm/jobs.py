"""Records of Slurm's accounting, from any of its outputs, and the jobs that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from walltime.errors import LogError
from walltime.logs.batch_systems import STILL_PENDING, STILL_RUNNING, Counts, make_log, nothing_left
from walltime.logs.clock import AMBIGUOUS, SKIPPED, ZONE_UNKNOWN, Local, settle
from walltime.logs.joblog import BadLines, JobLog, Rule
from walltime.logs.slurm.fields import CANCELLED, COMPLETED, OTHER, PENDING, RUNNING
from walltime.workload import MISSING

Array = np.ndarray

STEP = Rule("step", "drop", "The record is of a step, such as `12.batch` or `12.0`; the job has its own record.")
PART_OF_RESIZED = Rule("part_of_resized", "drop", "The record is of a job up to a change of its size (state RESIZING), not of a whole job.")
NEVER_STARTED = Rule("never_started", "drop", "The job ended without having started, and was not cancelled by its user.")
LOST_START = Rule("lost_start", "drop", "The accounting lost the job's start, and the log has no batch step with this time.")
START_FROM_STEP = Rule("start_from_step", "change", "The accounting lost the job's start; start and runtime come from its batch step.")
SHRUNK_LIMIT = Rule(
    "shrunk_limit",
    "change",
    "Slurm lowered the limit to start the job early (`--time-min`): the request is taken from the command line (SubmitLine).",
)
REQUEUED = Rule("requeued", "notice", "The run ended because its job was put back into the queue; each run is a separate job.")
HET_COMPONENT = Rule("het_component", "notice", "The job is a component of a heterogeneous job; each component is a separate job.")
ELAPSED_DIFFERS = Rule(
    "elapsed_differs",
    "notice",
    "The elapsed time, which is the runtime, differs from the time from start to end: the job was suspended, or the log is inconsistent.",
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
"""Slurm's fields that become numbers with names, and their columns."""


class SlurmLog(JobLog):
    """A log from Slurm's accounting; its further columns, with Slurm's names, are in `docs/reference/columns.md`."""

    format: ClassVar[str] = "slurm"
    endings: ClassVar[tuple[str, ...]] = (".json", ".sacct", ".txt", ".csv", ".log")


def slurm_log(
    records: Mapping[str, Array], local: Sequence[Local], steps: Array, bad: BadLines, names: Mapping[str, Sequence[str]], counts: Counts
) -> SlurmLog:
    """Return the log of the jobs that have ended.

    `records`: columns of the log, int64, -1 if unknown. `requested`: s, NO_LIMIT for none. `status`: as in
    `walltime.logs.slurm.fields.STATES`. More columns have names in capital letters: KEY, a number that a job and its steps share; ELAPSED,
    s; LIMIT, s, in the command lines of jobs with `--time-min`; REQUEUED; and LOCAL, whether the times were local. `local`: submission,
    eligible time, start and end. `steps`: shape (3, batch steps), int64: the key of the job, the Unix time of its start, the elapsed time
    in s.
    """
    elapsed, status, requested = records["ELAPSED"], records["status"], records["requested"]
    times, is_open = settle(local, elapsed)
    submit, eligible, start, end = times.values()
    runtime = np.where(elapsed >= 0, elapsed, np.where((start >= 0) & (end >= start), end - start, MISSING))
    kept = np.ones(len(submit), bool)

    def drop(rule: Rule, mask: Array) -> None:
        counts.add(rule, mask & kept)
        np.logical_and(kept, ~mask, out=kept)

    drop(STILL_PENDING, status == PENDING)
    drop(STILL_RUNNING, status == RUNNING)
    drop(PART_OF_RESIZED, status == OTHER)
    cancelled = status == CANCELLED
    lost = kept & (start < 0) & ~cancelled & (status != MISSING)
    start, runtime, of_steps = _from_steps(lost, records["KEY"], steps, submit, end, start, runtime)
    counts.add(START_FROM_STEP, of_steps)
    drop(NEVER_STARTED, lost & ~of_steps & (status != COMPLETED) & (runtime <= 0))
    drop(LOST_START, lost & ~of_steps & (runtime <= 0))
    runtime = np.where(cancelled & (start < 0), 0, runtime)
    if not kept.any():
        raise LogError(nothing_left(bad, counts))

    gap = np.abs(end - start - runtime) > 1
    shrunk = (records["LIMIT"] > requested) & (requested > 0)
    counts.add(AMBIGUOUS, is_open & kept)
    counts.add(SKIPPED, kept & np.logical_or.reduce([times.skipped for times in local]))
    counts.add(SHRUNK_LIMIT, shrunk & kept)
    counts.add(REQUEUED, records["REQUEUED"] & kept)
    counts.add(HET_COMPONENT, (records["het_job"] >= 0) & kept)
    counts.add(ELAPSED_DIFFERS, kept & (start >= 0) & (end >= 0) & (elapsed >= 0) & ~of_steps & gap)
    if bad.options.time_zone is None:
        counts.add(ZONE_UNKNOWN, records["LOCAL"] & kept)
    ran = (start >= 0) | (runtime > 0)
    allocated, requested_procs = records["allocated_procs"], records["requested_procs"]
    columns = {name: values for name, values in records.items() if not name.isupper()} | {
        **{"submit": submit, "eligible": eligible, "start": start, "runtime": runtime},
        "requested": np.where(shrunk, records["LIMIT"], requested),
        "status": np.where(status >= 0, status, MISSING),
        "allocated_procs": np.where(ran & (allocated > 0), allocated, MISSING),
        "requested_procs": np.where(requested_procs > 0, requested_procs, MISSING),
    }
    return make_log(SlurmLog, bad, counts, {name: values[kept] for name, values in columns.items()}, names)


def _from_steps(
    lost: Array, keys: Array, steps: Array, submit: Array, end: Array, start: Array, runtime: Array
) -> tuple[Array, Array, Array]:
    """Starts and runtimes, with lost ones taken from batch steps, and a mask of the jobs whose start was found there."""
    of_steps = np.zeros(len(lost), bool)
    start, runtime = start.copy(), runtime.copy()
    steps = steps[:, np.argsort(steps[0], kind="stable")]
    for row in np.flatnonzero(lost):
        low, high = np.searchsorted(steps[0], [keys[row], keys[row] + 1])
        for begin, elapsed in steps[1:, low:high].T.tolist():
            if begin >= submit[row] and elapsed >= 0 and (end[row] < 0 or begin + elapsed <= end[row] + 1):
                start[row], runtime[row], of_steps[row] = begin, elapsed, True
                break
    return start, runtime, of_steps
