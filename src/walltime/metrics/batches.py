"""The mean of one long run, with a confidence interval from batches of successive values that hardly correlate."""

from dataclasses import dataclass

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics.confidence import Interval, mean_interval
from walltime.metrics.series import neighbour_correlation, series_interval

Array = np.ndarray

PRECISE, WIDE, SATURATED, TOO_SHORT = "precise", "wide", "saturated", "too short"
FEWEST_BATCHES = 10
"""Minimum number of batches for an interval."""
MOST_BATCHES = 30
"""Maximum number of batches for an interval: more batches would hardly narrow the interval, but correlate more with their neighbours."""
CORRELATION_TIMES = 10
"""Length of a batch, in autocorrelation times; neighbouring batches then correlate by about 0.05."""
FEWEST_JOBS = 16_000
"""Number of jobs needed for an interval on a machine that is never busy; a busy one needs more (`jobs_needed`)."""
PIECES = 1000
"""The autocorrelation is measured on the means of about this many successive pieces of the run."""


@dataclass(frozen=True)
class BatchMeans:
    """The mean of one long run, with an interval for the mean of an infinite run.

    `mean`: the mean of all values after the warm-up; `whole`: the mean including the warm-up. `interval`: for `mean`; None if there is
    none, see `verdict` and `reason`. `batches`: number of merged batches, each of `batch` values; `correlation`: between neighbouring
    batches, and `correlation_asked` between neighbouring batches of the requested length (NaN for fewer than three). `alike`: the
    integrated autocorrelation time, in values. `needed`: number of values that would suffice. `verdict`: `precise`, `wide` (the half-width
    is not below 5 % of the mean), `saturated` or `too short`.
    """

    mean: float
    whole: float
    interval: Interval | None
    batches: int
    batch: int
    correlation: float
    correlation_asked: float
    alike: float
    needed: int
    verdict: str
    busy: bool = False
    """whether `needed` follows from the utilization of the machine"""

    @property
    def reason(self) -> str:
        """Return the reason why the interval is missing, or an empty text."""
        if self.interval is not None:
            return ""
        if self.verdict == SATURATED:
            return "saturated: the mean exceeds the limit and its values have no steady state"
        if self.busy:
            return f"too short: on a machine as busy as this, an interval needs about {self.needed:,} jobs"
        return f"too short: neighbours are alike over about {self.alike:,.0f} jobs, so an interval needs about {self.needed:,} jobs"

    @property
    def contradiction(self) -> str:
        """Return a warning if the mean of the whole run, with the warm-up, is outside the interval; empty otherwise."""
        if self.interval is None or self.interval.low <= self.whole <= self.interval.high:
            return ""
        return (
            f"the mean of the whole run, {self.whole:,.0f}, is outside this interval: its beginning differs from the rest; "
            "leave it out, or take a longer run"
        )


def batch_means(
    values: Array,
    *,
    batch: int = 3333,
    discard: int = 1,
    precision: float = 0.05,
    saturation: float = 30_000,
    confidence: float = 0.90,
    least: int = 0,
) -> BatchMeans:
    """Return the steady-state mean with a confidence interval, from values in order of termination.

    `values`: float64 or int64, one per job, such as response times in seconds. The first `discard` batches are discarded as warm-up.
    Batches are merged until each is ten autocorrelation times long, so that their means are nearly independent, and at most 30 remain. The
    interval of these means is `walltime.metrics.series_interval`, over five blocks of batches, because the autocorrelation time is itself
    uncertain. A run of fewer than ten such batches is too short and has no interval, because the coverage would be far below nominal. A
    `saturated` run has none either: the lower end of its interval exceeds `saturation`. If such a run is too short for an interval, the
    interval over five batches decides, provided that ten or more were requested. `least`: fewest values for an interval, because a short
    run may lack the long queue that others have (`jobs_needed`). For positive values, the lower end is at least 0. Raises WorkloadError if
    fewer than two batches remain.

    Source: batches as in mualem01, section 3.1, whose stopping rules are in `walltime.papers.mualem01.models`; the integrated
    autocorrelation time with Sokal's window, in: Functional Integration, 1997, section 3 (up to five times the estimate). The required
    length of a hundred such times is ours, from experiments with the waits of a single server (M/M/1); the experiments of
    `validation/coverage_selection.py` use other streams.

    >>> result = batch_means(np.tile([1.0, 3.0], 50_000), batch=1000)
    >>> result.mean, result.batches, result.verdict
    (2.0, 24, 'precise')
    >>> batch_means(np.arange(50_000.0), batch=1000).verdict
    'too short'
    """
    if batch < 1 or discard < 0:
        raise WorkloadError(f"batch means need batches of 1 job or more, not {batch=}, {discard=}", "number_out_of_range")
    values = np.asarray(values, np.float64)
    count = len(values) // batch - discard
    if count < 2:
        got = f"{len(values)} jobs make {count + discard} batches of {batch}"
        raise WorkloadError(f"{got}; batch means need {discard + 2} with the warm-up", "too_few_jobs")
    used = values[discard * batch :]
    alike = correlated_values(used)
    requested = _means(used, batch, count)
    length = max(1, int(np.ceil(max(CORRELATION_TIMES * alike, len(used) / MOST_BATCHES) / batch - 1e-9))) * batch
    long_enough = len(used) // length >= FEWEST_BATCHES and len(values) >= least
    if len(used) // length < FEWEST_BATCHES:
        length = max(1, count // FEWEST_BATCHES) * batch
    means = _means(used, length, len(used) // length)
    interval = series_interval(means, confidence) if long_enough else None
    if interval is not None:
        verdict = SATURATED if interval.low > saturation else PRECISE if interval.half_width < precision * interval.mean else WIDE
        what = f"{100 * confidence:g} % confidence interval of the mean of a run without end"
        low = max(interval.low, 0.0) if values.min() >= 0 else interval.low
        interval = None if verdict == SATURATED else Interval(interval.mean, low, interval.high, what)
    else:
        few = _means(used, count // 5 * batch, 5) if count >= FEWEST_BATCHES else None
        verdict = SATURATED if few is not None and mean_interval(few, confidence).low > saturation else TOO_SHORT
    by_correlation = int(np.ceil(FEWEST_BATCHES * max(CORRELATION_TIMES * alike, batch) / 1000)) * 1000 + discard * batch
    return BatchMeans(
        mean=float(used.mean()) if interval is None else interval.mean,
        whole=float(values.mean()),
        interval=interval,
        batches=len(means),
        batch=length,
        correlation=neighbour_correlation(means),
        correlation_asked=neighbour_correlation(requested),
        alike=alike,
        needed=max(by_correlation, least),
        verdict=verdict,
        busy=least > by_correlation,
    )


def jobs_needed(utilization: float) -> int:
    """Return the number of jobs that one run needs for an interval of its mean response, at this utilization.

    The duration of queues, and with it the number of jobs, grows as 1 / (1 - utilization)^2. Source: Whitt, Management Science 35 (1989),
    section 3; the factor is ours, from experiments with the Lublin'99 model under EASY.

    >>> jobs_needed(0.5), jobs_needed(0.8)
    (64000, 400000)
    """
    return round(FEWEST_JOBS / max(1 - utilization, 0.02) ** 2 / 1000) * 1000


def correlated_values(values: Array) -> float:
    """Return the integrated autocorrelation time T, in values: a mean of n values varies like a mean of n / T independent ones.

    `values`: float64, in order of time. T is measured on the means of pieces, so it is at least the length of a piece.

    >>> correlated_values(np.tile([1.0, 3.0], 100))
    1.0
    """
    piece = max(1, len(values) // PIECES)
    means = _means(values, piece, len(values) // piece)
    away = means - means.mean()
    count, power = len(away), float(away @ away)
    if power <= 1e-18 * max(1.0, float(means @ means)):
        return float(piece)
    total = 1.0
    for lag in range(1, max(count // 2, 2)):
        total += 2 * float(away[lag:] @ away[:-lag]) / power
        if lag >= 5 * max(total, 1.0):
            break
    return piece * max(total, 1.0)


def _means(values: Array, length: int, count: int) -> Array:
    """Return the means of the first `count` pieces of `length` values."""
    return np.asarray(values[: count * length].reshape(count, length).mean(axis=1))
