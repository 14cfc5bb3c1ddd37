"""Predictions of start times that are compared with what happened: snapshots of a schedule that is known to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine, place
from walltime.schedule import Schedule
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import RUNNING, WAITING, SnapshotJob
from walltime.slurm.starts.forecast import USUAL, Draws
from walltime.slurm.starts.scores import Outcome
from walltime.slurm.starts.start_times import start_times
from walltime.whatif.setting import machine_of
from walltime.workload import MISSING, Workload

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Record:
    """When the jobs of a log ran on a machine, as the log says. Times are s from its start, one entry per job: int64.

    `partition`: its number, of each job.
    """

    workload: Workload
    machine: Machine
    start: Array
    partition: Array

    @classmethod
    def of(cls, workload: Workload, machine: Machine | None = None, policy: str | None = None) -> Record:
        """The record of a log; without a machine its processors are one pool, under EASY unless it is said otherwise.

        Jobs whose wait is unknown, and those that do not fit the machine, are left out. Raises WorkloadError for a log without waits.
        """
        wait = workload.recorded_wait
        if wait is None:
            raise WorkloadError(f"{workload.origin.name} does not say when jobs started; take a log that records waits", "missing_starts")
        known = workload if (wait >= 0).all() else workload.take(wait >= 0, "whose wait is recorded")
        machine = machine_of(workload, machine)
        placed, placement = place(known, machine if policy is None else replace(machine, policy=policy))
        return cls(placed, placement.machine, placed.submit + placed.columns["wait"], placement.partition)

    @property
    def submit(self) -> Array:
        """When the jobs were submitted."""
        return self.workload.submit

    @property
    def end(self) -> Array:
        """When the jobs ended."""
        return self.start + self.workload.runtime


def snapshot_at(schedule: Schedule | Record, time: int, policy: str = "easy") -> Snapshot:
    """What a snapshot at this moment (s from the start of the log) would have said; of a simulated schedule the machine is one pool."""
    w = schedule.workload
    zero = w.origin.unix_start_time or 0
    machine = schedule.machine if isinstance(schedule, Record) else Machine.one_pool(w.machine_procs, w.origin.name, policy)
    here = (schedule.submit <= time) & (schedule.end > time)
    jobs = []
    for k in np.flatnonzero(here).tolist():
        runs = bool(schedule.start[k] <= time)
        jobs.append(
            SnapshotJob(
                job=int(w.job_id[k]),
                state=RUNNING if runs else WAITING,
                partition=machine.partitions[int(schedule.partition[k]) if isinstance(schedule, Record) else 0].name,
                submit=zero + int(schedule.submit[k]),
                start=zero + int(schedule.start[k]) if runs else None,
                limit=int(w.requested[k]),
                cpus=int(w.procs[k]),
                user=_name(w, "user", k),
                account=_name(w, "group", k),
                name=_name(w, "executable", k),
            )
        )
    return Snapshot(zero + time, machine, tuple(jobs), time_zone=w.origin.time_zone)


def _name(w: Workload, column: str, k: int) -> str:
    """The name that a column has for a job; empty if it is unknown."""
    number = int(w.columns[column][k]) if column in w.columns else MISSING
    return w.origin.name_of(column, number) if number >= 0 else ""


def as_history(schedule: Schedule) -> Workload:
    """The jobs as a log would have them that recorded this schedule."""
    w = schedule.workload
    return replace(w, runtime=schedule.runtime, columns={**w.columns, "wait": schedule.start - schedule.submit})


def outcomes(
    schedule: Schedule,
    moments: Sequence[int],
    *,
    policy: str = "easy",
    draws: Draws = USUAL,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Predict the starts of all jobs that wait at these moments (s), with nothing but what was known then, and add what happened."""
    history = as_history(schedule)
    started = dict(zip(schedule.workload.job_id.tolist(), schedule.start.tolist(), strict=True))
    made_outcomes: list[Outcome] = []
    for done, moment in enumerate(moments):
        snapshot = snapshot_at(schedule, moment, policy)
        try:
            made = start_times(snapshot, history, draws=replace(draws, seed=draws.seed + done), workers=workers)
        except PolicyError:  # nobody waits
            continue
        for one in made.jobs:
            ahead = [np.inf if time is None else float(time - snapshot.time) for time in (one.early, one.median, one.late, one.by_limits)]
            real = float(started[one.job.job] - moment)
            made_outcomes.append(Outcome(one.job.label, snapshot.time, ahead[0], ahead[1], ahead[2], ahead[3], np.nan, real))
        if progress is not None:
            progress(done + 1)
    return made_outcomes
