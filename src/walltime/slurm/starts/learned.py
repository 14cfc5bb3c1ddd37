"""Learn prediction intervals for start times from replayed predictions at past moments and their outcomes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.forest import LEVELS, Forest
from walltime.slurm.starts.predicted import PredictedRuntimes
from walltime.slurm.starts.queue_features import QueueFeatures
from walltime.slurm.starts.replay import Record, snapshot_at
from walltime.slurm.starts.scores import CLASSES
from walltime.slurm.starts.start_times import StartTimes, start_quantiles, start_times
from walltime.whatif.finished import Finished, key_of
from walltime.whatif.setting import Setting
from walltime.workload import Array

SAMPLES = 10
"""Number of simulations of each moment from which the features are computed."""
GROWTH = 1.12
"""A new forest is trained when the number of moments has grown by this factor since the last one."""
FIRST = 10
"""Number of moments before the first forest."""
FEWEST = 30
"""Smallest number of known starts from which a forest is trained."""
MOST_JOBS = 100
"""Maximum number of jobs of a moment that are used for training."""
SHORT = 60.0
"""Seconds that are added to an outcome before its logarithm is taken."""
NOW = np.log(SHORT) + 1e-9
"""Logarithm of an outcome of 0 s, rounded up."""
STEP = 0.02
"""Step by which the logarithmic ends of a class of intervals move after each outcome: outwards by 0.95 of it if the job started beyond that
end, else inwards by 0.05 of it. Predictions of one moment are correlated, so the step is divided by the square root of their number.
"""
DECAY = 0.99
"""Factor by which the weight of earlier comparisons of likely times falls with each start that becomes known."""
OUTSIDE = 0.05
"""Target for the share of jobs that start before their intervals, and for the share that start after them."""
FALLBACK_NOTE = (
    "the intervals reach from the earliest possible start to the latest of three times: the latest simulated start, the start if all jobs "
    "run to their limits, and the current time plus the time that the job has waited."
)
MOST_SHIFT = 2.0
"""Maximum shift of an end of an interval, as a natural logarithm."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Predictions at moments of a record, in order of time, with one entry for each waiting job at each moment.

    `made`: the time of the prediction, s from the start of the record; `job`: its index in the record; `real`: its start, s after `made`.
    `features`: from `QueueFeatures`. `simulated`: quantiles over all simulations, shape (3, predictions), s after `made`, as are
    `by_limits` and `earliest`.
    """

    made: Array
    job: Array
    real: Array
    features: Array
    simulated: Array
    by_limits: Array
    earliest: Array
    policy: str

    @classmethod
    def join(cls, parts: Sequence[Replay]) -> Replay:
        """Join consecutive replays into one."""
        arrays = {one.name: [getattr(part, one.name) for part in parts] for one in fields(cls) if one.name != "policy"}
        joined = {name: np.concatenate(values, axis=int(name == "simulated")) for name, values in arrays.items()}
        return cls(**joined, policy=parts[-1].policy)


def draw_moments(record: Record, first: int, last: int, count: int, seed: int | Sequence[int]) -> list[int]:
    """Draw up to `count` random moments between `first` and `last` (s from the start of the log) at which jobs wait, ascending."""
    drawn = np.random.default_rng(seed).integers(first, max(last, first + 1), 50 * count)
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
    """Predict starts at moments of a record, from earlier information only; `samples`: the number of simulations of each moment.

    Moments at which no waiting job fits the machine are left out. Long ones are kept for later calls (`whatif.finished`). `progress` is
    called with the number of moments done.
    """
    place_of = {number: k for k, number in enumerate(record.workload.job_id.tolist())}
    known, moments = QueueFeatures(record), sorted(samples)

    setting = Setting.of(record.machine, policy)
    own = record.start.tobytes(), record.partition.tobytes(), seed
    finished, key = Finished(), "" if predicted is not None else key_of(record.workload, [setting], *own)

    def part(number: int, check: Callable[[int], None]) -> Replay | None:
        moment = moments[number]

        def predict() -> Replay | None:
            rules: dict[str, Any] = {"policy": policy, "predictor": predicted, "reasons": False, "workers": 1, "progress": check}
            draws = Draws(samples[moment], seed=seed + number)
            try:
                result = start_times(snapshot_at(record, moment), record.workload, draws=draws, **rules)
            except PolicyError:  # no waiting job fits the machine
                return None
            places = np.array([place_of[one.job.job] for one in result.jobs], np.int64)
            own_quantiles, by_limits = simulated_starts(result)
            made, features = np.full(len(places), moment, np.int64), known.at(moment, places, own_quantiles, by_limits)
            real = (record.start[places] - moment).astype(float)
            return Replay(made, places, real, features, result.simulated, by_limits, result.earliest, result.policy)

        own_key = key and f"{key}-{moment}-{number}-{samples[moment]}"
        return finished.result(own_key, samples[moment], predict, _arrays, _replay)

    parts = [one for one in in_threads(part, len(moments), workers, progress) if one is not None]
    if not parts:
        return Replay(*(np.zeros(0, np.int64),) * 2, np.zeros(0), np.zeros((0, 0)), np.zeros((3, 0)), np.zeros(0), np.zeros(0), "")
    return Replay.join(parts)


def _arrays(part: Replay | None) -> dict[str, Array]:
    return {} if part is None else {one.name: np.asarray(getattr(part, one.name)) for one in fields(Replay)}


def _replay(arrays: Mapping[str, Array]) -> Replay:
    values: dict[str, Any] = {**arrays, "policy": str(arrays["policy"])}
    return Replay(**values)


def simulated_starts(result: StartTimes) -> tuple[Array, Array]:
    """Return the quantiles over the first simulations, and the starts if all jobs run to their limits; s after the snapshot."""
    now = result.snapshot.time
    by_limits = np.array([np.inf if one.by_limits is None else one.by_limits - now for one in result.jobs], float)
    return start_quantiles(result.starts[:SAMPLES]), by_limits


def learn_intervals(past: Replay, progress: Callable[[int], None] | None = None) -> Array:
    """Return the interval of each prediction, learned from earlier information only: s after the prediction, shape (3, predictions).

    An interval reaches from the 5 % to the 95 % quantile of a forest's distribution, with its median as the likely time. In classes of
    distance where the simulations' median was recently nearer to the starts, it replaces the forest's median. Known outcomes then move each
    end, by class of the median's distance. No interval begins before `earliest`; if that is after the likely time, the simulations' median
    and late end count as well. NaN where too few starts were known. `progress` is called after each forest with the number of moments that
    have predictions.
    """
    logs = np.full((3, len(past.made)), np.nan)
    moments = np.unique(past.made)
    for first, last in _turns(len(moments)):
        now = moments[first]
        forest = _forest(past, int(now))
        chosen = np.flatnonzero((past.made >= now) & (past.made <= moments[last - 1]))
        if forest is not None:
            logs[:, chosen] = _central(forest.quantiles(past.features[chosen]))
        if progress is not None:
            progress(last)
    return _adapted(past, pick_point_estimate(past, logs))


def fallback_intervals(simulated: Array, by_limits: Array, earliest: Array, waited: Array) -> Array:
    """Return intervals from the earliest possible start to the latest start in the simulations or by the limits; s, shape (3, jobs).

    An interval is at least as long as the job has `waited` (s): a job that could have started long ago waits for an unknown reason.
    """
    return np.maximum(np.stack([earliest, simulated[1], np.max([simulated[2], by_limits, waited], axis=0)]), earliest)


def _turns(count: int) -> list[tuple[int, int]]:
    """Return the ranges of moments that each forest predicts.

    >>> _turns(14)
    [(10, 11), (11, 12), (12, 13), (13, 14)]
    """
    starts = [FIRST]
    while starts[-1] < count:
        starts.append(max(starts[-1] + 1, int(starts[-1] * GROWTH)))
    return [(first, min(last, count)) for first, last in pairwise(starts)]


def _forest(past: Replay, now: int) -> Forest | None:
    """Return a forest trained on the predictions before this moment; None if too few starts were known.

    For starts that are not known yet, the forest learns that they are later than now.
    """
    mine = np.flatnonzero(past.made < now)
    _, begins, place, counts = np.unique(past.made[mine], return_index=True, return_inverse=True, return_counts=True)
    step = np.maximum(-(-counts // MOST_JOBS), 1)[place]
    chosen = (np.arange(len(mine)) - begins[place]) % step == 0
    mine, counts = mine[chosen], (counts[place] / step)[chosen]
    known = past.made[mine] + past.real[mine] < now
    if known.sum() < FEWEST:
        return None
    outcome = np.log(SHORT + np.where(known, past.real[mine], now - past.made[mine]))
    return Forest(past.features[mine], outcome, known, 1 / np.sqrt(counts))


def _central(quantiles: Array) -> Array:
    """Return the 5 % quantile, the median and the 95 % quantile of logarithmic quantiles at LEVELS, shape (levels, jobs).

    No other interval has a lower expected interval score.
    """
    return quantiles[np.searchsorted(LEVELS, (OUTSIDE, 0.5, 1 - OUTSIDE))]


def pick_point_estimate(past: Replay, logs: Array) -> Array:
    """Return logarithmic intervals in which the simulations' median is the likely time where it was recently more accurate.

    The simulations' median is compared and used only if it lies inside the interval and in the same class of distance as the forest's
    median, so that nothing else changes. It is compared by class, over starts that had become known.
    """
    with np.errstate(invalid="ignore"):
        simulated = np.log(SHORT + past.simulated[1])
        groups, real = _class_places(logs[1]), np.log(SHORT + past.real)
        fits = (groups == _class_places(simulated)) & (logs[0] <= simulated) & (simulated <= logs[2])
        nearer = abs(np.exp(simulated) - np.exp(real)) < abs(np.exp(logs[1]) - np.exp(real))
    wins, counts = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
    likely = logs[1].copy()
    known = past.made + past.real
    order, place = np.argsort(known, kind="stable").tolist(), 0
    for mine in _by_moment(past):
        while place < len(order) and known[order[place]] < past.made[mine.start]:
            one, place = order[place], place + 1
            if fits[one]:
                wins[groups[one]] = DECAY * wins[groups[one]] + nearer[one]
                counts[groups[one]] = DECAY * counts[groups[one]] + 1
        better = (counts >= FEWEST) & (wins > counts / 2)
        likely[mine] = np.where(better[groups[mine]] & fits[mine], simulated[mine], likely[mine])
    return np.stack([logs[0], likely, logs[2]])


def _class_places(logs: Array) -> Array:
    """Return the index of the class of each logarithmic distance; the last class if the distance is unknown."""
    bounds = np.array(list(CLASSES.values()), float)
    return np.searchsorted(bounds, np.exp(logs) - SHORT, side="right").clip(max=len(bounds) - 1)


def _adapted(past: Replay, logs: Array) -> Array:
    """Return the intervals, s after each prediction, moved by the known outcomes of earlier ones.

    Source: adaptive conformal inference, Gibbs & Candes, NeurIPS 2021. Whether a start missed an end of its interval is known when the
    job starts or when that end has passed, whichever comes first.
    """
    shifts = np.zeros((2, len(CLASSES)))
    ends = np.full(logs.shape, np.nan)
    waiting: list[tuple[float, int, int, bool, float]] = []
    for mine in _by_moment(past):
        now, step = past.made[mine.start], STEP / np.sqrt(mine.stop - mine.start)
        while waiting and waiting[0][0] < now:
            _, side, group, missed, size = heapq.heappop(waiting)
            shifts[side, group] = np.clip(shifts[side, group] + size * (missed - OUTSIDE), -MOST_SHIFT, MOST_SHIFT)
        early, median, late = logs[:, mine]
        groups = _class_places(median)
        begin = np.where(early > NOW, np.minimum(early - shifts[0, groups], median), early)  # a start right now does not move
        own = np.exp(np.stack([begin, median, np.maximum(late + shifts[1, groups], median)])) - SHORT
        earliest = past.earliest[mine]
        later = np.array([[False], [True], [True]]) & (earliest > own[1])  # the forest learned from jobs that were allowed to start
        ends[:, mine] = np.maximum(np.where(later, np.maximum(own, past.simulated[:, mine]), own), earliest)
        for group, real, (start, _, end) in zip(groups.tolist(), past.real[mine], ends[:, mine].T, strict=True):
            if not np.isnan(end):
                heapq.heappush(waiting, (float(now + min(real, start)), 0, group, bool(real < start), step))
                heapq.heappush(waiting, (float(now + min(real, end)), 1, group, bool(real > end), step))
    return ends


def _by_moment(past: Replay) -> Iterator[slice]:
    """Return the indices of the predictions of each moment, as slices in order of time."""
    begins = np.flatnonzero(np.diff(past.made, prepend=-1)).tolist()
    return itertools.starmap(slice, pairwise([*begins, len(past.made)]))
