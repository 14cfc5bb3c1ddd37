"""How often the intervals from shaken copies of a log hold what further copies show, and what they are not about.

A log of a model with users is shaken many times. The interval is made from the log and five copies, as `compare` and `what-if` make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from validation.coverage import Sizes, Trials, experiment
from walltime import simulate
from walltime.estimates import Tsafrir05
from walltime.metrics import mean_interval, range_of_runs
from walltime.schedule.spread import COPIES, SHAKE
from walltime.workload.lublin99 import Lublin99
from walltime.workload.scaling import shake
from walltime.workload.users import with_users

Array = np.ndarray

LOADS = (0.6, 0.7, 0.8, 1.1)
"""The last one is overloaded."""


@lru_cache
def waits(load: float, log: int, copies: int, jobs: int) -> Array:
    """The mean wait under EASY and under conservative backfilling of a log and of so many shaken copies; float64, shape (2, 1 + copies)."""
    own = with_users(Lublin99().generate(jobs, 128, load, log), 30, log).with_estimates(Tsafrir05(), log)
    every = [own, *(shake(own, SHAKE, seed) for seed in range(copies))]
    return np.array([[simulate(one, policy).summary().mean_wait for one in every] for policy in ("easy", "conservative")])


def cases(sizes: Sizes) -> Iterator[tuple[float, list[Array]]]:
    """Each load, with the mean waits of several logs."""
    for load in sizes.some(LOADS):
        logs = range(sizes.many(8, 3))
        yield load, [waits(load, log, sizes.many(30, 25), sizes.many(1000, 300)) for log in logs]


def draws(copies: int, sizes: Sizes, seed: int) -> list[Array]:
    """Places of six copies each, drawn without replacement."""
    random = np.random.default_rng(seed)
    return [random.choice(copies, COPIES + 1, replace=False) for _ in range(sizes.many(50, 20))]


@experiment("shaken.copy", of_what="this log, shaken", command="compare, what-if, estimates --adjusted", quick=True)
def copy(sizes: Sizes) -> list[Trials]:
    """The difference in mean wait between conservative backfilling and EASY in a further copy, and those of other logs and of the model."""
    found = []
    for load, logs in cases(sizes):
        one, other = Trials(f"load {load}, one further copy"), Trials(f"load {load}, another log of the model", meant=False)
        model = Trials(f"load {load}, the mean of the model", meant=False)
        own = np.array([values[1, 0] - values[0, 0] for values in logs])
        for log, values in enumerate(logs):
            differences = values[1] - values[0]
            for drawn in draws(len(differences) - 1, sizes, log):
                used = np.append(differences[0], differences[1 + drawn[1:]])
                half = mean_interval(used).half_width * np.sqrt(len(used) + 1)
                ends = used.mean() - half, used.mean() + half
                one.add(*ends, differences[1 + drawn[0]], log)
                other.add(*ends, own[(log + 1) % len(own)], log)
                model.add(*ends, float(np.delete(own, log).mean()), log)
        found += [one, other, model]
    return found


@experiment("shaken.mean", of_what="this log, shaken", command="compare --policy all", quick=True)
def mean(sizes: Sizes) -> list[Trials]:
    """The mean difference over all further copies."""
    found = []
    for load, logs in cases(sizes):
        trials = Trials(f"load {load}")
        for log, values in enumerate(logs):
            differences = values[1] - values[0]
            for drawn in draws(len(differences) - 1, sizes, log):
                mine = 1 + drawn[1:]
                interval = mean_interval(np.append(differences[0], differences[mine]))
                trials.add(interval.low, interval.high, float(np.delete(differences, np.append(0, mine)).mean()), log)
        found.append(trials)
    return found


@experiment("shaken.range", of_what="this log, shaken", command="dialects LOG", quick=True)
def further(sizes: Sizes) -> list[Trials]:
    """The mean wait under EASY in one further copy."""
    found = []
    for load, logs in cases(sizes):
        for copies, nominal in ((5, 4 / 6), (20, 0.9)):
            trials = Trials(f"load {load}, {copies} copies", nominal)
            random = np.random.default_rng(copies)
            for log, values in enumerate(logs):
                shaken = values[0, 1:]
                for _ in range(sizes.many(50, 20)):
                    drawn = random.choice(len(shaken), copies + 1, replace=False)
                    interval = range_of_runs(shaken[drawn[1:]])
                    trials.add(interval.low, interval.high, float(shaken[drawn[0]]), log)
            found.append(trials)
    return found
