"""The workload model of Downey: moldable jobs, and rules that choose their sizes."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from walltime.declared import Field
from walltime.errors import WorkloadError
from walltime.workload.models.model import ModelJobs, WorkloadModel, stream, stretch_to, total_work

Array = np.ndarray

DAY = 86_400
SizeRule = int | Literal["average-parallelism", "half-efficiency-knee"]


@dataclass(frozen=True)
class Downey97(WorkloadModel):
    """Jobs with an average parallelism and an amount of work, both log-uniform, and a speedup on any number of processors.

    The distributions are confirmed, but not their ranges: no default below was checked against the papers.

    The average parallelism A and the work are log-uniform; the variance of the parallelism, sigma, is uniform. `size_rule` determines the
    number of processors n of a job, which the model leaves to the scheduler: `average-parallelism`, A rounded; `half-efficiency-knee`,
    the largest n with an efficiency S(n) / n of at least 1/2; or a number for all jobs. No job is wider than the machine. The runtime is
    the work divided by S(n), rounded, at least 1 s. Arrivals are a Poisson process whose rate has two phases of 12 h. A load is reached by
    changing the rate of both phases, so that a day still has 24 hours, unless `keep_cycle` is off. A and sigma are not in the columns of
    the workload, but `draw` returns them.

    Source: downey97 (Downey, JSSPP 1997 and HPDC 1997).

    >>> jobs = Downey97().generate(jobs=1000, machine_procs=128, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3)
    (1000, 0.7)
    """

    least_parallelism: Annotated[float, Field(least=1)] = 1.0
    """least average parallelism A of a job"""
    most_parallelism: float | None = None
    """largest average parallelism; by default the processors of the machine"""
    least_work: Annotated[float, Field(above=0)] = 60.0
    """least work, processor-seconds"""
    most_work: float = 1e6
    """largest work, processor-seconds"""
    least_sigma: Annotated[float, Field(least=0)] = 0.0
    """least variance of the parallelism"""
    most_sigma: float = 2.0
    """largest variance of the parallelism"""
    size_rule: Annotated[SizeRule, Field(least=1)] = "average-parallelism"
    """rule for the size: average-parallelism, half-efficiency-knee, or a number of processors for all jobs"""
    mean_gap: Annotated[float, Field(above=0)] = 1200.0
    """mean time between arrivals, s"""
    day_share: Annotated[float, Field(least=0, most=1)] = 0.75
    """share of the jobs that arrive by day"""
    day_begins: Annotated[int, Field(least=0, most=DAY - 1)] = 28_800
    """start of the day, s after midnight"""
    keep_cycle: bool = True
    """whether a day still has 24 hours if a load is given"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("parallelism", "work", "sigma"):
            least, most = getattr(self, f"least_{what}"), getattr(self, f"most_{what}")
            if most is not None and most < least:
                raise WorkloadError(f"the largest {what} of {self.name} must be at least {least:g}, not {most:g}", "number_out_of_range")

    def draw(self, jobs: int, machine_procs: int, seed: int = 0) -> tuple[Array, Array, Array]:
        """Return the average parallelism, sigma and work (processor-seconds) of each moldable job, float64."""
        highest = max(machine_procs if self.most_parallelism is None else self.most_parallelism, self.least_parallelism)
        parallelism = _log_uniform(self.least_parallelism, highest, jobs, stream(self.name, seed, "parallelism"))
        sigma = stream(self.name, seed, "sigma").uniform(self.least_sigma, self.most_sigma, jobs)
        return parallelism, sigma, _log_uniform(self.least_work, self.most_work, jobs, stream(self.name, seed, "work"))

    def _draw(self, jobs: int, machine_procs: int, load: float | None, seed: int) -> ModelJobs:
        parallelism, sigma, work = self.draw(jobs, machine_procs, seed)
        procs = np.minimum(chosen_size(self.size_rule, parallelism, sigma), machine_procs)
        runtime = np.maximum(np.floor(work / speedup(procs, parallelism, sigma) + 0.5), 1).astype(np.int64)
        points = np.cumsum(stream(self.name, seed, "arrival").exponential(1.0, jobs))
        kept = self.keep_cycle and jobs > 1
        if load is not None and kept:
            wanted = total_work(self, procs, runtime) / (machine_procs * load)
            points = points * stretch_to(lambda factor: float(np.ptp(self._arrivals(points[[0, -1]] * factor))), wanted)
        return ModelJobs(self._arrivals(points), runtime, procs, has_load=kept)

    def _arrivals(self, points: Array) -> Array:
        """Return the times, s from midnight, by which these numbers of jobs are expected to have arrived (inverse cumulative rate)."""
        per_day = DAY / self.mean_gap
        begins, ends = self.day_begins, self.day_begins + DAY // 2
        day, night = self.day_share * per_day / (DAY / 2), (1 - self.day_share) * per_day / (DAY / 2)
        if ends <= DAY:
            rates, times = [night, day, night], [0, begins, ends, DAY]
        else:
            rates, times = [day, night, day], [0, ends - DAY, begins, DAY]
        expected = np.concatenate([[0.0], np.cumsum(np.diff(times) * rates)])
        days, rest = np.divmod(points, expected[-1])
        return days * DAY + np.interp(rest, expected, times)


def speedup(procs: Array, parallelism: Array, sigma: Array) -> Array:
    """Return the speedup of a job on `procs` processors; float64.

    `procs`: at least 1. `parallelism`: the job's average parallelism, at least 1. `sigma`: the variance of the parallelism, at least 0;
    profiles up to 1 have low variance, others high variance.

    Source: downey97; not checked against the paper.

    >>> speedup(np.array([1, 8, 15, 99]), np.array(8.0), np.array(1.0)).round(3).tolist()
    [1.0, 5.565, 8.0, 8.0]
    """
    n, a, s = (np.asarray(v, np.float64) for v in (procs, parallelism, sigma))
    few = a * n / (a + s * (n - 1) / 2)
    more = a * n / (s * (a - 0.5) + n * (1 - np.minimum(s, 1) / 2))
    low = np.where(n <= a, few, np.where(n <= 2 * a - 1, more, a))
    high = np.where(n <= a + a * s - s, n * a * (s + 1) / (s * (n + a - 1) + a), a)
    return np.where(s <= 1, low, high)


def chosen_size(rule: SizeRule, parallelism: Array, sigma: Array) -> Array:
    """Return the number of processors of each job by a rule of `Downey97`; int64, at least 1.

    >>> chosen_size("half-efficiency-knee", np.array([4.0, 4.0]), np.array([0.5, 2.0])).tolist()
    [8, 7]
    """
    if isinstance(rule, int):
        return np.full(len(parallelism), rule)
    if rule == "average-parallelism":
        return np.maximum(np.floor(parallelism + 0.5), 1).astype(np.int64)
    # While the speedup grows with sigma >= 1, the efficiency is 1/2 at A + A / sigma + 1; once it has reached A, at 2 A.
    growing = parallelism + parallelism / np.maximum(sigma, 1) + 1
    grows_until = parallelism + parallelism * sigma - sigma
    knee = np.where((sigma >= 1) & (growing <= grows_until), growing, 2 * parallelism)
    return np.floor(knee + 1e-9).astype(np.int64)


def _log_uniform(low: float, high: float, count: int, random: np.random.Generator) -> Array:
    return np.exp(random.uniform(math.log(low), math.log(high), count))
