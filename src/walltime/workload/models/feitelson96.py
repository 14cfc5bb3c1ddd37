"""The workload model of Feitelson, with repeated jobs, and its variants Fs, Fl and Fsl with the distributions of a log."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from walltime.declared import Field
from walltime.errors import WorkloadError
from walltime.workload.columns import MISSING
from walltime.workload.models.model import ModelJobs, WorkloadModel, stream, values_of
from walltime.workload.workload import MAX_TIME, Workload

Array = np.ndarray

CLASS_ENDS = (1, 4, 8, 16, 32, 64)
"""The largest sizes of the classes 1, 2-4, 5-8, 9-16, 17-32 and 33-64; larger sizes are in the last class."""
CLASSES = len(CLASS_ENDS) + 1
QUANTILE_STEPS = 96


def size_class(procs: Array) -> Array:
    """Return the class, 0 to 6, of each size."""
    return np.searchsorted(CLASS_ENDS, procs, side="left")


@dataclass(frozen=True)
class Marginals:
    """Distributions of sizes and runtimes in a log.

    `sizes`: pairs of a size and its number of jobs. `runtimes`: a row for all jobs and one for each class of sizes; each holds
    quantiles in s, at equal steps of probability. `source`: the log.

    >>> CTC_SP2.quantile(np.array([0.0, 1.0]), 0).round(6).tolist()
    [1.0, 64800.0]
    """

    sizes: tuple[tuple[int, int], ...] = field(repr=False)
    runtimes: tuple[tuple[int, ...], ...] = field(repr=False)
    source: str

    @classmethod
    def fit(cls, workload: Workload, steps: int = QUANTILE_STEPS) -> Marginals:
        """Return the distributions of a log; classes without jobs get the runtimes of all jobs. Raises WorkloadError for an empty log."""
        if not len(workload):
            raise WorkloadError(f"{workload.origin.name} has no jobs from which to fit sizes and runtimes; use another log")
        sizes, counts = np.unique(workload.procs, return_counts=True)
        classes = size_class(workload.procs)
        groups = [workload.runtime, *(workload.runtime[classes == k] for k in range(CLASSES))]
        levels = np.linspace(0, 1, steps + 1)
        rows = [np.quantile(group if len(group) else workload.runtime, levels, method="inverted_cdf") for group in groups]
        runtimes = tuple(tuple(row.astype(np.int64).tolist()) for row in rows)
        return cls(tuple(zip(sizes.tolist(), counts.tolist(), strict=True)), runtimes, f"fitted from {workload.origin.name}")

    def fitting(self, machine_procs: int) -> tuple[Array, Array]:
        """Return the sizes that fit on a machine, and their frequencies; raises WorkloadError if there are none."""
        sizes, counts = np.array(self.sizes, np.int64).T
        fits = sizes <= machine_procs
        if not fits.any():
            raise WorkloadError(
                f"the smallest job of {self.source} has {sizes[0]} processors, but the machine has {machine_procs}; set more (procs=N)",
                "no_job_fits",
            )
        return sizes[fits], counts[fits]

    def quantile(self, probability: Array, row: int) -> Array:
        """Return the runtimes, float64 s, at these probabilities; row 0 is for all jobs, row 1 + k for class k.

        Between two quantiles, the logarithm of (runtime + 1 s) is interpolated linearly.
        """
        known = np.log1p(np.array(self.runtimes[row], np.float64))
        return np.expm1(np.interp(probability, np.linspace(0, 1, len(known)), known))


_FITTED = values_of("ctc_sp2")
CTC_SP2 = Marginals(
    tuple(map(tuple, _FITTED["sizes"])), tuple(map(tuple, _FITTED["quantiles"])), "fitted from CTC-SP2-1996-3.1-cln.recon, all jobs"
)
"""The distributions of the CTC SP2; `ctc_sp2.toml` describes the log."""


CLOSE = 1e-3
"""Relative accuracy with which the choice of the first jobs reaches the load; scaling their times does the rest."""
MOST_STEPS = 200

TWO_STAGES = ((900.0, 0.95, 0.75), (6300.0, 0.05, 0.25))
"""Means with the ratio 1:7; the short one has the probability 0.95 - 0.20 n/N. Unverified; the mean itself is our choice."""
THREE_STAGES = ((300.0, 0.70, 0.50), (2100.0, 0.25, 0.35), (14_700.0, 0.05, 0.15))
"""Three stages, for the revision of 1997. Unverified; all numbers are our choice."""


@dataclass(frozen=True)
class Feitelson96(WorkloadModel):
    """Jobs that run several times, each run submitted when the previous one has ended; first runs arrive at random.

    The structure of the model is confirmed, but not its default constants (*feitelson96-like*).

    The order of the sizes is confirmed; the paper's emphasis was "hand-tailored", so ours is a choice. Runtimes are hyper-exponential,
    rounded, at least 1 s: `stages` holds, for each stage, its mean in s and its probability for n = 0 and for n = N processors of the
    machine; in between, probabilities are interpolated linearly. See `TWO_STAGES` and `THREE_STAGES` (unverified). A job runs up to
    `max_runs` times (unverified), and up to half the requested number of jobs; all runs have the same size. First runs are a Poisson
    process; its mean, for a load of about 0.7 on 128 processors, and the think time are our choice.

    The columns `preceding_job` (job id of the previous run, -1 for a first run) and `think_time` (s; -1 for a first run) hold
    the dependencies; `executable` numbers the repeated jobs. `submit` of a repetition is its time if no run ever
    waits: submission of the previous run + its runtime + think time. A load is reached by scaling only the times between first
    runs (as in mualem01, section 3.1), so this stays exact.

    Source: feitelson96 (Feitelson, JSSPP 1996, LNCS 1162).

    >>> jobs = Feitelson96().generate(jobs=1000, machine_procs=128, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3), bool((jobs.columns["preceding_job"] < jobs.job_id).all())
    (1000, 0.7, True)
    """

    order: Annotated[float, Field(least=0)] = 1.5
    """exponent of the sizes: a size of n processors has a probability proportional to 1 / n**order"""
    power_emphasis: Annotated[float, Field(above=0)] = 3.0
    """factor of the probability of powers of two"""
    small_sizes: Annotated[int, Field(least=0)] = 9
    """largest size with a higher probability"""
    small_emphasis: Annotated[float, Field(above=0)] = 1.5
    """factor of the probability of these small sizes"""
    stages: Annotated[tuple[tuple[float, float, float], ...], Field(inside=True)] = TWO_STAGES
    runs_order: Annotated[float, Field(least=0)] = 2.5
    """exponent of the runs: k runs of a job have a probability proportional to 1 / k**runs_order"""
    max_runs: Annotated[int, Field(least=1)] = 1000
    """largest number of runs of a job"""
    same_runtime: bool = True
    """whether all runs of a job have the same runtime"""
    mean_gap: Annotated[float, Field(above=0)] = 120.0
    """mean time between first runs, s"""
    think_time: Annotated[int, Field(least=0)] = 0
    """time from the end of a run to the submission of the next, s"""

    def __post_init__(self) -> None:
        super().__post_init__()
        means, small, large = np.array(self.stages, np.float64).reshape(-1, 3).T
        if not len(means) or (means <= 0).any() or (small < 0).any() or (large < 0).any() or not np.isfinite(means).all():
            raise WorkloadError(
                f"the stages of {self.name} must have means over 0 and probabilities, not {self.stages}", "wrong_probabilities"
            )
        if abs(small.sum() - 1) > 1e-9 or abs(large.sum() - 1) > 1e-9:
            raise WorkloadError(
                f"the probabilities of the stages of {self.name} must add up to 1, not {small.sum():g} and {large.sum():g}",
                "wrong_probabilities",
            )

    def size_weights(self, machine_procs: int) -> tuple[Array, Array]:
        """Return the sizes (int64) and their probabilities (float64)."""
        sizes = np.arange(1, machine_procs + 1)
        weights = sizes.astype(np.float64) ** -self.order
        weights[(sizes & (sizes - 1)) == 0] *= self.power_emphasis
        weights[: self.small_sizes] *= self.small_emphasis
        return sizes, weights / weights.sum()

    def stage_weights(self, share: Array) -> Array:
        """Return the probability of each stage for jobs of this share of the machine; float64, shape (jobs, stages)."""
        small, large = np.array([stage[1] for stage in self.stages]), np.array([stage[2] for stage in self.stages])
        return small + np.asarray(share)[..., None] * (large - small)

    def runtime_cdf(self, seconds: Array, share: float) -> Array:
        """Return the probability of runtimes up to these s, before rounding; `share`: the job's share of the machine, perhaps a mean."""
        means = np.array([stage[0] for stage in self.stages])
        return -np.expm1(-np.asarray(seconds, np.float64)[..., None] / means) @ self.stage_weights(np.asarray(share))

    def run_weights(self) -> Array:
        """Return the probabilities of 1, 2, ... runs, float64."""
        weights = np.arange(1, self.max_runs + 1, dtype=np.float64) ** -self.runs_order
        return weights / weights.sum()

    def _draw(self, jobs: int, machine_procs: int, load: float | None, seed: int) -> ModelJobs:
        runs = 1 + _pick(self.run_weights(), stream(self.name, seed, "runs").random(jobs))
        runs = np.minimum(runs, max(jobs // 2, 1))  # so that there are always several jobs whose times can be stretched
        sizes, weights = self.size_weights(machine_procs)
        size = sizes[_pick(weights, stream(self.name, seed, "size").random(jobs))]
        program = np.repeat(np.arange(jobs), runs)
        first = np.concatenate([[0], np.cumsum(runs)[:-1]])
        random = stream(self.name, seed, "runtime")
        drawn = self._runtimes(size if self.same_runtime else size[program], machine_procs, random)
        runtime = np.maximum(np.floor(drawn + 0.5), 1).astype(np.int64)
        runtime = runtime[program] if self.same_runtime else runtime
        later = np.concatenate([[0], np.cumsum(runtime + self.think_time)[:-1]])
        chains = _Chains(
            arrival=np.cumsum(stream(self.name, seed, "arrival").exponential(self.mean_gap, jobs)),
            program=program,
            offset=later - later[first][program],
            work=size[program].astype(np.float64) * runtime,
        )
        stretch, chosen = (
            (1.0, chains.earliest(1.0, jobs)) if load is None or jobs == 1 else self._stretch(chains, jobs, machine_procs * load)
        )
        submit = chains.submits(stretch)[chosen]
        order = np.argsort(submit, kind="stable")
        chosen, submit = chosen[order], submit[order]
        ids = np.full(len(program), MISSING)
        ids[chosen] = np.arange(1, jobs + 1)
        repeats = chosen > first[program[chosen]]
        columns = {
            "executable": np.unique(program[chosen], return_inverse=True)[1] + 1,
            "preceding_job": np.where(repeats, ids[chosen - 1], MISSING),
            "think_time": np.where(repeats, self.think_time, MISSING),
        }
        return ModelJobs(submit, runtime[chosen], size[program[chosen]], columns, has_load=True)

    def _runtimes(self, procs: Array, machine_procs: int, random: np.random.Generator) -> Array:
        """Return the runtimes of jobs of these sizes before rounding, float64 s."""
        up_to = np.cumsum(self.stage_weights(procs / machine_procs), axis=1)
        stage = (random.random(len(procs))[:, None] >= up_to[:, :-1]).sum(axis=1)
        return random.exponential(np.array([s[0] for s in self.stages])[stage])

    def _stretch(self, chains: _Chains, jobs: int, capacity: float) -> tuple[float, Array]:
        """Return the factor for the times between first runs, and the jobs that then come first.

        `capacity`: processors that the jobs must keep busy on average. The first jobs depend on the factor, so the load jumps at some
        factors: a search finds a factor with the load or slightly more, and a small additional stretch of the same jobs does the rest.
        """
        low, high, stretch, chosen = 0.0, math.inf, 1.0, chains.earliest(1.0, jobs)
        best = (stretch, chosen)
        for _ in range(MOST_STEPS):
            ratio = chains.power(stretch, chosen) / capacity
            if ratio >= 1:
                low, best = stretch, (stretch, chosen)
            else:
                high = stretch
            if 1 <= ratio < 1 + CLOSE or high - low <= 1e-12 * min(high, 1e300):
                break
            guess = stretch * ratio * (1 - CLOSE / 3) if math.isfinite(ratio) else 0.0
            if not low < guess < high:
                guess = math.sqrt(low * high) if low > 0 and math.isfinite(high) else (low * 2 if high == math.inf else high / 2)
            stretch = guess
            if not stretch < 1e15:
                raise WorkloadError(f"the jobs of {self.name} would arrive over too long a time; use a higher load", "arrivals_too_long")
            chosen = chains.earliest(stretch, jobs)
        return chains.fine(*best, capacity), best[1]


@dataclass
class _Chains:
    """All runs of all jobs, job by job: the job (`program`), the time after its first run (`offset`, s), and the work of each run.

    `arrival`: times of the first runs, s.
    """

    arrival: Array
    program: Array
    offset: Array
    work: Array

    def submits(self, stretch: float) -> Array:
        first = np.floor(self.arrival * stretch)
        if not first[-1] < MAX_TIME:
            raise WorkloadError(f"first runs would arrive over {first[-1]:.3g} s, more than a workload can represent; use a higher load")
        return first.astype(np.int64)[self.program] + self.offset

    def earliest(self, stretch: float, count: int) -> Array:
        """Return the indices of the first `count` submissions, ascending; of simultaneous ones, the lower index comes first."""
        submit = self.submits(stretch)
        last = np.partition(submit, count - 1)[count - 1]
        before = submit < last
        tied = np.flatnonzero(submit == last)[: count - int(before.sum())]
        before[tied] = True
        return np.flatnonzero(before)

    def power(self, stretch: float, chosen: Array) -> float:
        """Return the processors that these runs would keep busy between the first and the last submission."""
        submit = self.submits(stretch)[chosen]
        span = int(submit.max() - submit.min())
        return float(self.work[chosen].sum()) / span if span else math.inf

    def fine(self, stretch: float, chosen: Array, capacity: float) -> float:
        """Return a larger factor at which these runs keep `capacity` processors busy."""
        low, high = stretch, stretch * 2
        while self.power(high, chosen) > capacity and high < stretch * 1e6:
            low, high = high, high * 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.power(middle, chosen) > capacity else (low, middle)
            if high - low <= 1e-9 * high:
                break
        return high


def _pick(weights: Array, draws: Array) -> Array:
    """Return indices with these probabilities, from uniform draws in [0, 1)."""
    return np.minimum(np.searchsorted(np.cumsum(weights), draws, side="right"), len(weights) - 1)


@dataclass(frozen=True)
class FeitelsonVariant(Feitelson96):
    """Feitelson'96 with the sizes (`variant` s), the runtimes (l) or both (sl) of a log; our construction.

    mualem01 describes the aims of its variants, but not their construction: Fs emphasises small jobs, Fl long ones, and Fsl mimics the
    runtimes of the CTC SP2 for each size. Our interpretation: Fs draws sizes from the log. Fl maps each runtime of the model to the runtime
    of the log at the same quantile, so that the overall distribution agrees with the log, and larger jobs still run longer. Fsl does both,
    with the mapping within each class of sizes: 1, 2-4, 5-8, 9-16, 17-32, 33-64, more.

    `marginals`: the log's sizes and runtimes; the defaults were fitted from the CTC SP2. Jobs of the log that are wider than
    the machine are not submitted. Repetitions, arrivals and load are as in `Feitelson96`.

    Source: mualem01, section 3.3.

    >>> jobs = FeitelsonVariant(variant="sl").generate(jobs=1000, machine_procs=512, load=0.7, seed=1)
    >>> len(jobs), round(jobs.offered_load, 3)
    (1000, 0.7)
    """

    variant: Literal["s", "l", "sl"] = "sl"
    marginals: Annotated[Marginals, Field(inside=True)] = CTC_SP2

    @property
    def name(self) -> str:
        """Return the model's name on the command line."""
        return f"feitelson96-f{self.variant}"

    def size_weights(self, machine_procs: int) -> tuple[Array, Array]:
        """Return the sizes (int64) and their probabilities (float64)."""
        if "s" not in self.variant:
            return super().size_weights(machine_procs)
        sizes, counts = self.marginals.fitting(machine_procs)
        return sizes, counts / counts.sum()

    def _runtimes(self, procs: Array, machine_procs: int, random: np.random.Generator) -> Array:
        runtime = super()._runtimes(procs, machine_procs, random)
        if "l" not in self.variant:
            return runtime
        sizes, weights = self.size_weights(machine_procs)
        if self.variant == "l":
            return self.marginals.quantile(self.runtime_cdf(runtime, float(sizes @ weights) / machine_procs), 0)
        mine, theirs = size_class(procs), size_class(sizes)
        for k in range(CLASSES):
            here, inside = mine == k, theirs == k
            if here.any():
                share = float(sizes[inside] @ weights[inside]) / float(weights[inside].sum()) / machine_procs
                runtime[here] = self.marginals.quantile(self.runtime_cdf(runtime[here], share), k + 1)
        return runtime
