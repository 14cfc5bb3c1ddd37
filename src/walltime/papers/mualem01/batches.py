"""Batch means as mualem01 defines them, with its rules for when to stop: what its figures are made with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics import Interval, mean_interval

Array = np.ndarray

ALL_BATCHES, PRECISE, SATURATED, OUT_OF_JOBS = "all batches", "precise", "saturated", "out of jobs"


@dataclass(frozen=True)
class PublishedBatchMeans:
    """A mean from batch means: its confidence interval, the number of batches, and the stopping rule that applied."""

    interval: Interval
    batches: int
    stopped: str


def published_batch_means(
    values: Array,
    *,
    batch: int = 3333,
    discard: int = 1,
    most: int = 100,
    least: int = 10,
    precision: float = 0.05,
    saturation: float = 30_000,
    confidence: float = 0.90,
) -> PublishedBatchMeans:
    """Steady-state mean with a confidence interval, from values in order of termination.

    `values`: float64 or int64, one per job, such as response times in seconds. The first `discard` batches are discarded as
    warm-up. After each further batch it stops by the first rule that holds: `all batches` (`most` of them are done), `precise`
    (the half-width is below `precision` of the mean, and `least` batches are done), `saturated` (the mean exceeds `saturation`,
    so there is no steady state; from two batches on); or `out of jobs`. Raises WorkloadError if fewer than two batches remain.

    Batches are taken for independent, whatever they correlate by, so the interval holds less than it says where they do; that is why
    `walltime.metrics.batch_means` has other rules.

    Source: mualem01, section 3.1. Interpretation: "smaller than 5 percent" refers to the half-width. `least` is ours: the width
    of an interval over few batches is itself noisy, and stopping as soon as it happens to be small gives poor coverage.

    >>> result = published_batch_means(np.tile([1.0, 3.0], 10_000), batch=1000)
    >>> result.interval.mean, result.batches, result.stopped
    (2.0, 10, 'precise')
    """
    if batch < 1 or discard < 0 or most < 2 or least < 2:
        given = f"{batch=}, {discard=}, {most=}, {least=}"
        raise WorkloadError(f"batch means need batches of 1 job or more, 2 of them at least, not {given}")
    count = len(values) // batch
    if count < discard + 2:
        raise WorkloadError(f"{len(values)} jobs make {count} batches of {batch}; batch means need {discard + 2} with the warm-up")
    means = np.asarray(values[: count * batch], np.float64).reshape(count, batch).mean(axis=1)[discard:]
    stopped = OUT_OF_JOBS
    for k in range(2, min(len(means), most) + 1):
        used = means[:k]
        interval = mean_interval(used, confidence)
        if interval.mean > saturation:
            stopped = SATURATED
        elif k >= least and interval.half_width < precision * interval.mean:
            stopped = PRECISE
        elif k == most:
            stopped = ALL_BATCHES
        else:
            continue
        break
    return PublishedBatchMeans(interval, k, stopped)
