"""Join a snapshot and the recent past of a log to one workload on one machine, from which simulations start."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.machine import NO_OVERHEAD, Machine, Placement, place
from walltime.machine.omissions import omissions, with_settings
from walltime.machine.placing import NEVER
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.workload import MISSING, Array, Origin, Workload

NAMED = {
    "user": "user", "group": "account", "queue": "qos", "partition": "partition", "executable": "name", "requested_gpu_type": "gpu_type",
    "constraints": "constraints", "reservation": "reservation", "licences": "licences",
}  # fmt: skip
"""Columns of names in a log, and the corresponding attributes of a snapshot's job."""
UNLIMITED = 365 * 86400
"""The limit, s, with which Slurm plans a job without a limit."""
OPEN = 2**31
"""The value, s, of a wait or runtime that has not ended yet."""
LATEST_JOBS = 100_000
"""Maximum number of jobs of the history that are used, those that ended last."""
LATEST_WEEKS = 10
"""Number of weeks before the snapshot from which arrivals are drawn."""


@dataclass(frozen=True, eq=False)
class InitialState:
    """The simulated jobs of a snapshot, the past jobs from which arrivals and runtimes are drawn, and the machine.

    Times are s after `zero`, a Unix time; `now` is the time of the snapshot.

    * `jobs`: the snapshot's jobs, first the running ones, then the waiting ones by priority; `submit`: their submit times
    * `workload`: these jobs, then the jobs of the recent past, all submitted at `now`; `recent`: the true submit times of the latter,
      ascending
    * `placement`: the resources that these jobs need
    * `demands`, `nodes`: requests on nodes, and the machine's nodes; None except under Slurm's scheduling
    * `history`: all jobs that had ended, at the times `ended`; `lost`: the jobs of the snapshot that do not fit the machine
    """

    zero: int
    now: int
    jobs: Sequence[SnapshotJob]
    workload: Workload
    placement: Placement
    demands: Any
    nodes: Any
    submit: Array
    recent: Array
    history: Workload
    ended: Array
    lost: Sequence[SnapshotJob]


def make_initial_state(
    snapshot: Snapshot, history: Workload, scheduler: Scheduler, without: Collection[str] = (), loose: Collection[str] = ()
) -> InitialState:
    """Return the snapshot's jobs on its machine, with the jobs of the history that had ended by then.

    `without`: labels of jobs that are left out; `loose`: labels of running jobs that may be on any nodes, without memory.
    """
    if scheduler.prediction is not None:
        raise PolicyError(
            "start times are simulated with the scheduler's limits; leave the predictor out of the policy", "unsupported_predictor"
        )
    jobs = _in_order(snapshot, without)
    zero = min(snapshot.time, *(snapshot.time if job.start is None else job.start for job in jobs)) - 1
    now = snapshot.time - zero
    history, ended = _ended(history, snapshot.time)
    recent = np.flatnonzero(_submitted(history) >= snapshot.time - LATEST_WEEKS * 7 * 86400)
    names, job_numbers, history_numbers = common_names(jobs, history)
    history = replace(history, columns={**history.columns, **history_numbers})
    machine = replace(snapshot.machine, overhead=NO_OVERHEAD)
    origin = Origin(name=machine.name, unix_start_time=zero, time_zone=snapshot.time_zone, names=names)
    settings = scheduler.policy.settings(machine.slurm)
    columns = _job_columns(jobs, job_numbers, machine, zero)
    most = max(machine.procs, *columns["procs"], int(history.procs.max(initial=1)))
    joined = _join(columns, history.take(recent, ""), most, origin, now)
    demands = nodes = None
    if settings is not None:
        from walltime.node_demands import demands_on, nodes_of
        from walltime.simulation.nodes import place_on_nodes

        placed, placement, demands = place_on_nodes(joined, machine, settings["select_type"] == "linear")
        requests = replace(placement, since=np.full_like(placement.since, NEVER))  # running jobs included
        nodes = nodes_of(placement.machine, requests, placed)
        strict = demands_on(nodes, placed, requests)._replace(since=demands.since)
        free = np.isin(placed.job_id, [number for number, job in enumerate(jobs, 1) if job.label in loose])
        arrays = [name for name in demands._fields if name not in ("after", "limits")]
        demands = strict._replace(**{name: np.where(free, getattr(demands, name), getattr(strict, name)) for name in arrays})
    else:
        placed, placement = place(joined, machine)
    known = placed.job_id <= len(jobs)
    longest = placed.runtime.max(initial=0) or OPEN  # the runtimes of the snapshot's jobs, whose requests have a share, are not known
    runtime = np.where(known, np.minimum(placed.requested, longest), placed.runtime)
    found = omissions(replace(placed, runtime=runtime), machine, placement.partition)
    if settings is not None:
        found = with_settings(found, machine, settings.notes)
    placed = replace(placed, origin=replace(placed.origin, omissions=found))
    kept = placed.job_id[known] - 1
    mine = [jobs[k] for k in kept]
    if not any(job.start is None for job in mine):
        raise PolicyError("no waiting job fits the machine; compare their partitions and sizes")
    return InitialState(
        zero=zero,
        now=now,
        jobs=mine,
        workload=placed,
        placement=placement,
        demands=demands,
        nodes=nodes,
        submit=np.array([_submit(job, now, zero, settings is not None) for job in mine], np.int64),
        recent=_submitted(history)[recent[placed.job_id[~known] - 1 - len(jobs)]] - zero,
        history=history,
        ended=ended - zero,
        lost=[jobs[k] for k in np.setdiff1d(np.arange(len(jobs)), kept)],
    )


def _in_order(snapshot: Snapshot, without: Collection[str]) -> list[SnapshotJob]:
    """Return the running jobs, by start, and then the waiting jobs, by priority."""
    running = [job for job in snapshot.running if job.label not in without]
    running.sort(key=lambda job: (job.start or 0, job.job, job.task or 0))
    if not snapshot.waiting:
        never = " ".join(f"Job {job.label} never starts: {job.never}" for job in snapshot.never)
        raise PolicyError(f"no job of the snapshot waits for resources, so there is nothing to predict. {never}".strip(), "no_waiting_jobs")
    return running + sorted(snapshot.waiting, key=lambda job: (-(job.priority or 0), job.submit or 0, job.job, job.task or 0))


def _job_columns(jobs: Sequence[SnapshotJob], names: Mapping[str, list[int]], machine: Machine, zero: int) -> dict[str, list[int]]:
    """Return the columns of the snapshot's jobs, with `running_since` (s from `zero`); `names`: numbers from `common_names`."""
    whole = {one.name: machine.pools[machine.place_of(one.pools[0])].procs for one in machine.partitions}
    return {
        **names,
        **{name: [getattr(job, name) for job in jobs] for name in ("nodes", "gpus", "time_min", "array_limit")},
        "procs": [max(job.cpus, job.nodes * whole[job.partition] if job.exclusive else 1) for job in jobs],
        "requested": [requested(job) for job in jobs],
        "exclusive": [int(job.exclusive) for job in jobs],
        "gpus_per_node": [job.node_gpus for job in jobs],
        "mem_mb": [job.memory_mb for job in jobs],
        "mem_mb_per_node": [job.node_memory_mb or MISSING for job in jobs],
        "mem_mb_per_cpu": [job.cpu_memory_mb or MISSING for job in jobs],
        machine.second: [job.gpus if machine.second == "gpus" else job.memory_mb for job in jobs],
        "array_job": [MISSING if job.array is None else job.array for job in jobs],
        "running_since": [MISSING if job.start is None else job.start - zero for job in jobs],
    }


def _join(columns: Mapping[str, Sequence[int]], recent: Workload, machine_procs: int, origin: Origin, now: int) -> Workload:
    """Return the snapshot's jobs, with these columns, and then the recent past's jobs as one workload, all submitted at `now`."""
    count = len(columns["procs"])
    own = {"procs": recent.procs, "requested": recent.requested}
    unknown = np.full(len(recent), MISSING, np.int64)
    others = {**recent.columns, **own, "array_job": unknown}  # limits on running tasks apply only to the snapshot's arrays
    both = {name: np.concatenate([values, others.get(name, unknown)]).astype(np.int64) for name, values in columns.items()}
    both["nodes"] = np.maximum(both["nodes"], 1)
    return Workload.from_arrays(
        submit=np.full(count + len(recent), now),
        runtime=np.concatenate([np.zeros(count, np.int64), recent.runtime]),
        procs=both.pop("procs"),
        requested=both.pop("requested"),
        machine_procs=machine_procs,
        columns=both,
        origin=origin,
    )


def _submit(job: SnapshotJob, now: int, zero: int, slurm: bool) -> int:
    """Return the time at which a job of the snapshot arrives, s from `zero`.

    A waiting job arrives now or later, a running one at its start, except under Slurm, where cycles begin now.
    """
    if job.start is not None and not slurm:
        return job.start - zero
    return now if job.eligible is None else max(now, job.eligible - zero)


def append_jobs(log: Workload, jobs: Sequence[SnapshotJob], numbers: Sequence[int] | Array, time: int) -> tuple[Workload, Array]:
    """Append a snapshot's jobs, which do not end, to a log with waits; return the new log and the former indices of its jobs.

    `numbers`: the numbers of the snapshot's jobs; `time`: the snapshot's Unix time. The wait of a waiting job does not end.
    """
    zero = log.origin.unix_start_time or 0
    names, job_numbers, log_numbers = common_names(jobs, log)
    submit = np.array([job.submit or job.start or time for job in jobs], np.int64) - zero
    start = np.array([OPEN + time if job.start is None else job.start for job in jobs], np.int64) - zero
    first, unknown = min(int(submit.min(initial=0)), 0), np.full(len(jobs), MISSING)
    pairs = {name: (column, unknown) for name, column in log.columns.items()}
    pairs |= {name: (log_numbers[name], np.array(job_numbers[name], np.int64)) for name in names if name in log.columns}
    pairs |= {
        "wait": (log.columns["wait"], np.maximum(start - submit, 0)),
        "job_id": (log.job_id, np.asarray(numbers)),
        "submit": (log.submit - first, submit - first),
        "runtime": (log.runtime, np.full(len(jobs), OPEN)),
        "requested": (log.requested, np.array([requested(job) for job in jobs])),
        "procs": (log.procs, np.array([max(job.cpus, 1) for job in jobs])),
    }
    columns = {name: np.concatenate(pair).astype(np.int64) for name, pair in pairs.items()}
    order = np.lexsort((columns["job_id"], columns["submit"]))
    columns = {name: column[order] for name, column in columns.items()}
    arrays: dict[str, Any] = {name: columns.pop(name) for name in ("job_id", "submit", "runtime", "requested", "procs")}
    origin = replace(log.origin, unix_start_time=zero + first, names={**log.origin.names, **names})
    joined = Workload.from_arrays(**arrays, machine_procs=int(arrays["procs"].max()), columns=columns, origin=origin)
    return joined, order


def requested(job: SnapshotJob) -> int:
    """Return the requested runtime of a snapshot's job, s."""
    return max(1, UNLIMITED if job.limit is None else job.limit)


def ends(log: Workload) -> Array:
    """Return the Unix times at which the jobs of a log ended; an unknown wait counts as 0."""
    return _submitted(log) + np.maximum(log.columns.get("wait", np.zeros(len(log), np.int64)), 0) + log.runtime


def _submitted(history: Workload) -> Array:
    return history.submit + (history.origin.unix_start_time or 0)


def _ended(history: Workload, time: int) -> tuple[Workload, Array]:
    """Return the jobs of the history that had ended by this time, at most LATEST_JOBS, and their ends (Unix times)."""
    ended = ends(history)
    known = ended <= time
    if known.sum() > LATEST_JOBS:
        known &= ended >= np.partition(ended[known], -LATEST_JOBS)[-LATEST_JOBS]
    return history.take(known, ""), ended[known]


def common_names(
    jobs: Sequence[SnapshotJob], history: Workload
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[int]], dict[str, Array]]:
    """Number the names of the snapshot and of the history with the same numbers.

    Returns the names, the numbers of the snapshot's jobs, and the numbers of the history's jobs, each by column.
    """
    names: dict[str, tuple[str, ...]] = {}
    job_numbers: dict[str, list[int]] = {}
    history_numbers: dict[str, Array] = {}
    for column, attribute in NAMED.items():
        known: dict[str, int] = {}

        def number(name: str, known: dict[str, int] = known) -> int:
            return MISSING if not name else known.setdefault(name, len(known) + 1)

        old_names = history.origin.names.get(column, ())
        values = history.columns.get(column, np.full(len(history), MISSING, np.int64))
        distinct, place = np.unique(values, return_inverse=True)
        texts = ["" if k < 0 else old_names[k - 1] if 0 < k <= len(old_names) else str(k) for k in distinct.tolist()]
        history_numbers[column] = np.array([number(text) for text in texts], np.int64)[place.ravel()] if len(distinct) else values
        job_numbers[column] = [number(getattr(job, attribute)) for job in jobs]
        names[column] = tuple(known)
    return names, job_numbers, history_numbers
