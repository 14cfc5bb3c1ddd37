"""The modal model of user estimates: most jobs use one of twenty round values, especially the largest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import modes as m
from walltime.estimates.base import EstimateModel
from walltime.workload import Array, Workload
from walltime.workload.draws import uniforms

STREAM_RANKS, STREAM_TAIL, STREAM_ASSIGN = 3, 4, 5
FEWEST_JOBS = 200
"""With fewer jobs, the model would have fewer than its 20 popular values."""


@dataclass(frozen=True)
class Tsafrir05(EstimateModel):
    """Estimates drawn for all jobs together: a few round values, assigned so that each is at least its job's runtime.

    Unlike in other models, the estimates depend on the whole set of jobs, so removing a job may change other estimates.
    They depend only on this set and the seed; ties are broken by job id, so the order of the jobs does not matter.

    Source: tsafrir05 (JSSPP 2005) and its authors' program m_tsafrir05; recommended in tsafrir06, section VII.

    >>> jobs = Workload.from_arrays(submit=range(300), runtime=[k * k // 20 for k in range(300)], procs=[1] * 300, machine_procs=4)
    >>> estimates = Tsafrir05(emax=36_000, share=25).draw(jobs, seed=1)
    >>> bool((estimates >= jobs.runtime).all()), int((estimates == 36_000).sum())
    (True, 75)
    """

    emax: Annotated[int | None, Field(least=m.HOUR)] = None
    """the largest estimate, s, at least one hour, by default the site's limit inferred from the log (`largest_estimate`); longer jobs
    are killed there, because the model sets the kill limit"""
    share: Annotated[float | None, Field(above=0, below=100)] = None
    """percentage of the jobs that use `emax`, exact to the job, by default the remainder of the model's curve, 21.73; a larger share means
    worse estimates"""
    bins: Annotated[
        tuple[tuple[int, int], ...], Field(least=1, label="times in s with their exact numbers of jobs, such as 3600x50/7200x20")
    ] = ()
    """additional times with their exact numbers of jobs, at most 19 without `emax`"""
    modes: Annotated[int | None, Field(least=m.HEAD)] = None
    """number of distinct estimates, by default a function of the number of jobs"""
    modes_rule: Literal["linear", "power"] = "linear"
    """default function for `modes`: linear, or a power law"""
    power_law: tuple[float, float] = (0.653566, 0.547761)
    """a, b of the power law"""
    head_curve: tuple[float, float, float] = (14.0491, -0.177531, 0.462513)
    """a, b, c: percent a exp(b x) + c for popularity ranks x from 2"""
    head_total: Annotated[float, Field(above=0, below=100)] = 89.0
    """total percentage for the first 20 ranks"""
    tail_curve: tuple[float, float] = (795.6, -2.267)
    """a, b: percent a x^b for the other ranks"""
    tail_bend: tuple[float, float] = (12.1039, -0.6026)
    """p, q: the times of the other ranks follow y = (a - 1) x / (a - x) with a = 1 + p K^q"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple((int(t), int(n)) for t, n in self.bins))
        super().__post_init__()
        if self.limit == "user":
            raise PolicyError("the modal model sets the kill limit, so limit=user is not possible; leave limit out", "conflicting_options")
        if len({t for t, _ in self.bins}) < len(self.bins):
            raise PolicyError("each bin of the modal model must be a distinct time, in s, with a number of jobs", "wrong_bins")

    @property
    def random(self) -> bool:
        """Return whether the estimates depend on the seed: always."""
        return True

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return estimates, int64 seconds; at most E_max, and at least the runtime truncated to E_max.

        Raises WorkloadError for fewer than 200 jobs, or if too many jobs are too long for the modes drawn.
        """
        jobs = len(workload)
        if jobs < FEWEST_JOBS:
            raise WorkloadError(
                f"the modal model needs at least {FEWEST_JOBS} jobs, not {jobs}; use another estimate model", "too_few_jobs"
            )
        emax = self.largest(workload)
        counts = self.histogram(jobs, emax, seed)
        ascending = np.repeat(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))
        return assign(np.minimum(workload.runtime, emax), workload.job_id, ascending[::-1], seed)

    def largest(self, workload: Workload) -> int:
        """Return E_max for these jobs, s; raises WorkloadError if it is inferred from the log and below one hour."""
        emax = self.emax if self.emax is not None else m.largest_estimate(workload.requested)
        if emax < m.HOUR:
            raise WorkloadError(
                f"the largest request, {emax} s, is under an hour; set emax=SECONDS of the modal model", "number_out_of_range"
            )
        return emax

    def histogram(self, jobs: int, emax: int, seed: int = 0) -> dict[int, int]:
        """Return the modes for a number of jobs: number of jobs by estimate in s, ascending."""
        given = self._given(jobs, emax)
        times = m.merge_times(m.head_times(emax), list(given))
        percent = {t: 100 * n / jobs for t, n in given.items()}
        sizes = m.head_sizes(len(times), share=percent.get(emax), curve=self.head_curve, total=self.head_total)
        if min(sizes) < 0:
            head = f"ranks 2 to {len(times)}"
            raise PolicyError(f"{head} exceed the head's {self.head_total:g} percent; change head_curve", "impossible_modes")
        sizes, ranks = m.merge_sizes(sizes, percent, emax, self.head_total)
        draws = np.stack(uniforms(seed, np.arange(len(times)), STREAM_RANKS), axis=1)
        order = m.popularity_ranks(draws, len(times), {times.index(t): rank for t, rank in ranks.items()})
        percents = {t: sizes[rank - 1] for t, rank in zip(times, order, strict=True)}
        modes = self.number_of_modes(jobs)
        tail = m.tail_times(modes - len(times), emax, times, m.tail_bend(modes, *self.tail_bend))
        shares = m.tail_sizes(len(tail), curve=self.tail_curve, total=100 - self.head_total)
        shuffled = np.argsort(uniforms(seed, np.arange(len(tail)), STREAM_TAIL)[0], kind="stable")
        percents |= {t: shares[k] for t, k in zip(tail, shuffled.tolist(), strict=True)}
        return {t: n for t, n in m.jobs_per_mode(percents, jobs, given).items() if n}

    def number_of_modes(self, jobs: int) -> int:
        """Return K, the number of distinct estimates for a number of jobs."""
        if self.modes is not None:
            return self.modes
        a, b = self.power_law
        return m.number_of_modes(jobs) if self.modes_rule == "linear" else math.floor(a * float(jobs) ** b + 0.5)

    def _given(self, jobs: int, emax: int) -> Mapping[int, int]:
        """Return the user-supplied bins, including the bin of E_max: jobs by time."""
        given = dict(self.bins)
        if self.share is not None:
            if emax in given:
                raise PolicyError(
                    f"both the share and a bin set the number of jobs that estimate {emax} s; use one of them", "conflicting_options"
                )
            given[emax] = max(1, int(self.share * jobs / 100 + 0.5))
        if max(given, default=0) > emax:
            raise PolicyError(
                f"a bin's time of {max(given)} s exceeds the largest estimate, {emax} s; correct one of them", "number_out_of_range"
            )
        if len(given.keys() - {emax}) >= m.HEAD:
            raise PolicyError(f"at most {m.HEAD - 1} bins are allowed besides the largest estimate's, not {len(given)}", "too_many_bins")
        if sum(given.values()) > jobs:
            raise WorkloadError(
                f"the bins have {sum(given.values()):,} jobs, more than the {jobs:,} of the workload; reduce them", "too_many_jobs"
            )
        return given


def assign(runtime: Array, job_id: Array, estimates: Array, seed: int = 0) -> Array:
    """Assign estimates to jobs at random, each at least the job's runtime; int64 s, shape (jobs,), in the order of the jobs.

    The longest job draws first, from all estimates not below its runtime, then the next longest; jobs of the same length in
    order of their ids. `runtime`, `job_id`: int64. `estimates`: int64 s, descending, one per job.
    Raises WorkloadError if this is impossible: some k-th longest runtime exceeds the k-th largest estimate.

    Source: m_tsafrir05.

    >>> assign(np.array([50, 10]), np.array([1, 2]), np.array([60, 20])).tolist()
    [60, 20]
    """
    order = np.lexsort((job_id, -runtime))
    longest = runtime[order]
    if (longest > estimates).any():
        first = int(np.argmax(longest > estimates))
        bound = int(estimates[first])
        raise WorkloadError(
            f"{np.count_nonzero(runtime > bound):,} jobs run longer than {bound:,} s, but only {first:,} estimates of the modal model are "
            f"longer: raise emax (now {int(estimates[0])}) or share, or use another seed",
            "too_few_estimates",
        )
    below = len(estimates) - np.searchsorted(estimates[::-1], longest, side="left")
    rank = np.arange(len(estimates))
    picks = rank + (uniforms(seed, job_id[order], STREAM_ASSIGN)[0] * (below - rank)).astype(np.int64)
    left = estimates.tolist()
    for j, k in enumerate(picks.tolist()):
        left[j], left[k] = left[k], left[j]
    dealt = np.empty(len(estimates), np.int64)
    dealt[order] = left
    return dealt
