"""The workload model of Jann et al., its fit to a log, and its hyper-Erlang distributions, which fit three moments exactly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np

from walltime.declared import Field
from walltime.errors import WorkloadError
from walltime.wording import counted
from walltime.workload.models.model import ModelJobs, WorkloadModel, stream, values_of
from walltime.workload.workload import Workload

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


FEWEST_JOBS = 30
"""Ranges with fewer jobs are merged with the next one, because they do not determine three moments."""


@dataclass(frozen=True)
class SizeRange:
    """Jobs of `low` to `high` processors: sizes and their frequencies, and distributions of interarrival times and runtimes, s."""

    low: int
    high: int
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    gap: HyperErlang
    runtime: HyperErlang


CTC_SP2 = tuple(
    SizeRange(low, high, tuple(row["sizes"]), tuple(row["jobs"]), HyperErlang(*row["interarrival"]), HyperErlang(*row["runtime"]))
    for row in values_of("ctc_sp2")["jann97"]
    for low, high in [row["range"]]
)
"""Refitted, as described in `ctc_sp2.toml`; the tables in the paper were not available."""


@dataclass(frozen=True)
class Jann97(WorkloadModel):
    """Interarrival times and runtimes of each range of sizes follow separate hyper-Erlang distributions of common order.

    `ranges`: one for each range of sizes; the defaults were refitted from a log, since the tables in the paper were not available.
    `source`: that log. Sizes are as in the fitted log: a larger machine gets no larger jobs, and jobs wider than a smaller machine are not
    submitted. Each range begins with an interarrival time at 0. Runtimes are rounded, and at least 1 s. Within a range, sizes are as
    frequent as in the log (the paper does not give its rule).

    Source: jann97 (Jann, Pattnaik, Franke, Wang, Skovira, Riordan, JSSPP 1997).

    >>> jobs = Jann97().generate(jobs=1000, machine_procs=322, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3), int(jobs.procs.max()) <= 322
    (1000, 0.7, True)
    """

    ranges: Annotated[tuple[SizeRange, ...], Field(inside=True)] = field(default=CTC_SP2, repr=False)
    source: Annotated[str, Field(inside=True)] = (
        "refitted from CTC-SP2-1996-3.1-cln.recon, 26 June to 12 September 1996; the tables in the paper were not available"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ranges:
            raise WorkloadError("a model of Jann'97 needs at least one range of sizes", "no_size_ranges")

    @classmethod
    def fit(cls, workload: Workload, ranges: str | Sequence[int] = "powers") -> Self:
        """Return the model refitted to the jobs of a log, with the first three moments of each range's times.

        `ranges`: `powers` for the sizes 1, 2, 3-4, 5-8 and so on, `fives` for 1, 2-5, 6-10, 11-15 and so on, or the largest
        size of each range. A range with fewer than 30 jobs is merged with the one above it, the last one with the one below.
        Raises WorkloadError if the log is too short, or if no distribution has the moments (for example, if all jobs of a range
        have the same runtime); wider ranges may help.
        """
        return cls(tuple(_fitted(workload, low, high) for low, high in _bounds(workload, ranges)), f"fitted from {workload.origin.name}")

    def _draw(self, jobs: int, machine_procs: int, load: float | None, seed: int) -> ModelJobs:
        parts = [r for r in self.ranges if r.sizes[0] <= machine_procs]
        if not parts:
            raise WorkloadError(
                f"the smallest job of this model has {self.ranges[0].sizes[0]} processors, but the machine has {machine_procs}; set "
                "more (procs=N)"
            )
        arrivals = self._arrivals(parts, jobs, machine_procs, seed)
        which = np.repeat(np.arange(len(parts)), [len(a) for a in arrivals])
        arrival = np.concatenate(arrivals)
        order = np.argsort(arrival, kind="stable")[:jobs]
        which = which[order]
        procs, runtime = np.empty(jobs, np.int64), np.empty(jobs, np.int64)
        for k, part in enumerate(parts):
            mine = np.flatnonzero(which == k)
            label = f"{part.low}-{part.high}"
            sizes, counts = _fitting(part, machine_procs)
            share = np.cumsum(counts) / counts.sum()
            procs[mine] = sizes[np.searchsorted(share, stream(self.name, seed, f"{label} size").random(len(mine)), side="right")]
            drawn = part.runtime.draw(len(mine), stream(self.name, seed, f"{label} runtime"))
            runtime[mine] = np.maximum(np.floor(drawn + 0.5), 1).astype(np.int64)
        return ModelJobs(arrival[order], runtime, procs)

    def _arrivals(self, parts: list[SizeRange], jobs: int, machine_procs: int, seed: int) -> list[Array]:
        """Return the arrival times of each range, float64 s, for enough jobs in total.

        If some sizes of a range do not fit on the machine, its interarrival times grow in proportion to the missing jobs.
        """
        streams = [stream(self.name, seed, f"{part.low}-{part.high} arrival") for part in parts]
        thinner = [sum(part.counts) / _fitting(part, machine_procs)[1].sum() for part in parts]
        means = [part.gap.mean() * thin for part, thin in zip(parts, thinner, strict=True)]
        arrivals = [np.zeros(0)] * len(parts)
        horizon = (jobs + 4 * jobs**0.5) / sum(1 / mean for mean in means)
        while True:
            for k, part in enumerate(parts):
                last = float(arrivals[k][-1]) if len(arrivals[k]) else 0.0
                while last <= horizon:
                    count = int((horizon - last) / means[k] * 1.05) + 16
                    gaps = part.gap.draw(count, streams[k]) * thinner[k]
                    arrivals[k] = np.concatenate([arrivals[k], last + np.cumsum(gaps)])
                    last = float(arrivals[k][-1])
            if sum(int(np.searchsorted(a, horizon, side="right")) for a in arrivals) >= jobs:
                return arrivals
            horizon *= 1.2


def _fitting(part: SizeRange, machine_procs: int) -> tuple[Array, Array]:
    """Return the sizes of a range that fit on the machine, and their frequencies."""
    sizes, counts = np.array(part.sizes), np.array(part.counts)
    return sizes[sizes <= machine_procs], counts[sizes <= machine_procs]


def _bounds(workload: Workload, ranges: str | Sequence[int]) -> list[tuple[int, int]]:
    """Return the smallest and largest size of each range; ranges with too few jobs are merged."""
    widest = int(workload.procs.max())
    if isinstance(ranges, str):
        if ranges not in ("powers", "fives"):
            raise WorkloadError(
                f"unknown ranges of sizes {ranges!r}; give powers, fives, or the largest size of each range", "unknown_rule"
            )
        ups = [2**k for k in range(widest.bit_length() + 1)] if ranges == "powers" else [1, *range(5, widest + 5, 5)]
    else:
        ups = sorted(int(size) for size in ranges)
        if not ups or ups[0] < 1 or len(set(ups)) < len(ups):
            raise WorkloadError(
                f"the largest sizes of the ranges must be different numbers of at least 1, not {list(ranges)}", "number_out_of_range"
            )
    ups = [*(up for up in ups if up < widest), widest]
    joined: list[tuple[int, int]] = []
    low = 1
    for high in ups:
        if np.count_nonzero((workload.procs >= low) & (workload.procs <= high)) >= FEWEST_JOBS:
            joined.append((low, high))
            low = high + 1
    if not joined:
        raise WorkloadError(
            f"{workload.origin.name} has {counted(len(workload), 'job')}, too few to fit distributions; use more", "too_few_jobs"
        )
    joined[-1] = (joined[-1][0], widest)
    return joined


def _fitted(workload: Workload, low: int, high: int) -> SizeRange:
    mine = (workload.procs >= low) & (workload.procs <= high)
    sizes, counts = np.unique(workload.procs[mine], return_counts=True)
    times = {"times between arrivals": np.diff(workload.submit[mine]), "runtimes": workload.runtime[mine]}
    distributions = []
    for what, values in times.items():
        raw = values.astype(np.float64)
        try:
            distributions.append(fit_hyper_erlang(float(raw.mean()), float((raw**2).mean()), float((raw**3).mean())))
        except WorkloadError as error:
            raise WorkloadError(f"the {what} of the jobs of {low} to {high} processors: {error}", error.code) from None
    return SizeRange(low, high, tuple(sizes.tolist()), tuple(counts.tolist()), *distributions)
