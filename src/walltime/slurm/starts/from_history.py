"""Correct predicted starts with the history: replay predictions at past moments, and learn from their outcomes."""

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
from walltime.slurm.starts.forecast import FIRST_NUMBER
from walltime.slurm.starts.initial_state import OPEN, append_jobs, ends
from walltime.slurm.starts.queue_features import QueueFeatures
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.start_times import StartTimes, to_unix
from walltime.wording import counted
from walltime.workload import Array, Workload

MOMENTS = 150
"""Number of past moments at which predictions are replayed."""
GUESS = 3
"""A likely time is called a guess if the interval's end is more than this many times as far away, and at least an hour later."""


def learn_from_history(
    predicted: StartTimes,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    moments: int = MOMENTS,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """Return the start times with intervals learned from the outcomes of predictions at past moments (`learn_intervals`).

    With fewer than 30 known starts, intervals reach to the latest start by the simulations or the limits, with a caveat. Without recorded
    waits, the start times do not change, with a caveat. `moments`: their number; `progress` is called with the number of moments done.
    """
    if moments < 1:
        raise PolicyError(f"the number of replayed moments must be 1 or more, not {moments}", "number_out_of_range")
    snapshot = predicted.snapshot
    if history.recorded_wait is None:
        no_waits = "The history does not record waits: the intervals are from the simulation alone."
        return replace(predicted, caveats=[*predicted.caveats, no_waits])
    simulated, by_limits = learned.simulated_starts(predicted)
    intervals, known = np.full(predicted.simulated.shape, np.nan), 0
    before = history.take((history.columns["wait"] >= 0) & (ends(history) <= snapshot.time), "")
    if before.recorded_wait is not None:
        record, waiting = record_until(snapshot, before, [one.job for one in predicted.jobs])
        now = snapshot.time - (record.workload.origin.unix_start_time or 0)
        counts = dict.fromkeys(learned.draw_moments(record, int(record.submit[0]), now, moments, [predicted.seed, 1]), learned.SAMPLES)
        runtimes, seed = predicted.predicted, predicted.seed
        past = learned.replay(record, counts, policy=policy, predicted=runtimes, seed=seed, workers=workers, progress=progress)
        features = QueueFeatures(record).at(now, waiting, simulated, by_limits)
        when, never = np.full(len(waiting), now), np.full(len(waiting), float(OPEN))
        own = learned.Replay(when, waiting, never, features, predicted.simulated, by_limits, predicted.earliest, predicted.policy)
        known = int((past.made + past.real <= now).sum())
        if known >= learned.FEWEST:
            intervals = learned.learn_intervals(learned.Replay.join([past, own]))[:, len(past.made) :]
    caveats = list(predicted.caveats)
    if np.isnan(intervals).any():
        caveats.append(
            f"The history has the outcomes of only {counted(known, 'prediction')}. Likely times are from the simulation alone, and "
            f"{learned.FALLBACK_NOTE}"
        )
        submitted = [one.job.eligible or one.job.submit or snapshot.time for one in predicted.jobs]
        waited = np.maximum(snapshot.time - np.array(submitted), 0)
        fallback = learned.fallback_intervals(predicted.simulated, by_limits, predicted.earliest, waited)
        intervals = np.where(np.isnan(intervals), fallback, intervals)
    guessed = int(((intervals[2] > GUESS * intervals[1]) & (intervals[2] - intervals[1] > 3600)).sum())
    if guessed:
        caveats.append(
            f"For {guessed:,} of {len(predicted.jobs):,} jobs the likely time is very uncertain: the interval's end is more than "
            f"{GUESS} times as far away. Use the interval."
        )
    order = np.argsort(intervals[1], kind="stable")
    jobs = []
    for k in order.tolist():
        early, median, late = (to_unix(float(end), snapshot.time) for end in intervals[:, k])
        jobs.append(replace(predicted.jobs[k], early=early, median=median, late=late))
    return replace(
        predicted,
        jobs=jobs,
        starts=predicted.starts[:, order],
        simulated=predicted.simulated[:, order],
        earliest=predicted.earliest[order],
        learned_from=known,
        caveats=caveats,
    )


def record_until(snapshot: Snapshot, history: Workload, waiting: Sequence[SnapshotJob]) -> tuple[Record, Array]:
    """Join a history and the snapshot at its end; return the record, and the indices of the waiting jobs in it.

    Waiting jobs get a start in the far future, and running jobs an end. Raises WorkloadError for a history without waits.
    """
    old = Record.of(history, snapshot.machine, snapshot.machine.policy)
    jobs, past = [*snapshot.running, *waiting], old.workload
    both, order = append_jobs(past, jobs, FIRST_NUMBER + np.arange(len(jobs)), snapshot.time)
    names = {one.name: place for place, one in enumerate(old.machine.partitions)}
    partition = np.concatenate([old.partition, [names.get(job.partition, 0) for job in jobs]])[order]
    record = Record(both, old.machine, both.submit + both.columns["wait"], partition)
    return record, np.argsort(order)[len(past) + len(snapshot.running) :]
