"""Snapshots of a known schedule, with which predicted start times are compared with real ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine import Machine, place
from walltime.schedule import Schedule
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import RUNNING, WAITING, SnapshotJob
from walltime.whatif.setting import machine_of
from walltime.workload import MISSING, Array, Workload

AMOUNTS = {
    "nodes": "nodes", "gpus": "gpus", "memory_mb": "mem_mb", "node_memory_mb": "mem_mb_per_node", "cpu_memory_mb": "mem_mb_per_cpu",
}  # fmt: skip
"""Attributes of a snapshot's job, and the corresponding columns of a log."""


@dataclass(frozen=True, eq=False)
class Record:
    """The recorded schedule of a log on a machine: one start (s from the log's start) and partition number per job, int64."""

    workload: Workload
    machine: Machine
    start: Array
    partition: Array

    @classmethod
    def of(cls, workload: Workload, machine: Machine | None = None, policy: str | None = None) -> Record:
        """Return the record of a log; without a machine its processors are one pool, under EASY unless there is a policy.

        Jobs with an unknown wait, and jobs that do not fit the machine, are left out. Raises WorkloadError for a log without waits.
        """
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(f"{workload.origin.name}: the log has no starts of jobs; use a log with waits", "missing_starts")
        known = workload if (wait >= 0).all() else workload.take(wait >= 0, "whose wait is recorded")
        machine = machine_of(workload, machine)
        placed, placement = place(known, machine if policy is None else replace(machine, policy=policy))
        return cls(placed, placement.machine, placed.submit + placed.columns["wait"], placement.partition)

    @property
    def submit(self) -> Array:
        """Return the submit times of the jobs, s from the log's start."""
        return self.workload.submit

    @property
    def end(self) -> Array:
        """Return the end times of the jobs, s from the log's start."""
        return self.start + self.workload.runtime


def snapshot_at(schedule: Schedule | Record, time: int, policy: str = "easy") -> Snapshot:
    """Return the snapshot at this moment (s from the start of the log); a simulated schedule's machine is one pool."""
    w = schedule.workload
    zero = w.origin.unix_start_time or 0
    machine = schedule.machine if isinstance(schedule, Record) else Machine.one_pool(w.machine_procs, w.origin.site, policy)
    here = (schedule.submit <= time) & (schedule.end > time)
    unknown = np.full(len(w), MISSING)
    amounts = {attribute: np.maximum(w.columns.get(column, unknown), 0) for attribute, column in AMOUNTS.items()}
    amounts["nodes"] = np.maximum(amounts["nodes"], 1)
    given = w.columns.get("gpus_per_node", unknown)
    amounts["node_gpus"] = np.where(given < 0, -(-amounts["gpus"] // amounts["nodes"]), given)
    jobs = []
    for k in np.flatnonzero(here).tolist():
        runs = bool(schedule.start[k] <= time)
        own: dict[str, Any] = {attribute: int(values[k]) for attribute, values in amounts.items()}
        jobs.append(
            SnapshotJob(
                job=int(w.job_id[k]),
                state=RUNNING if runs else WAITING,
                partition=machine.partitions[int(schedule.partition[k]) if isinstance(schedule, Record) else 0].name,
                submit=zero + int(schedule.submit[k]),
                start=zero + int(schedule.start[k]) if runs else None,
                limit=int(w.requested[k]),
                cpus=int(w.procs[k]),
                **own,
                gpu_type=w.name_at(k, "requested_gpu_type"),
                constraints=w.name_at(k, "constraints"),
                reservation=w.name_at(k, "reservation"),
                licences=w.name_at(k, "licences"),
                user=w.name_at(k, "user"),
                account=w.name_at(k, "group"),
                name=w.name_at(k, "executable"),
            )
        )
    return Snapshot(zero + time, machine, tuple(jobs), time_zone=w.origin.time_zone)
