"""Start times that learn from what became of earlier ones: predictions are replayed at moments of the past, and their outcomes teach."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.simulation.specification import Scheduler
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.forest import LEVELS, Forest
from walltime.slurm.starts.predicted import PredictedRuntimes
from walltime.slurm.starts.queue_features import QueueFeatures
from walltime.slurm.starts.replay import Record, snapshot_at
from walltime.slurm.starts.scores import CLASSES
from walltime.slurm.starts.start_times import StartTimes, quantiles_of, start_times

Array = np.ndarray

SAMPLES = 10
"""So many simulations of a moment count as what the simulation says."""
GROWTH = 1.12
"""A new forest grows when there are so many times as many moments as for the last one."""
FIRST = 10
"""So many moments come before the first forest."""
FEWEST = 30
"""A forest needs so many starts that are known."""
MOST_JOBS = 100
"""Of a moment so many jobs teach at most."""
SHORT = 60.0
"""Outcomes are told apart by the logarithm of so many s more."""
NOW = np.log(SHORT) + 1e-9
"""The logarithm of an outcome of nothing."""
STEP = 0.02
"""By how much a start moves the logarithmic ends of the intervals of its class: 0.9 of it outwards if it was outside, else 0.1 inwards."""
DECAY = 0.99
"""Which likely time was nearer counts so much less for each start that has become known since."""
OUTSIDE = 0.1
"""What may start outside of its interval."""
FALLBACK_NOTE = "the interval reaches from now to the latest that the simulations or the limits say."
"""What is said where too little is known."""
MOST_SHIFT = 2.0
"""The logarithm of the most by which the end of an interval is moved."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Predictions at moments of a record, in order of time, one entry per waiting job and moment.

    `made`: when, s from the start of the record; `job`: its place in it; `real`: when it started, s after `made`; `features`: what was
    known; `simulated`: quantiles over all simulations, shape (3, predictions), and `by_limits`, s after `made`. `policy`: its label.
    """

    made: Array
    job: Array
    real: Array
    features: Array
    simulated: Array
    by_limits: Array
    policy: str

    def __len__(self) -> int:
        return len(self.made)

    def followed_by(self, other: Replay) -> Replay:
        """These predictions, and then others that were made later."""
        if not len(self):
            return other
        joined = {}
        for name in (one.name for one in fields(self) if one.name != "policy"):
            pair = [getattr(self, name), getattr(other, name)]
            joined[name] = np.concatenate(pair, axis=1 if name == "simulated" else 0)
        return Replay(**joined, policy=self.policy)


def draw_past(record: Record, until: int, count: int, seed: int) -> list[int]:
    """So many moments at random up to this one (s from the start of the log) at which jobs wait, ascending."""
    return draw_between(record, int(record.submit[0]), until, count, np.random.default_rng([seed, 1]))


def draw_between(record: Record, first: int, last: int, count: int, random: np.random.Generator) -> list[int]:
    """So many moments at random between these (s from the start of the log) at which jobs wait, ascending."""
    drawn = random.integers(first, max(last, first + 1), 50 * count)
    waited = np.searchsorted(np.sort(record.submit), drawn, side="right") > np.searchsorted(np.sort(record.start), drawn, side="right")
    return sorted(set(drawn[waited][:count].tolist()))


def replay(
    record: Record,
    samples: dict[int, int],
    *,
    policy: str | Policy | Scheduler | None = None,
    predicted: PredictedRuntimes | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Simulate what followed at moments of a record, with what was known then; `samples`: how many simulations of each moment.

    Moments at which none of those that wait fits the machine are left out. `progress` is called with the number of moments done.
    """
    place_of = {number: k for k, number in enumerate(record.workload.job_id.tolist())}
    known = QueueFeatures(record)
    made, jobs, features, simulated, limits = [], [], [], [], []
    label = ""
    for done, (moment, count) in enumerate(sorted(samples.items())):
        snapshot = snapshot_at(record, moment)
        try:
            own = Draws(count, seed=seed + done)
            result = start_times(snapshot, record.workload, policy=policy, predictor=predicted, draws=own, workers=workers)
        except PolicyError:  # none of those that wait fits the machine
            continue
        finally:
            if progress is not None:
                progress(done + 1)
        label = result.policy
        places = np.array([place_of[one.job.job] for one in result.jobs], np.int64)
        made.append(np.full(len(places), moment, np.int64))
        jobs.append(places)
        features.append(known.at(moment, places, *said(result)))
        simulated.append(result.simulated)
        limits.append(said(result)[1])
    if not made:
        return Replay(*(np.zeros(0, np.int64),) * 2, np.zeros(0), np.zeros((0, 0)), np.zeros((3, 0)), np.zeros(0), "")
    when, which = np.concatenate(made), np.concatenate(jobs)
    real = (record.start[which] - when).astype(float)
    return Replay(when, which, real, np.concatenate(features), np.concatenate(simulated, axis=1), np.concatenate(limits), label)


def said(result: StartTimes) -> tuple[Array, Array]:
    """The quantiles over the first simulations, and the starts by limits, s after the snapshot."""
    now = result.snapshot.time
    by_limits = np.array([np.inf if one.by_limits is None else one.by_limits - now for one in result.jobs], float)
    return quantiles_of(result.starts[:SAMPLES]), by_limits


def learned(past: Replay, progress: Callable[[int], None] | None = None) -> Array:
    """The intervals of all predictions, each from nothing but what was known when it was made: s after it, shape (3, predictions).

    The early end, the median and the late end of the shortest interval that has 90 % of a forest's distribution. In place of its median
    stands that of the simulations in each class of distance where that was lately nearer in most cases. Both ends are moved by what the
    starts that became known since have shown, by class of the median's distance. NaN where too few starts were known. `progress` is told
    after each forest for how many moments there are predictions.
    """
    logs = np.full((3, len(past)), np.nan)
    moments = np.unique(past.made)
    for first, last in _turns(len(moments)):
        now = moments[first]
        forest = _forest(past, int(now))
        asked = np.flatnonzero((past.made >= now) & (past.made <= moments[last - 1]))
        if forest is not None:
            logs[:, asked] = _shortest(forest.quantiles(past.features[asked]))
        if progress is not None:
            progress(last)
    return _adapted(past, pick_point_estimate(past, logs))


def little_known(simulated: Array, by_limits: Array) -> Array:
    """Intervals where nothing could be learned: from now to the latest of the simulations and the limits; s, shape (3, jobs)."""
    return np.stack([np.zeros(len(by_limits)), simulated[1], np.maximum(simulated[2], by_limits)])


def _turns(count: int) -> list[tuple[int, int]]:
    """From which moment to which (the first after them) each forest predicts.

    >>> _turns(14)
    [(10, 11), (11, 12), (12, 13), (13, 14)]
    """
    starts = [FIRST]
    while starts[-1] < count:
        starts.append(max(starts[-1] + 1, int(starts[-1] * GROWTH)))
    return [(first, min(last, count)) for first, last in pairwise(starts)]


def _forest(past: Replay, now: int) -> Forest | None:
    """A forest of the predictions before this moment; a start that is not known then is one after it. None where too few are known."""
    mine = np.flatnonzero(past.made < now)
    _, begins, place, counts = np.unique(past.made[mine], return_index=True, return_inverse=True, return_counts=True)
    step = np.maximum(-(-counts // MOST_JOBS), 1)[place]
    taught = (np.arange(len(mine)) - begins[place]) % step == 0
    mine, counts = mine[taught], (counts[place] / step)[taught]
    known = past.made[mine] + past.real[mine] < now
    if known.sum() < FEWEST:
        return None
    outcome = np.log(SHORT + np.where(known, past.real[mine], now - past.made[mine]))
    return Forest(past.features[mine], outcome, known, 1 / np.sqrt(counts))


def _shortest(quantiles: Array) -> Array:
    """Of quantiles at LEVELS, logarithmic, shape (levels, jobs): the ends of the shortest interval with 90 %, and the median between."""
    times = np.concatenate([np.full((1, quantiles.shape[1]), np.log(SHORT)), quantiles])
    beyond = round(OUTSIDE * (len(LEVELS) + 1))
    most = len(times) - 1
    lows = np.arange(0, beyond, 2)
    highs = np.minimum(lows + most + 1 - beyond, most)
    chosen = (np.exp(times[highs]) - np.exp(times[lows])).argmin(axis=0)
    every = np.arange(quantiles.shape[1])
    return np.stack([times[lows[chosen], every], times[(most + 1) // 2], times[highs[chosen], every]])


def pick_point_estimate(past: Replay, logs: Array) -> Array:
    """Logarithmic intervals, with the simulations' median as the likely time where it was lately nearer than the forest's in most cases.

    Only medians in the interval count and are taken, of the same class of distance as the forest's: so nothing else changes. Counted are
    the starts that had become known, by class.
    """
    with np.errstate(invalid="ignore"):
        simulated = np.log(SHORT + past.simulated[1])
        groups, real = _class_of(logs[1]), np.log(SHORT + past.real)
        fits = (groups == _class_of(simulated)) & (logs[0] <= simulated) & (simulated <= logs[2])
        nearer = abs(np.exp(simulated) - np.exp(real)) < abs(np.exp(logs[1]) - np.exp(real))
    wins, counts = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
    likely = logs[1].copy()
    known = past.made + past.real
    order, place = np.argsort(known, kind="stable").tolist(), 0
    begins = np.flatnonzero(np.diff(past.made, prepend=-1))
    for first, last in zip(begins, [*begins[1:], len(past)], strict=True):
        while place < len(order) and known[order[place]] < past.made[first]:
            one, place = order[place], place + 1
            if fits[one]:
                wins[groups[one]] = DECAY * wins[groups[one]] + nearer[one]
                counts[groups[one]] = DECAY * counts[groups[one]] + 1
        better = (counts >= FEWEST) & (wins > counts / 2)
        mine = slice(first, last)
        likely[mine] = np.where(better[groups[mine]] & fits[mine], simulated[mine], likely[mine])
    return np.stack([logs[0], likely, logs[2]])


def _class_of(logs: Array) -> Array:
    """The place of the class of each logarithmic distance; that of the last one where it is unknown."""
    bounds = np.array(list(CLASSES.values()), float)
    return np.searchsorted(bounds, np.exp(logs) - SHORT, side="right").clip(max=len(bounds) - 1)


def _adapted(past: Replay, logs: Array) -> Array:
    """The intervals, moved by what became known of earlier ones; s after each was made.

    Source: adaptive conformal inference, Gibbs & Candes, NeurIPS 2021. A start outside of its interval is known when it comes, or when the
    late end has passed.
    """
    shifts = np.zeros(len(CLASSES))
    ends = np.full(logs.shape, np.nan)
    waiting: list[tuple[float, int, bool]] = []
    begins = np.flatnonzero(np.diff(past.made, prepend=-1))
    for first, last in zip(begins, [*begins[1:], len(past)], strict=True):
        now = past.made[first]
        while waiting and waiting[0][0] < now:
            _, group, missed = heapq.heappop(waiting)
            shifts[group] = np.clip(shifts[group] + STEP * (missed - OUTSIDE), -MOST_SHIFT, MOST_SHIFT)
        early, median, late = logs[:, first:last]
        groups = _class_of(median)
        begin = np.where(early > NOW, np.minimum(early - shifts[groups], median), early)  # now stays now
        moved = np.stack([begin, median, np.maximum(late + shifts[groups], median)])
        ends[:, first:last] = np.maximum(np.exp(moved) - SHORT, 0)
        for k in range(first, last):
            if not np.isnan(ends[1, k]):
                real = past.real[k]
                outside = not ends[0, k] <= real <= ends[2, k]
                heapq.heappush(waiting, (float(now + min(real, ends[2, k])), int(groups[k - first]), outside))
    return ends
