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
from walltime.metrics import prediction_interval, range_of_runs
from walltime.simulation.spread import COPIES, MEASURES, SHAKE
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.resampling import with_users
from walltime.workload.scaling import shake

Array = np.ndarray

LOADS = (0.6, 0.7, 0.8, 1.1)
"""The last one is overloaded."""
POLICIES = ("easy", "conservative", "easy:order=sjf")


@lru_cache
def runs(load: float, log: int, copies: int, jobs: int) -> Array:
    """Return measures of a log and its shaken copies under each policy; float64, shape (measures, policies, 1 + copies)."""
    own = with_users(Lublin99().generate(jobs, 128, load, log), 30, log).with_estimates(Tsafrir05(), log)
    every = [own, *(shake(own, SHAKE, seed) for seed in range(copies))]
    found = [[simulate(one, policy).summary() for one in every] for policy in POLICIES]
    return np.array([[[getattr(one, name) for one in row] for row in found] for name in MEASURES])


def cases(sizes: Sizes) -> Iterator[tuple[float, list[Array]]]:
    """Each load, with the runs of several logs."""
    for load in sizes.some(LOADS):
        logs = range(sizes.many(8, 3))
        yield load, [runs(load, log, sizes.many(30, 25), sizes.many(1000, 300)) for log in logs]


def draws(copies: int, sizes: Sizes, seed: int) -> list[Array]:
    """Places of six copies each, drawn without replacement."""
    random = np.random.default_rng(seed)
    return [random.choice(copies, COPIES + 1, replace=False) for _ in range(sizes.many(50, 20))]


@experiment("shaken.copy", of_what="shaken copies of this log", command="compare, what-if, estimates --adjusted", quick=True)
def copy(sizes: Sizes) -> list[Trials]:
    """The difference in mean wait between conservative backfilling and EASY in a further copy, and those of other logs and of the model."""
    found = []
    for load, logs in cases(sizes):
        one, other = Trials(f"load {load}, one further copy"), Trials(f"load {load}, another log of the model", meant=False)
        model = Trials(f"load {load}, the mean of the model", meant=False)
        own = np.array([waits[1, 0] - waits[0, 0] for waits, _ in logs])
        for log, (waits, _) in enumerate(logs):
            differences = waits[1] - waits[0]
            for drawn in draws(len(differences) - 1, sizes, log):
                interval = prediction_interval(np.append(differences[0], differences[1 + drawn[1:]]))
                ends = interval.low, interval.high
                one.add(*ends, differences[1 + drawn[0]], log)
                other.add(*ends, own[(log + 1) % len(own)], log)
                model.add(*ends, float(np.delete(own, log).mean()), log)
        found += [one, other, model]
    return found


@experiment("shaken.copy:first-look", of_what="shaken copies of this log", command="compare --policy all", quick=True)
def first_look(sizes: Sizes) -> list[Trials]:
    """The mean bounded slowdown of one further copy, and the difference between two orders in it."""
    found = []
    for load, logs in cases(sizes):
        own, paired = (Trials(f"load {load}, bounded slowdown, {what}") for what in ("EASY", "the shortest job first instead"))
        for log, (_, slowdowns) in enumerate(logs):
            for trials, values in ((own, slowdowns[0]), (paired, slowdowns[2] - slowdowns[0])):
                for drawn in draws(len(values) - 1, sizes, log):
                    interval = prediction_interval(np.append(values[0], values[1 + drawn[1:]]))
                    trials.add(interval.low, interval.high, values[1 + drawn[0]], log)
        found += [own, paired]
    return found


@experiment("shaken.range", of_what="shaken copies of this log", command="dialects LOG", quick=True)
def further(sizes: Sizes) -> list[Trials]:
    """The mean wait under EASY in one further copy."""
    found = []
    for load, logs in cases(sizes):
        for copies, nominal in ((5, 4 / 6), (20, 0.9)):
            trials = Trials(f"load {load}, {copies} copies", nominal)
            random = np.random.default_rng(copies)
            for log, (waits, _) in enumerate(logs):
                shaken = waits[0, 1:]
                for _ in range(sizes.many(50, 20)):
                    drawn = random.choice(len(shaken), copies + 1, replace=False)
                    interval = range_of_runs(shaken[drawn[1:]])
                    trials.add(interval.low, interval.high, float(shaken[drawn[0]]), log)
            found.append(trials)
    return found
