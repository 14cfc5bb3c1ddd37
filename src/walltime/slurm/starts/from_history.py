"""Start times of a snapshot that learn from its history: predictions are replayed at moments of it, and their outcomes teach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.slurm.starts.initial_state import NAMED, UNLIMITED
from walltime.slurm.starts.learned import FEWEST, SAMPLES, Replay, draw_past, learned, little_known, replay, said
from walltime.slurm.starts.queue_features import QueueFeatures
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.start_times import StartTimes, unix
from walltime.workload import MISSING, Workload

Array = np.ndarray

MOMENTS = 150
"""At so many moments of the history predictions are replayed."""
GUESS = 3
"""A likely time is called a guess if the interval reaches more than so many times as far, and an hour beyond it."""
OPEN = 2**31
"""What stands for the wait of a job that waits, and for the runtime of one that runs, s."""


def learn_from_history(
    predicted: StartTimes,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    moments: int = MOMENTS,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """The start times with intervals that learned from what became of such predictions at moments of the history (`learned`).

    Where under 30 starts are known, the interval reaches from now to the latest that the simulations or the limits say, and a caveat says
    so. A history without waits teaches nothing: the start times stay as they are, with a caveat. `moments`: how many; `progress` is called
    with how many are done.
    """
    if moments < 1:
        raise PolicyError(f"the number of replayed moments must be 1 or more, not {moments}", "number_out_of_range")
    snapshot = predicted.snapshot
    if history.recorded_wait is None:
        return replace(
            predicted, caveats=[*predicted.caveats, "The history does not record waits: the intervals are those of the simulation alone."]
        )
    simulated, by_limits = said(predicted)
    ends, known = np.full(predicted.simulated.shape, np.nan), 0
    before = history.take(known_until(history, snapshot.time), "")
    if before.recorded_wait is not None:
        record, waiting = record_until(snapshot, before, [one.job for one in predicted.jobs])
        now = snapshot.time - (record.workload.origin.unix_start_time or 0)
        counts = dict.fromkeys(draw_past(record, now, moments, predicted.seed), SAMPLES)
        told = None if predicted.predicted is None else predicted.predicted.only(before.job_id)
        past = replay(record, counts, policy=policy, predicted=told, seed=predicted.seed, workers=workers, progress=progress)
        features = QueueFeatures(record).at(now, waiting, simulated, by_limits)
        when, never = np.full(len(waiting), now), np.full(len(waiting), float(OPEN))
        own = Replay(when, waiting, never, features, predicted.simulated, by_limits, predicted.policy)
        known = int((past.made + past.real <= now).sum())
        if known >= FEWEST:
            ends = learned(past.followed_by(own))[:, len(past) :]
    caveats = list(predicted.caveats)
    if np.isnan(ends).any():
        caveats.append(
            f"Little is known: the history has the outcomes of {known:,} predictions. A likely time is the simulation's alone, and the "
            "intervals reach from now to the latest that simulations or limits say."
        )
        ends = np.where(np.isnan(ends), little_known(predicted.simulated, by_limits), ends)
    guessed = int(((ends[2] > GUESS * ends[1]) & (ends[2] - ends[1] > 3600)).sum())
    if guessed:
        caveats.append(
            f"For {guessed:,} of {len(predicted.jobs):,} jobs the likely time is little more than a guess: the interval reaches more than "
            f"{GUESS} times as far. Go by the interval."
        )
    order = np.argsort(ends[1], kind="stable")
    times = [[unix(float(end), snapshot.time) for end in ends[:, k]] for k in order.tolist()]
    jobs = [
        replace(predicted.jobs[k], early=early, median=median, late=late)
        for k, (early, median, late) in zip(order.tolist(), times, strict=True)
    ]
    return replace(
        predicted,
        jobs=jobs,
        starts=predicted.starts[:, order],
        simulated=predicted.simulated[:, order],
        factors={},
        learned_from=known,
        caveats=caveats,
    )


def known_until(history: Workload, time: int) -> Array:
    """Which jobs of a history with waits had ended at this Unix time, and are known to have waited for how long: bool."""
    wait = history.columns["wait"]
    return (wait >= 0) & (history.submit + wait + history.runtime + (history.origin.unix_start_time or 0) <= time)


def record_until(snapshot: Snapshot, history: Workload, waiting: Sequence[SnapshotJob]) -> tuple[Record, Array]:
    """A history that ends at the snapshot with the snapshot's own jobs as one record, and the places of the jobs that wait.

    A job that waits has a start far ahead, one that runs an end far ahead. Raises WorkloadError for a history of which nothing is known.
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
