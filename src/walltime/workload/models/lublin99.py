"""The workload model of Lublin and Feitelson."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np

from walltime.declared import Field
from walltime.workload.models.model import ModelJobs, WorkloadModel, stream, stretch_to, total_work

Array = np.ndarray

BUCKETS = 48
BUCKET_SECONDS = 1800
DAY = BUCKETS * BUCKET_SECONDS
FIRST_BUCKET = 11
"""The half hour of the day at which the weights of the daily cycle start."""
REFERENCE_PROCS = 128
"""The machine size for which the paper gives the bounds of the job sizes."""


@dataclass(frozen=True)
class LublinClass:
    """The constants of one class of jobs, named as in the authors' program.

    A job is serial with probability `serial`, and a power of two with probability `pow2`. The logarithm (base 2) of the size of a parallel
    job is uniform in (`low`, `med`) with probability `prob`, else in (`med`, `hi`). The logarithm (base e) of the runtime is Gamma(`a1`,
    `b1`) with probability pa n + pb for a job of n processors, else Gamma(`a2`, `b2`). The logarithm of the interarrival time is
    Gamma(`aarr` x `arar`, `barr`), modulated by a daily cycle whose half hours have the weights of a Gamma(`anum`, `bnum`).
    """

    serial: float
    pow2: float
    low: float
    med: float
    hi: float
    prob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float

    def for_machine(self, procs: int) -> Self:
        """Return the class with the bounds of job sizes for this machine.

        `hi` keeps its distance from the logarithm of the machine's size, and `med` is 2.5 below it (the paper allows 1.5 to 3.5), unless
        the machine has the paper's size.
        """
        if procs == REFERENCE_PROCS:
            return self
        hi = max(math.log2(procs) - (math.log2(REFERENCE_PROCS) - self.hi), 0.0)
        med = max(hi - 2.5, 0.0)
        return replace(self, low=min(self.low, med), med=med, hi=hi)


_CONSTANTS = {
    "serial": (0.2927, 0.1541, 0.244),
    "pow2": (0.6686, 0.625, 0.576),
    "low": (1.2, 1, 0.8),
    "med": (5, 3, 4.5),
    "hi": (7, 5.5, 7),
    "prob": (0.875, 0.705, 0.86),
    "a1": (6.57, 3.8351, 4.2),
    "b1": (0.823, 0.6605, 0.94),
    "a2": (639.1, 7.073, 312),
    "b2": (0.0156, 0.6856, 0.03),
    "pa": (-0.003, -0.0118, -0.0054),
    "pb": (0.6986, 0.9156, 0.78),
    "aarr": (6.0415, 6.5510, 10.2303),
    "barr": (0.8531, 0.6621, 0.4871),
    "anum": (6.1271, 8.9186, 8.1737),
    "bnum": (5.2740, 3.6680, 3.9631),
    "arar": (1.0519, 0.9797, 1.0225),
}
"""The constants of batch jobs, of interactive jobs, and of all jobs as one class."""
BATCH, INTERACTIVE, TYPELESS = (LublinClass(*(float(values[k]) for values in _CONSTANTS.values())) for k in range(3))


@dataclass(frozen=True)
class Lublin99(WorkloadModel):
    """Sizes, size-dependent runtimes, and arrivals with a daily cycle, for batch and interactive jobs or for one class.

    `classes`: `both` mixes batch (queue 1) and interactive (queue 0) jobs by their arrivals; `typeless` is the model of all
    jobs together. Runtimes over e**`longest` s and interarrival times over e**`longest_gap` s are redrawn from the same
    distribution. Sizes larger than the machine are reduced to it.

    `keep_cycle`: a load is reached by scaling the interarrival times before the daily cycle is applied, so that a day still has
    24 hours (our construction); otherwise by scaling the arrival times, including the cycle (as in mualem01, section 3.1).

    Source: lublin99 (Lublin and Feitelson, J. Parallel Distrib. Comput. 63 (2003), and the authors' program).

    >>> jobs = Lublin99().generate(jobs=1000, machine_procs=256, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3)
    (1000, 0.7)
    """

    classes: Literal["both", "typeless"] = "both"
    batch: Annotated[LublinClass, Field(inside=True)] = BATCH
    interactive: Annotated[LublinClass, Field(inside=True)] = INTERACTIVE
    typeless: Annotated[LublinClass, Field(inside=True)] = TYPELESS
    longest: float = 12.0
    """logarithm of the longest runtime, s; longer ones are drawn again"""
    longest_gap: float = 13.0
    """logarithm of the longest time between arrivals, s; longer ones are drawn again"""
    keep_cycle: bool = True
    """whether a day still has 24 hours if a load is given"""

    @property
    def name(self) -> str:
        """Return the model's name on the command line."""
        return "lublin99" if self.classes == "both" else "lublin99-typeless"

    def _draw(self, jobs: int, machine_procs: int, load: float | None, seed: int) -> ModelJobs:
        both = {"interactive": self.interactive, "batch": self.batch}
        parts = both if self.classes == "both" else {"typeless": self.typeless}
        points = [self._points(part, jobs, stream(self.name, seed, f"{name} arrival")) for name, part in parts.items()]
        arrival = np.concatenate([day_time(part, own) for part, own in zip(parts.values(), points, strict=True)])
        first = np.argsort(arrival, kind="stable")[:jobs]
        counts = np.bincount(first // jobs, minlength=len(parts)).tolist()
        chosen = [(part, own[:n]) for part, own, n in zip(parts.values(), points, counts, strict=True)]
        sizes, times = [], []
        for (name, part), n in zip(parts.items(), counts, strict=True):
            adapted = part.for_machine(machine_procs)
            sizes.append(np.minimum(_sizes(adapted, n, stream(self.name, seed, f"{name} size")), machine_procs))
            times.append(self._runtimes(adapted, sizes[-1], stream(self.name, seed, f"{name} runtime")))
        procs, runtime = np.concatenate(sizes), np.concatenate(times)
        stretch, kept = 1.0, self.keep_cycle and jobs > 1
        if load is not None and kept:
            stretch = _stretch(chosen, total_work(self, procs, runtime) / (machine_procs * load))
        arrival = np.concatenate([day_time(part, own * stretch) for part, own in chosen])
        order = np.argsort(arrival, kind="stable")
        columns = {} if self.classes == "typeless" else {"queue": np.repeat(np.arange(len(parts)), counts)[order]}
        return ModelJobs(arrival[order], runtime[order], procs[order], columns, has_load=kept)

    def _runtimes(self, part: LublinClass, procs: Array, random: np.random.Generator) -> Array:
        first = random.random(len(procs)) < np.clip(part.pa * procs + part.pb, 0, 1)
        shape, scale = np.where(first, part.a1, part.a2), np.where(first, part.b1, part.b2)
        return np.floor(np.exp(_gamma_up_to(self.longest, shape, scale, random))).astype(np.int64)

    def _points(self, part: LublinClass, jobs: int, random: np.random.Generator) -> Array:
        """Return arrivals on a clock whose speed follows the daily cycle, float64 half hours, ascending."""
        shape = np.full(jobs, part.aarr * part.arar)
        return np.cumsum(np.exp(_gamma_up_to(self.longest_gap, shape, np.full(jobs, part.barr), random)) / BUCKET_SECONDS)


def day_time(part: LublinClass, points: Array) -> Array:
    """Return arrival times, float64 s from midnight, from the cumulative sums of the gaps in half hours.

    Each half hour of the day consumes as many points as its weight, so the time is the inverse of the cumulative weights. As in the
    paper, hour-like parameters are used with half-hour buckets.
    """
    ends = np.concatenate([[0.0], np.cumsum(day_weights(part))])
    days, rest = np.divmod(points, ends[-1])
    return days * DAY + np.interp(rest, ends, np.arange(BUCKETS + 1) * BUCKET_SECONDS)


def _stretch(chosen: list[tuple[LublinClass, Array]], wanted: float) -> float:
    """Return the factor for the cumulative sums of all classes with which all jobs arrive within `wanted` s."""
    ends = [(part, points[[0, -1]]) for part, points in chosen if len(points)]

    def span(factor: float) -> float:
        times = np.concatenate([day_time(part, points * factor) for part, points in ends])
        return float(times.max() - times.min())

    return stretch_to(span, wanted)


def day_weights(part: LublinClass) -> Array:
    """Return the weights of the 48 half hours from midnight, float64, with mean 1.

    >>> float(day_weights(TYPELESS).mean().round(12))
    1.0
    """
    from scipy.special import gammainc  # slow to load

    ends = np.arange(FIRST_BUCKET, FIRST_BUCKET + BUCKETS + 1) - 0.5
    weights = np.roll(np.diff(gammainc(part.anum, ends / part.bnum)), FIRST_BUCKET - 1)
    return weights / weights.mean()


def _sizes(part: LublinClass, jobs: int, random: np.random.Generator) -> Array:
    kind = random.random(jobs)
    below = random.random(jobs) < part.prob
    place = random.random(jobs)
    log_size = np.where(below, part.low + place * (part.med - part.low), part.med + place * (part.hi - part.med))
    log_size = np.where(kind <= part.serial + part.pow2, np.floor(log_size + 0.5), log_size)
    return np.where(kind <= part.serial, 1, np.floor(2**log_size + 0.5)).astype(np.int64)


def _gamma_up_to(most: float, shape: Array, scale: Array, random: np.random.Generator) -> Array:
    """Draw gamma variates, and draw again those over `most`."""
    drawn = random.gamma(shape, scale)
    over = np.flatnonzero(drawn > most)
    while len(over):
        drawn[over] = random.gamma(shape[over], scale[over])
        over = over[drawn[over] > most]
    return drawn
