"""Hyper-Erlang distributions of common order, and their exact fit to three moments."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from walltime.errors import WorkloadError

Array = np.ndarray

LARGEST_ORDER = 100
"""The highest order tried, sufficient for a coefficient of variation down to 0.1."""
EQUAL = 1e-12
"""Two branches count as one if their means differ by less than this fraction of the mean."""


@dataclass(frozen=True)
class HyperErlang:
    """The sum of `order` exponential stages, all with the mean `first` (with probability `share`) or all with the mean `second`.

    `first, second`: mean of one stage, in the unit of the variable (seconds); `second` may be 0. A share of 1 gives a single
    Erlang distribution, an order of 1 a hyper-exponential one. Raises WorkloadError for impossible parameters.

    Source: jann97.

    >>> HyperErlang(order=2, share=0.75, first=10.0, second=50.0).mean()
    40.0
    """

    order: int
    share: float
    first: float
    second: float

    def __post_init__(self) -> None:
        if self.order < 1 or not 0 <= self.share <= 1 or not (0 <= self.first < math.inf and 0 <= self.second < math.inf):
            raise WorkloadError(
                "a hyper-Erlang distribution has an order of at least 1, a share from 0 to 1 and means of 0 or more, not"
                f" {self.order}, {self.share:g}, {self.first:g} and {self.second:g}",
                "number_out_of_range",
            )

    def moment(self, k: int) -> float:
        """Return the k-th raw moment."""
        stages = math.prod(range(self.order, self.order + k))
        return stages * (self.share * self.first**k + (1 - self.share) * self.second**k)

    def moments(self) -> tuple[float, float, float]:
        """Return the first three raw moments."""
        return self.moment(1), self.moment(2), self.moment(3)

    def mean(self) -> float:
        """Return the mean."""
        return self.moment(1)

    def draw(self, count: int, random: np.random.Generator) -> Array:
        """Return random values, float64."""
        scale = np.where(random.random(count) < self.share, self.first, self.second)
        return random.gamma(float(self.order), scale)


def fit_hyper_erlang(m1: float, m2: float, m3: float, largest_order: int = LARGEST_ORDER) -> HyperErlang:
    """Return the hyper-Erlang distribution with these raw moments, of the smallest feasible order.

    Divided by the moments of a sum of n stages of mean 1, they must be the moments of a distribution on two positive values, the stage
    means of the two branches. For the squared coefficient of variation c2 this requires `c2 > 1/n`, and for the third moment
    `m1 m3 / m2**2 >= (n + 2) / (n + 1)`. Both conditions are weaker for a larger n, so the order grows until they hold. If c2 = 1/n and the
    third moment agrees, the result is a single Erlang distribution. The paper does not give its rule for the order.

    Raises WorkloadError if no positive distribution has the moments, or if they need an order over `largest_order`.

    Source: matching of three moments as in jann97; the formulas are ours, for mean 1 with central moments to limit rounding errors.

    >>> fit_hyper_erlang(1.0, 2.0, 6.0)
    HyperErlang(order=1, share=1.0, first=1.0, second=0.0)
    >>> fit_hyper_erlang(*HyperErlang(order=3, share=0.75, first=10.0, second=15.0).moments()).order
    3
    """
    if not all(0 < m < math.inf for m in (m1, m2, m3)):
        raise WorkloadError(f"moments must be positive numbers, not {m1:g}, {m2:g} and {m3:g}", "impossible_moments")
    b, c = m2 / m1 / m1, m3 / m1 / m1 / m1
    if b < 1 - EQUAL or c < b * b * (1 - EQUAL):
        raise WorkloadError(f"no positive distribution has the moments {m1:g}, {m2:g} and {m3:g}", "impossible_moments")
    for order in range(1, largest_order + 1):
        fit = _of_order(order, m1 / order, b * order / (order + 1), c * order * order / ((order + 1) * (order + 2)))
        if fit is not None:
            return fit
    raise WorkloadError(
        f"no hyper-Erlang distribution of an order up to {largest_order} has the moments {m1:g}, {m2:g} and {m3:g}:"
        f" the coefficient of variation is {math.sqrt(max(b - 1, 0)):.3g}",
        "impossible_moments",
    )


def _of_order(order: int, mean: float, b: float, c: float) -> HyperErlang | None:
    """Return the distribution of this order; None if there is none. `b, c`: second and third moment of the stage means, for a mean of 1."""
    variance, third = b - 1, c - 3 * b + 2
    if abs(variance) <= EQUAL and abs(third) <= 1e3 * EQUAL:
        return HyperErlang(order, 1.0, mean, 0.0)
    if variance <= EQUAL:
        return None
    # The deviations of the two stage means from 1 are the roots of y**2 - skew y - variance = 0.
    skew = third / variance
    root = math.hypot(skew / 2, math.sqrt(variance))
    high, low = (skew / 2 + root, skew / 2 - root)
    high, low = (high, -variance / high) if skew > 0 else (-variance / low, low)
    if low < -1 - 1e-9:
        return None
    return HyperErlang(order, high / (high - low), mean * max(1 + low, 0.0), mean * (1 + high))
