"""Simulations of one workload by the thousand, with many estimates, seeds and policies; only their averages are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.engine.interface.choice import check_features
from walltime.errors import PolicyError
from walltime.estimates import EstimateModel, effective
from walltime.machine import Machine
from walltime.metrics.summary import averages
from walltime.policy import Dialect, Easy, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.tables import Table, number as in_short
from walltime.wording import seed_fault, shown
from walltime.workload import Array, Workload, check_workload

if TYPE_CHECKING:
    import polars as pl


_EASY = Easy()
SHOWN = 20
"""Number of cases in a notebook's table."""
_PREDICTIONS = tuple(field.name for field in fields(metrics.PredictionSummary) if field.name != "jobs")
_Found = tuple[metrics.Summary, metrics.DynamicsSummary | None, metrics.PredictionSummary | None]


@dataclass(frozen=True, eq=False)
class Case:
    """A simulation of a batch: its policy, estimates and predictions.

    * `estimates`: one of three. A model draws them with `seed`. An array has the scheduler's estimates (int64 s, one entry per job), and
      jobs keep the users' kill limits. None keeps the workload's own.
    * `policy`, `prediction`, `seed`: as in `simulate`
    """

    policy: Policy = _EASY
    estimates: EstimateModel | Array | None = None
    seed: int = 0
    prediction: Prediction | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            policy: Policy | Scheduler | str = _EASY,
            estimates: EstimateModel | Array | None = None,
            seed: int = 0,
            prediction: Prediction | Predictor | str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        scheduler = Scheduler.of(self.policy, self.prediction)
        object.__setattr__(self, "policy", scheduler.policy)
        object.__setattr__(self, "prediction", scheduler.prediction)

    @property
    def label(self) -> str:
        """Return the specification of the whole scheduler."""
        return Scheduler(self.policy, self.prediction).label

    def run(self, workload: Workload, check: Callable[[int], None] | None = None, **rules: Any) -> Schedule:
        """Simulate the workload and return its schedule; `rules`: additional arguments of `simulate`."""
        model = self.estimates
        if isinstance(model, np.ndarray):
            workload = workload.with_planned(model)
        elif model is not None:
            workload = workload.with_estimates(model, self.seed)
        return simulate(workload, self.policy, prediction=self.prediction, progress=check, seed=self.seed, **rules)


@dataclass(frozen=True, eq=False)
class Batch:
    """The results of a batch, with one entry per case, in the order of the cases.

    * `summaries`: averages over the jobs; `dynamics`: averages of the effects of backfilling, if requested
    * `predictions`: quality of the predictions, None for a case without a predictor
    """

    cases: Sequence[Case]
    summaries: Sequence[metrics.Summary]
    dynamics: Sequence[metrics.DynamicsSummary] | None
    predictions: Sequence[metrics.PredictionSummary | None] = ()

    def _repr_html_(self) -> str:
        """Return a table for notebooks: the usual measures of the first cases."""
        names = [one for one, average in averages().items() if average.several]
        rows = [
            [case.label, str(case.seed), *(in_short(getattr(summary, name)) for name in names)]
            for case, summary in zip(self.cases[:SHOWN], self.summaries[:SHOWN], strict=True)
        ]
        title = f"{len(self.cases):,} cases" + (f", the first {SHOWN}" if len(self.cases) > SHOWN else "")
        return Table(["policy", "seed", *(name.replace("_", " ") for name in names)], rows, title)._repr_html_()

    def values(self, name: str) -> Array:
        """Return a field of the summaries, dynamics, or predictions: float64, one entry per case, nan where a case lacks it.

        Raises PolicyError, listing the fields, for an unknown one.
        """
        if name in _PREDICTIONS:
            return np.array([getattr(record, name) if record is not None else np.nan for record in self.predictions], np.float64)
        if any(field.name == name for field in fields(metrics.DynamicsSummary)):
            if self.dynamics is None:
                raise PolicyError(f"{name} was not recorded; simulate with dynamics=True", "no_dynamics")
            return metrics.field_values(self.dynamics, name, metrics.DynamicsSummary)
        return metrics.field_values(self.summaries, name, metrics.Summary)

    def table(self) -> pl.DataFrame:
        """Return a polars table with one row per case: policy, estimates, seed, then summary, dynamics, and predictions."""
        import polars as pl

        rows = []
        for number, case in enumerate(self.cases):
            estimates = "own" if case.estimates is None else "array" if isinstance(case.estimates, np.ndarray) else repr(case.estimates)
            row = {"policy": case.label, "estimates": estimates, "seed": case.seed, **self.summaries[number].as_dict()}
            row |= self.dynamics[number].as_dict() if self.dynamics is not None else {}
            if any(case.prediction is not None for case in self.cases):
                record = self.predictions[number]
                row |= dict.fromkeys(_PREDICTIONS) if record is None else {name: record.as_dict()[name] for name in _PREDICTIONS}
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)


def simulate_many(
    workload: Workload,
    cases: Sequence[Case],
    *,
    trim: str = "none",
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    overrun: str = "kill",
    dynamics: bool = False,
    machine: Machine | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Batch:
    """Simulate the workload once for each case, on all cores, and keep only the averages.

    The results are as from `simulate`, for any number of `workers` (threads; default: one per core). `trim`: as in `Schedule.summary`;
    `coincident, dialect, overrun, dynamics, machine`: as in `simulate`. `progress` is called with the number of finished cases.

    Raises PolicyError for an unknown policy or option, WorkloadError for an invalid workload or if no job is left to measure.

    >>> from walltime import Conservative, Workload

    >>> from walltime.estimates import FModel
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> batch = simulate_many(jobs, [Case(estimates=FModel(4), seed=seed) for seed in range(3)] + [Case(Conservative())])
    >>> batch.values("mean_wait").tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    check_workload(workload)
    if isinstance(cases, Case) or not isinstance(cases, Iterable):
        raise PolicyError(f"cases must be a sequence of walltime.simulation.Case, not {shown(cases)}; give [case] for one", "wrong_type")
    cases = list(cases)
    for case in cases:
        if not isinstance(case, Case):
            raise PolicyError(f"a case must be a Case, such as walltime.simulation.Case(walltime.Easy()), not {shown(case)}", "wrong_type")
        if dynamics:
            check_features(case.policy, "number", ["effects"])
        if fault := seed_fault(case.seed):
            raise PolicyError(fault, "number_out_of_range")
        if isinstance(case.estimates, np.ndarray) and (case.estimates.dtype != np.int64 or case.estimates.shape != (len(workload),)):
            raise PolicyError(f"estimates given as an array must be int64 with one entry per job ({len(workload)})", "wrong_length")
    rules = Dialect.of(dialect, coincident)
    metrics.check_trim(trim)
    effective(workload.runtime, workload.requested, workload.planned, overrun)
    options: dict[str, Any] = {"dialect": rules, "overrun": overrun, "machine": machine, "dynamics": dynamics}

    def run(number: int, check: Callable[[int], None]) -> _Found:
        schedule = cases[number].run(workload, check, **options)
        effects = schedule.dynamics_summary(trim) if dynamics else None
        return schedule.summary(trim), effects, None if schedule.predictions is None else schedule.prediction_summary(trim)

    results = in_threads(run, len(cases), workers, progress)
    records = [record for _, record, _ in results if record is not None] if dynamics else None
    return Batch(cases, [summary for summary, _, _ in results], records, [predictions for _, _, predictions in results])
