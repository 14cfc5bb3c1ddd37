"""A snapshot and the log of the recent past as jobs of one workload on one machine, from which simulations into the future are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime.errors import PolicyError
from walltime.machine import NO_OVERHEAD, Machine, Placement, place
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.workload import MISSING, Origin, Workload

Array = np.ndarray

NAMED = {"user": "user", "group": "account", "queue": "qos", "partition": "partition", "executable": "name"}
"""Columns of names, and what holds them in a job of a snapshot."""
UNLIMITED = 365 * 86400
"""The limit of a job that has none, s, as Slurm plans with it."""
LATEST_JOBS = 100_000
"""So many jobs of the history are used, those that ended last."""
LATEST_WEEKS = 10
"""Jobs to come are drawn from so many of the last weeks."""


@dataclass(frozen=True, eq=False)
class InitialState:
    """The jobs of a snapshot that are simulated, those of the history from which others are drawn, and the machine.

    Times are s from `zero`, a Unix time. `jobs`: of the snapshot, those that run first, then those that wait in the order of their
    priorities. `workload`: these and then the jobs of the recent past, as the machine takes them, all submitted at `now`; `placement`,
    `wants`: what they need; `submit`: of the snapshot's jobs, s, `recent`: of the others, s, ascending. `history`: all jobs that had ended,
    and `ended`, when, s. `lost`: the snapshot's jobs that do not fit the machine.
    """

    zero: int
    now: int
    jobs: Sequence[SnapshotJob]
    workload: Workload
    placement: Placement
    wants: object
    submit: Array
    recent: Array
    history: Workload
    ended: Array
    lost: Sequence[SnapshotJob]

    @property
    def running(self) -> Array:
        """Which of the snapshot's jobs run: bool."""
        return np.array([job.start is not None for job in self.jobs], bool)


def initial_state_of(snapshot: Snapshot, history: Workload, scheduler: Scheduler, without: Collection[str] = ()) -> InitialState:
    """The snapshot's jobs on its machine, and of the history what was known at that moment: the jobs that had ended.

    `without`: labels of jobs that are left out.
    """
    if scheduler.prediction is not None:
        raise PolicyError(
            "start times are simulated with the limits that the scheduler knows; leave the predictor out of the policy",
            "unsupported_predictor",
        )
    jobs = _in_order(snapshot, without)
    zero = min(snapshot.time, *(snapshot.time if job.start is None else job.start for job in jobs)) - 1
    now = snapshot.time - zero
    history, ended = _ended(history, snapshot.time)
    recent = np.flatnonzero(_submitted(history) >= snapshot.time - LATEST_WEEKS * 7 * 86400)
    names, of_jobs, of_history = common_names(jobs, history)
    history = replace(history, columns={**history.columns, **of_history})
    machine = replace(snapshot.machine, overhead=NO_OVERHEAD)
    origin = Origin(name=machine.name, unix_start_time=zero, time_zone=snapshot.time_zone, names=names)
    settings = scheduler.policy.settings(machine.slurm)
    columns = _columns_of(jobs, of_jobs, machine, zero)
    most = max(machine.procs, *columns["procs"], int(history.procs.max(initial=1)))
    everybody = _everybody(columns, history.take(recent, ""), most, origin, now)
    wants: object = None
    if settings is not None:
        from walltime.simulation.nodes import place_on_nodes

        placed, placement, wants = place_on_nodes(everybody, machine, settings["select_type"] == "linear")
    else:
        placed, placement = place(everybody, machine)
    known = placed.job_id <= len(jobs)
    kept = placed.job_id[known] - 1
    mine = [jobs[k] for k in kept]
    if not any(job.start is None for job in mine):
        raise PolicyError("none of the waiting jobs fits the machine; compare their partitions and sizes")
    return InitialState(
        zero=zero,
        now=now,
        jobs=mine,
        workload=placed,
        placement=placement,
        wants=wants,
        submit=np.array([_submit(job, now, zero, settings is not None) for job in mine], np.int64),
        recent=_submitted(history)[recent[placed.job_id[~known] - 1 - len(jobs)]] - zero,
        history=history,
        ended=ended - zero,
        lost=[jobs[k] for k in np.setdiff1d(np.arange(len(jobs)), kept)],
    )


def _in_order(snapshot: Snapshot, without: Collection[str]) -> list[SnapshotJob]:
    """The jobs that run, by their starts, and those that wait, by their priorities."""
    running = [job for job in snapshot.running if job.label not in without]
    running.sort(key=lambda job: (job.start or 0, job.job, job.task or 0))
    if not snapshot.waiting:
        raise PolicyError("no job of the snapshot waits for a place, so there is nothing to predict", "no_waiting_jobs")
    return running + sorted(snapshot.waiting, key=lambda job: (-(job.priority or 0), job.submit or 0, job.job, job.task or 0))


def _columns_of(jobs: Sequence[SnapshotJob], names: Mapping[str, list[int]], machine: Machine, zero: int) -> dict[str, list[int]]:
    """The columns of the snapshot's jobs, as the history has them, and `running_since`, s from `zero`; `names`: as of `common_names`."""
    whole = {one.name: machine.pools[machine.place_of(one.pools[0])].procs for one in machine.partitions}
    return {
        **names,
        "procs": [max(job.cpus, job.nodes * whole[job.partition] if job.exclusive else 1) for job in jobs],
        "requested": [max(1, UNLIMITED if job.limit is None else job.limit) for job in jobs],
        "nodes": [job.nodes for job in jobs],
        "exclusive": [int(job.exclusive) for job in jobs],
        "time_min": [job.time_min for job in jobs],
        machine.second: [job.gpus if machine.second == "gpus" else job.memory_mb for job in jobs],
        "array_job": [MISSING if job.array is None else job.array for job in jobs],
        "array_limit": [job.array_limit for job in jobs],
        "running_since": [MISSING if job.start is None else job.start - zero for job in jobs],
    }


def _everybody(columns: Mapping[str, Sequence[int]], recent: Workload, machine_procs: int, origin: Origin, now: int) -> Workload:
    """The jobs of the snapshot, with these columns, and then those of the recent past, as one workload, all submitted at `now`."""
    count = len(columns["procs"])
    own = {"procs": recent.procs, "requested": recent.requested}
    unknown = np.full(len(recent), MISSING, np.int64)
    others = {**recent.columns, **own, "array_job": unknown}  # a limit of tasks is one of the array's own
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
    """When a job of the snapshot comes, s from zero.

    A waiting one comes now or later; one that runs came when it started, except under Slurm, whose cycles begin now.
    """
    if job.start is not None and not slurm:
        return job.start - zero
    return now if job.eligible is None else max(now, job.eligible - zero)


def _submitted(history: Workload) -> Array:
    """Unix times of the submissions."""
    return history.submit + (history.origin.unix_start_time or 0)


def _ended(history: Workload, time: int) -> tuple[Workload, Array]:
    """The jobs of the history that had ended at this time, the last of them, and when they ended (Unix times)."""
    wait = history.columns.get("wait", np.zeros(len(history), np.int64))
    ended = _submitted(history) + np.maximum(wait, 0) + history.runtime
    known = ended <= time
    if known.sum() > LATEST_JOBS:
        known &= ended >= np.partition(ended[known], -LATEST_JOBS)[-LATEST_JOBS]
    return history.take(known, ""), ended[known]


def common_names(
    jobs: Sequence[SnapshotJob], history: Workload
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[int]], dict[str, Array]]:
    """Common numbers for the names of the snapshot and of the history: the names, the numbers of the jobs, those of the history."""
    names: dict[str, tuple[str, ...]] = {}
    of_jobs: dict[str, list[int]] = {}
    of_history: dict[str, Array] = {}
    for column, attribute in NAMED.items():
        known: dict[str, int] = {}
        values = history.columns.get(column, np.full(len(history), MISSING, np.int64))
        distinct, place = np.unique(values, return_inverse=True)
        numbers = [_number(_text(history.origin.names, column, number), known) for number in distinct.tolist()]
        of_history[column] = np.array(numbers, np.int64)[place.ravel()] if len(distinct) else values
        of_jobs[column] = [_number(getattr(job, attribute), known) for job in jobs]
        names[column] = tuple(known)
    return names, of_jobs, of_history


def _text(names: Mapping[str, tuple[str, ...]], column: str, number: int) -> str:
    texts = names.get(column, ())
    return "" if number < 0 else texts[number - 1] if 0 < number <= len(texts) else str(number)


def _number(text: str, known: dict[str, int]) -> int:
    return MISSING if not text else known.setdefault(text, len(known) + 1)
