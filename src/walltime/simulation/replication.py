"""Replications of a simulation, each with its own seed: means and spread of the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine
from walltime.metrics.summary import averages
from walltime.policy import Dialect, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.tables import Facts, number
from walltime.wording import seed_fault, shown
from walltime.workload import Array, Workload


@dataclass(frozen=True)
class Replications:
    """The results of replications, with one summary per seed, in the order of the seeds."""

    scheduler: Scheduler
    seeds: Sequence[int]
    summaries: Sequence[metrics.Summary]
    kept: Sequence[Any] = ()
    """results of the function `keep`, one per seed"""

    @property
    def policy(self) -> Policy:
        """Return the scheduler's policy."""
        return self.scheduler.policy

    def values(self, name: str) -> Array:
        """Return a field of the summaries, float64, one value per seed; raises PolicyError for an unknown field."""
        return metrics.field_values(self.summaries, name, metrics.Summary)

    def band(self, name: str) -> metrics.Interval:
        """Return the mean, and the range in which one more run would lie; the field `what` states the probability of this range."""
        return metrics.range_of_runs(self.values(name))

    def interval(self, name: str, confidence: float = 0.90) -> metrics.Interval:
        """Return the mean with its confidence interval (Student's t)."""
        return metrics.mean_interval(self.values(name), confidence)

    def spread(self, name: str) -> float:
        """Return the standard deviation divided by the mean."""
        return metrics.relative_spread(self.values(name))

    def difference(self, name: str, baseline: Replications, confidence: float = 0.90) -> metrics.Interval:
        """Return the mean paired difference from other replications with the same seeds, with its confidence interval."""
        if tuple(self.seeds) != tuple(baseline.seeds):
            raise PolicyError(
                "a paired comparison needs replications with the same seeds; replicate again with equal seeds", "different_seeds"
            )
        return metrics.paired_difference(self.values(name), baseline.values(name), confidence)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the mean of each usual measure, and the half-width of its 90 % confidence interval."""
        rows = []
        for name in (one for one, average in averages().items() if average.several):
            found = self.interval(name) if len(self.seeds) > 1 else None
            text = number(float(self.values(name)[0])) if found is None else f"{number(found.mean)} ± {number(found.high - found.mean)}"
            rows.append((name.replace("_", " "), text))
        return Facts(f"{self.scheduler.label}, {len(self.seeds)} seeds", rows)._repr_html_()


def replicate(
    workload_of: Callable[[int], Workload],
    policy: Policy | Scheduler | str,
    seeds: Sequence[int],
    *,
    prediction: Prediction | Predictor | str | None = None,
    trim: str = "none",
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    overrun: str = "kill",
    machine: Machine | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    keep: Callable[[Schedule], Any] | None = None,
) -> Replications:
    """Simulate `workload_of(seed)` under the policy for every seed, on all cores, and keep the summaries.

    `policy, prediction, machine`: as in `simulate`. `workload_of` shakes a log, draws its estimates, or generates a workload; it must
    depend only on the seed, so that the results do not depend on the number of `workers` (threads; default: one per core). `seeds`: whole
    numbers, such as `range(5)`; the same seeds for all schedulers allow paired differences. `progress` is called with the number of
    finished replications. `keep`: a function of a schedule; its results are the attribute `kept`, in the order of the seeds.

    Raises PolicyError for invalid seeds, WorkloadError if `workload_of` is not a function or does not return a workload, and
    the errors of `simulate`.

    >>> from walltime import Easy, Workload
    >>> from walltime.workload.scaling import shake
    >>> jobs = Workload.from_arrays(submit=[100, 101, 102], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> results = replicate(lambda seed: shake(jobs, 5, seed), Easy(), seeds=range(3))
    >>> len(results.values("mean_wait"))
    3
    """
    maker: object = workload_of
    if not callable(maker):
        example = "lambda seed: walltime.workloads.shake(jobs, 30, seed)"
        raise WorkloadError(f"workload_of must be a function of the seed, such as {example}, not {shown(maker)}", "wrong_type")
    seeds = _check_seeds(seeds)
    scheduler = Scheduler.of(policy, prediction)

    def run(number: int, check: Callable[[int], None]) -> tuple[metrics.Summary, Any]:
        workload = workload_of(seeds[number])
        rules: dict[str, Any] = {"coincident": coincident, "dialect": dialect, "overrun": overrun, "machine": machine}
        schedule = simulate(workload, scheduler, progress=check, seed=seeds[number], **rules)
        return schedule.summary(trim), None if keep is None else keep(schedule)

    pairs = in_threads(run, len(seeds), workers, progress)
    return Replications(scheduler, seeds, [summary for summary, _ in pairs], [] if keep is None else [kept for _, kept in pairs])


def _check_seeds(seeds: object) -> list[int]:
    """Return the seeds as a list; raises PolicyError if there are none or one is invalid."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        example = f"range({seeds})" if isinstance(seeds, int) else "range(5)"
        raise PolicyError(f"seeds must be a sequence of whole numbers, such as {example}, not {shown(seeds)}", "wrong_type")
    listed = list(seeds)
    if not listed:
        raise PolicyError("replications need at least one seed, as in range(5)", "number_out_of_range")
    for fault in filter(None, map(seed_fault, listed)):
        raise PolicyError(fault, "wrong_type")
    if twice := [seed for seed, count in Counter(listed).items() if count > 1]:
        raise PolicyError(f"the seed {twice[0]} is given twice, but replications must differ; give each seed once", "equal_seeds")
    return listed
