"""Improve start times of a snapshot with its history: replay predictions at moments of it, and learn from their outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.slurm.starts import learned
from walltime.slurm.starts.initial_state import NAMED, OPEN, UNLIMITED
from walltime.slurm.starts.queue_features import QueueFeatures
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.start_times import StartTimes, to_unix
from walltime.workload import MISSING, Workload

Array = np.ndarray

MOMENTS = 150
"""The number of moments of the history at which predictions are replayed."""
GUESS = 3
"""A likely time is called a guess if the interval's end is more than this many times as far away, and an hour later."""


def learn_from_history(
    predicted: StartTimes,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    moments: int = MOMENTS,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """Return the start times with intervals learned from the outcomes of predictions at moments of the history (`learn_intervals`).

    With fewer than 30 known starts, intervals reach from now to the latest start by the simulations or the limits, with a caveat. Without
    recorded waits, the start times stay as they are, with a caveat. `moments`: how many; `progress` is called with the number done.
    """
    if moments < 1:
        raise PolicyError(f"the number of replayed moments must be 1 or more, not {moments}", "number_out_of_range")
    snapshot = predicted.snapshot
    if history.recorded_wait is None:
        no_waits = "The history does not record waits: the intervals are from the simulation alone."
        return replace(predicted, caveats=[*predicted.caveats, no_waits])
    simulated, by_limits = learned.simulated_starts(predicted)
    ends, known = np.full(predicted.simulated.shape, np.nan), 0
    before = history.take(known_until(history, snapshot.time), "")
    if before.recorded_wait is not None:
        record, waiting = record_until(snapshot, before, [one.job for one in predicted.jobs])
        now = snapshot.time - (record.workload.origin.unix_start_time or 0)
        counts = dict.fromkeys(learned.draw_past(record, now, moments, predicted.seed), learned.SAMPLES)
        runtimes = None if predicted.predicted is None else predicted.predicted.select(before.job_id)
        past = learned.replay(record, counts, policy=policy, predicted=runtimes, seed=predicted.seed, workers=workers, progress=progress)
        features = QueueFeatures(record).at(now, waiting, simulated, by_limits)
        when, never = np.full(len(waiting), now), np.full(len(waiting), float(OPEN))
        own = learned.Replay(when, waiting, never, features, predicted.simulated, by_limits, predicted.policy)
        known = int((past.made + past.real <= now).sum())
        if known >= learned.FEWEST:
            ends = learned.learn_intervals(past.followed_by(own))[:, len(past) :]
    caveats = list(predicted.caveats)
    if np.isnan(ends).any():
        caveats.append(
            f"The history has the outcomes of only {known:,} predictions. Likely times are from the simulation alone, and "
            f"{learned.FALLBACK_NOTE}"
        )
        ends = np.where(np.isnan(ends), learned.fallback_intervals(predicted.simulated, by_limits), ends)
    guessed = int(((ends[2] > GUESS * ends[1]) & (ends[2] - ends[1] > 3600)).sum())
    if guessed:
        caveats.append(
            f"For {guessed:,} of {len(predicted.jobs):,} jobs the likely time is little more than a guess: the interval's end is more than "
            f"{GUESS} times as far away. Use the interval."
        )
    order = np.argsort(ends[1], kind="stable")
    jobs = []
    for k in order.tolist():
        early, median, late = (to_unix(float(end), snapshot.time) for end in ends[:, k])
        jobs.append(replace(predicted.jobs[k], early=early, median=median, late=late))
    return replace(
        predicted,
        jobs=jobs,
        starts=predicted.starts[:, order],
        simulated=predicted.simulated[:, order],
        learned_from=known,
        caveats=caveats,
    )


def known_until(history: Workload, time: int) -> Array:
    """Return which jobs of a history with waits have a known wait and had ended at this Unix time: bool."""
    wait = history.columns["wait"]
    return (wait >= 0) & (history.submit + wait + history.runtime + (history.origin.unix_start_time or 0) <= time)


def record_until(snapshot: Snapshot, history: Workload, waiting: Sequence[SnapshotJob]) -> tuple[Record, Array]:
    """Join a history that ends at the snapshot with the snapshot's jobs; return the record, and the places of the waiting jobs.

    A waiting job gets a start in the far future, a running one an end in the far future. Raises WorkloadError for a history without waits.
    """
    zero = history.origin.unix_start_time or 0
    old = Record.of(history, snapshot.machine, snapshot.machine.policy)
    jobs = [*snapshot.running, *waiting]
    names = {one.name: place for place, one in enumerate(old.machine.partitions)}
    submit = np.array([(job.submit or job.start or snapshot.time) - zero for job in jobs], np.int64)
    start = np.array([OPEN + snapshot.time - zero if job.start is None else job.start - zero for job in jobs], np.int64)
    past = old.workload
    columns = {name: np.concatenate([values, np.full(len(jobs), MISSING)]) for name, values in past.columns.items()}
    for name, attribute in NAMED.items():
        if name in past.columns:
            numbers = {past.origin.name_of(name, number): number for number in np.unique(past.columns[name]).tolist() if number >= 0}
            for job in jobs:
                text = str(getattr(job, attribute))
                if text and text not in numbers:
                    numbers[text] = max(numbers.values(), default=0) + 1
            columns[name][len(past) :] = [numbers.get(str(getattr(job, attribute)), MISSING) for job in jobs]
    columns["wait"][len(past) :] = np.maximum(start - submit, 0)
    first = int(past.job_id.max(initial=0)) + 1
    order = np.argsort(np.concatenate([past.submit, submit]), kind="stable")
    both = Workload.from_arrays(
        job_id=np.concatenate([past.job_id, np.arange(first, first + len(jobs))])[order],
        submit=np.concatenate([past.submit, submit])[order],
        runtime=np.concatenate([past.runtime, np.full(len(jobs), OPEN)])[order],
        procs=np.concatenate([past.procs, [max(job.cpus, 1) for job in jobs]])[order],
        requested=np.concatenate([past.requested, [max(1, UNLIMITED if job.limit is None else job.limit) for job in jobs]])[order],
        machine_procs=max(past.machine_procs, max(job.cpus for job in jobs)),
        columns={name: values[order] for name, values in columns.items()},
        origin=past.origin,
    )
    partition = np.concatenate([old.partition, [names.get(job.partition, 0) for job in jobs]])[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    record = Record(both, old.machine, np.concatenate([old.start, start])[order], partition)
    return record, place[len(past) + len(snapshot.running) :]
