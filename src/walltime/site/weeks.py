"""Weeks of a log as independent observations: intervals by resampling them."""

from __future__ import annotations

import numpy as np

from walltime.metrics import Interval

Array = np.ndarray

WEEK = 7 * 86_400
FEWEST_WEEKS = 4
"""With fewer weeks there is no interval."""
SAMPLES = 2000
CONFIDENCE = 0.90


def weeks_of(submit: Array) -> Array:
    """The number of the week in which each job is submitted, from the first submission on, int64."""
    return (submit - submit.min()) // WEEK if len(submit) else np.zeros(0, np.int64)


def over_weeks(values: Array, weeks: Array, seed: int = 0) -> Interval | None:
    """The mean of these values, and its interval from resampling whole weeks with replacement; None for under 4 weeks with jobs.

    `values`: float64, `weeks`: int64; each of shape (jobs,). Where the values are paired differences, so are those of the resamples. The
    schedule is taken as given: jobs are not submitted otherwise because others wait longer.
    Source: Efron, Ann. Statist. 7 (1979); resampling by weeks is ours.

    >>> found = over_weeks(np.array([1.0, 3.0, 1.0, 3.0]), np.arange(4))
    >>> found.mean, 1 <= found.low < found.high <= 3, found.what
    (2.0, True, '90 % interval from resampling 4 weeks')
    """
    _, place = np.unique(weeks, return_inverse=True)
    count = np.bincount(place)
    if len(count) < FEWEST_WEEKS:
        return None
    total = np.bincount(place, weights=values)
    random = np.random.Generator(np.random.Philox(seed))
    drawn = random.multinomial(len(count), np.full(len(count), 1 / len(count)), SAMPLES)
    low, high = np.percentile((drawn @ total) / (drawn @ count), [50 - 50 * CONFIDENCE, 50 + 50 * CONFIDENCE])
    what = f"{100 * CONFIDENCE:g} % interval from resampling {len(count)} weeks"
    return Interval(float(np.mean(values)), float(low), float(high), what)
