"""How often the intervals over replications hold what further runs of the same model show.

The truth is the mean over hundreds of other runs: of a pool of runs, those that are not in the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from validation.coverage import Sizes, Trials, experiment
from walltime import simulate
from walltime.estimates import Tsafrir05
from walltime.metrics import Interval, mean_interval, paired_difference, percentile_band, range_of_runs
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.resampling import with_users

Array = np.ndarray

LOADS = (0.6, 0.7, 0.8, 1.1)
"""The last one is overloaded."""
RUNS = (5, 10, 25)
POLICIES = ("easy", "conservative")


@lru_cache
def pool(load: float, runs: int, jobs: int) -> Array:
    """Return the mean wait (s) of generated logs with users under each policy; float64, shape (policies, runs)."""
    found = np.empty((len(POLICIES), runs))
    for seed in range(runs):
        log = with_users(Lublin99().generate(jobs, 128, load, seed), 30, seed).with_estimates(Tsafrir05(), seed)
        for k, policy in enumerate(POLICIES):
            found[k, seed] = simulate(log, policy).summary().mean_wait
    return found


def draws(sizes: Sizes, runs: int, of: int) -> list[Array]:
    """Return sets of places of a pool, each drawn without replacement."""
    random = np.random.default_rng(runs)
    return [random.choice(of, runs, replace=False) for _ in range(sizes.many(1000, 100))]


def pools(sizes: Sizes) -> dict[float, Array]:
    """The pools by load."""
    return {load: pool(load, sizes.many(400, 50), sizes.many(1500, 300)) for load in sizes.some(LOADS)}


@experiment("replications.mean", of_what="other seeds", command="compare --replications", quick=True)
def mean(sizes: Sizes) -> list[Trials]:
    """The mean wait under EASY."""
    found = []
    for load, (values, _) in pools(sizes).items():
        for runs in sizes.some(RUNS):
            trials = Trials(f"load {load}, {runs} runs")
            for drawn in draws(sizes, runs, len(values)):
                interval = mean_interval(values[drawn])
                trials.add(interval.low, interval.high, float(np.delete(values, drawn).mean()))
            found.append(trials)
    return found


@experiment("replications.difference", of_what="other seeds", command="compare --replications", quick=True)
def difference(sizes: Sizes) -> list[Trials]:
    """Difference in mean wait between conservative backfilling and EASY."""
    found = []
    for load, (easy, other) in pools(sizes).items():
        for runs in sizes.some(RUNS):
            trials = Trials(f"load {load}, {runs} runs")
            for drawn in draws(sizes, runs, len(easy)):
                interval = paired_difference(other[drawn], easy[drawn])
                trials.add(interval.low, interval.high, float(np.delete(other - easy, drawn).mean()))
            found.append(trials)
    return found


@experiment("replications.band", of_what="other seeds", command="compare --replications, campaign report", quick=True)
def band(sizes: Sizes) -> list[Trials]:
    """The mean wait of one further run under EASY."""
    return [
        _further(sizes, values, runs, Trials(f"load {load}, {runs} runs", nominal=min((runs - 1) / (runs + 1), 0.9)))
        for load, (values, _) in pools(sizes).items()
        for runs in (3, *sizes.some(RUNS))
    ]


@experiment("runs.percentiles", of_what="these runs", command="paper run", quick=True)
def percentiles(sizes: Sizes) -> list[Trials]:
    """The same of the percentiles that the papers print, which are of the runs that were made."""
    values, _ = next(iter(pools(sizes).values()))
    found = [Trials(f"one further run, {runs} runs", meant=False) for runs in (3, *RUNS)]
    return [_further(sizes, values, runs, trials, percentile_band) for runs, trials in zip((3, *RUNS), found, strict=True)]


def _further(sizes: Sizes, values: Array, runs: int, trials: Trials, make: Callable[[Array], Interval] = range_of_runs) -> Trials:
    for drawn in draws(sizes, runs + 1, len(values)):
        interval = make(values[drawn[1:]])
        trials.add(interval.low, interval.high, float(values[drawn[0]]))
    return trials
