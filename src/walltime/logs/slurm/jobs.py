"""Convert records of Slurm's accounting, from any of its outputs, to jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from walltime.logs import rules
from walltime.logs.batch_systems import make_log
from walltime.logs.clock import Local, settle
from walltime.logs.joblog import JobLog, repeated
from walltime.logs.reader import ReaderState
from walltime.logs.rules import Rule
from walltime.logs.slurm import jobstats
from walltime.logs.slurm.fields import CANCELLED, COMPLETED, OTHER, PENDING, RUNNING
from walltime.logs.slurm.steps import Steps
from walltime.workload import MISSING, Array
from walltime.workload.drops import EARLIER_RUN

STEP = Rule("step", "drop", "The record describes a step, such as `12.batch` or `12.0`; the job has its own record.")
PART_OF_RESIZED = Rule(
    "part_of_resized", "drop", "The record describes a job up to a change of its size (state RESIZING), not the whole job."
)
NEVER_STARTED = Rule("never_started", "drop", "The job ended without having started, and was not cancelled by its user.")
LOST_START = Rule("lost_start", "drop", "The accounting lost the job's start, and the log has no batch step with this time.")
START_FROM_STEP = Rule("start_from_step", "change", "The accounting lost the job's start; start and runtime come from its batch step.")
SHRUNK_LIMIT = Rule(
    "shrunk_limit",
    "change",
    "Slurm lowered the limit to start the job early (`--time-min`): the request is taken from the command line (SubmitLine).",
)
GPUS_OF_LINE = Rule(
    "gpus_of_line",
    "change",
    "The accounting has no GPUs (`AccountingStorageTRES` lacks `gres/gpu`): they are those of the command line (SubmitLine), without "
    "requests in job scripts.",
)
REQUEUED = Rule("requeued", "notice", "The run ended because its job was put back into the queue; each run is a separate job.")
HET_COMPONENT = Rule("het_component", "notice", "The job is a component of a heterogeneous job; each component is a separate job.")
EARLIER = Rule(
    EARLIER_RUN,
    "drop",
    "The record describes an earlier run of a job that was put back into the queue (requeued, preempted, or after the failure of a node). "
    "Runs are joined: the job has its first submission and its last run (`--join-runs`).",
)
JOINED_RUNS = Rule(
    "joined_runs",
    "change",
    "The job was put back into the queue, and its runs are joined: it has its first submission and its last run; the column "
    "`earlier_runtime` has the seconds of the earlier runs.",
)
SEVERAL_CLUSTERS = Rule(
    "several_clusters", "notice", "The log has several clusters, and this is not the one of most jobs; keep one with `--remove`."
)
ELAPSED_DIFFERS = Rule(
    "elapsed_differs",
    "notice",
    "The elapsed time, which is the runtime, differs from the time from start to end: the job was suspended, or the log is inconsistent.",
)
RULES = (
    STEP, EARLIER, PART_OF_RESIZED, NEVER_STARTED, LOST_START, START_FROM_STEP, SHRUNK_LIMIT, GPUS_OF_LINE, REQUEUED, HET_COMPONENT,
    ELAPSED_DIFFERS, JOINED_RUNS, SEVERAL_CLUSTERS,
)  # fmt: skip
AGAIN = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
"""The states of a run after which Slurm may have put the job back into the queue."""
TEXT_COLUMNS = {
    "user": "user", "account": "group", "qos": "queue", "partition": "partition", "jobname": "executable", "state": "state",
    "reason": "reason", "reservation": "reservation", "cluster": "cluster", "nodelist": "node_list", "constraints": "constraints",
    "licenses": "licences",
}  # fmt: skip
"""Slurm's fields of names, which become numbers, and their columns in the log."""


def slurm_log(
    state: ReaderState, records: dict[str, Array], local: Sequence[Local], steps: Steps, names: Mapping[str, Sequence[str]]
) -> JobLog:
    """Return the log of the jobs that have ended; its additional columns, with Slurm's names, are in `docs/reference/columns.md`.

    `records`: columns of the log, int64 or float64, -1 if unknown; it is emptied to save memory. `requested`: s, NO_LIMIT for none.
    `status`: as in `walltime.logs.slurm.fields.STATES`. `local`: submission, eligible time, start and end.

    Columns with capital letters do not become columns of the log:

    - KEY: a number that a job and its steps share; IDENTIFIED: whether it belongs to one job only
    - REQUEUED: whether the run was put back into the queue; AGAIN: whether its state is in `AGAIN`; LOCAL: whether its times were local
    - ELAPSED: s; LIMIT: s, from command lines with `--time-min`
    - SUMMARY:...: the measures of `walltime.logs.slurm.jobstats`, which replace those of the steps
    """
    elapsed, status, requested, keys = records["ELAPSED"], records["status"], records["requested"], records["KEY"]
    times, is_open = settle(local, elapsed)
    submit, eligible, start, end = times.values()
    runtime = np.where(elapsed >= 0, elapsed, np.where((start >= 0) & (end >= start), end - start, MISSING))
    kept = np.ones(len(submit), bool)

    same = (keys, records["cluster"], submit, start, end, elapsed, status, records["allocated_procs"])
    state.drop(kept, rules.REPEATED_RECORD, records["IDENTIFIED"] & repeated(same))
    earlier = np.zeros(len(submit), np.int64)
    if state.options.join_runs:
        joined, before, earlier = _runs(kept, keys, records["cluster"], records["AGAIN"], submit, start, runtime)
        state.drop(kept, EARLIER, before, np.maximum(runtime, 0) * np.maximum(records["allocated_procs"], 0).astype(np.float64))
        submit, eligible = np.where(joined >= 0, joined, submit), np.where(joined >= 0, np.minimum(eligible, joined), eligible)
    state.drop(kept, rules.STILL_PENDING, status == PENDING)
    state.drop(kept, rules.STILL_RUNNING, status == RUNNING)
    state.drop(kept, PART_OF_RESIZED, status == OTHER)
    cancelled = status == CANCELLED
    lost = kept & (start < 0) & ~cancelled & (status != MISSING)
    of_steps = np.zeros(len(lost), bool)
    if lost.any() and len(found := steps.starts(lost, keys, submit, end)):
        rows, start, runtime = found["row"].to_numpy(), start.copy(), runtime.copy()
        of_steps[rows], start[rows], runtime[rows] = True, found["START"].to_numpy(), found["ELAPSED"].to_numpy()
    state.count(START_FROM_STEP, of_steps)
    state.drop(kept, NEVER_STARTED, lost & ~of_steps & (status != COMPLETED) & (runtime <= 0))
    state.drop(kept, LOST_START, lost & ~of_steps & (runtime <= 0))
    runtime = np.where(cancelled & (start < 0), 0, runtime)
    if not kept.any():
        raise state.no_jobs()

    gap = np.abs(end - start - runtime) > 1
    shrunk = (records["LIMIT"] > requested) & (requested > 0)
    state.count(rules.AMBIGUOUS, is_open & kept)
    state.count(rules.SKIPPED, kept & np.logical_or.reduce([times.skipped for times in local]))
    state.count(SHRUNK_LIMIT, shrunk & kept)
    of_line = (records["gpus"] < 0) & (records["GPUS"] > 0)
    state.count(GPUS_OF_LINE, of_line & kept)
    for name in ("gpus", "requested_gpus"):
        records[name] = np.where(of_line, records["GPUS"], records[name])
    state.count(JOINED_RUNS, (earlier > 0) & kept)
    state.count(REQUEUED, records["REQUEUED"] & kept)
    state.count(HET_COMPONENT, (records["het_job"] >= 0) & kept)
    state.count(ELAPSED_DIFFERS, kept & (start >= 0) & (end >= 0) & (elapsed >= 0) & ~of_steps & gap)
    clusters = np.bincount(np.maximum(records["cluster"][kept], 0))
    state.count(SEVERAL_CLUSTERS, int(clusters[1:].sum() - clusters[1:].max(initial=0)))
    if state.options.time_zone is None:
        state.count(rules.ZONE_UNKNOWN, records["LOCAL"] & kept)
    ran = (start >= 0) | (runtime > 0)
    allocated, requested_procs = records["allocated_procs"], records["requested_procs"]
    columns = {name: values for name, values in records.items() if not name.isupper()} | {
        **{"submit": submit, "eligible": eligible, "start": start, "runtime": runtime},
        "requested": np.where(shrunk, records["LIMIT"], requested),
        "status": np.where(status >= 0, status, MISSING),
        "allocated_procs": np.where(ran & (allocated > 0), allocated, MISSING),
        "requested_procs": np.where(requested_procs > 0, requested_procs, MISSING),
        **steps.used(keys, start),
    }
    summary = {name: records[f"SUMMARY:{name.upper()}"] for name in jobstats.MEASURES}
    summary["cpu_time"] = np.where(allocated > 0, summary.pop("CPU") / np.maximum(allocated, 1), MISSING)
    if earlier.any():
        columns["earlier_runtime"] = earlier
    total = columns.pop("GPU_TOTAL", None)
    if total is not None:
        gpus = records["gpus"]
        columns["gpu_use"] = np.where((total >= 0) & (gpus > 0), total / np.maximum(gpus, 1), columns.get("gpu_use", MISSING))
    for name, measured in summary.items():
        columns[name] = np.where(measured >= 0, measured, columns.get(name, MISSING))
    records.clear()
    return make_log(state, "slurm", {name: columns.pop(name)[kept] for name in list(columns)}, names)


def _runs(
    kept: Array, keys: Array, clusters: Array, again: Array, submit: Array, start: Array, runtime: Array
) -> tuple[Array, Array, Array]:
    """Join the runs of jobs that were put back into the queue, in the order of submission.

    Returns the first submission of each job at its last run (-1 for jobs with one run), which runs are earlier ones (bool), and, at the
    last run, the total runtime of the earlier ones, s.
    """
    first, before, earlier = np.full(len(keys), MISSING), np.zeros(len(keys), bool), np.zeros(len(keys), np.int64)
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((start[rows], submit[rows], clusters[rows], keys[rows]))]
    follows = (keys[rows][1:] == keys[rows][:-1]) & (clusters[rows][1:] == clusters[rows][:-1]) & again[rows][:-1]
    for run, later in zip(rows[:-1][follows].tolist(), rows[1:][follows].tolist(), strict=True):
        before[run] = True
        first[later] = submit[run] if first[run] < 0 else first[run]
        earlier[later] = earlier[run] + max(int(runtime[run]), 0)
        earlier[run] = 0
    return first, before, earlier
