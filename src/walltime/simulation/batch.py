"""Thousands of simulations of one workload, with many estimates, seeds and policies; only averages are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.engine.interface.choice import check_features, choose
from walltime.engine.problem import PredictionSource, Problem
from walltime.errors import PolicyError
from walltime.estimates import EstimateModel, FModel, effective
from walltime.estimates.fmodel import STREAM_F
from walltime.machine import Machine
from walltime.policy import Calendar, Dialect, Easy, Kind, LogView, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import number_problem, simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.wording import seed_fault, shown
from walltime.workload import Workload, check_workload
from walltime.workload.workload import MAX_TIME

if TYPE_CHECKING:
    import polars as pl

    from walltime.engine.interface.number import NumberEngine

Array = np.ndarray
_EASY = Easy()
_PREDICTIONS = tuple(field.name for field in fields(metrics.PredictionSummary) if field.name != "jobs")
_Found = tuple[metrics.Summary, metrics.DynamicsSummary | None, metrics.PredictionSummary | None]


@dataclass(frozen=True, eq=False)
class Case:
    """One simulation of a batch.

    `estimates`: a model, drawn with `seed`; or the scheduler's estimates (int64 s, one entry per job), with the
    users' kill limits; or None for the workload's own. `policy, prediction`: as in `simulate`.
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
        """The specification of the whole scheduler."""
        return Scheduler(self.policy, self.prediction).label


@dataclass(frozen=True, eq=False)
class Batch:
    """One summary for each case, in the order of the cases; also `dynamics`, if requested.

    `predictions`: quality of the predictions, None for a case without a predictor.
    """

    cases: Sequence[Case]
    summaries: Sequence[metrics.Summary]
    dynamics: Sequence[metrics.DynamicsSummary] | None
    predictions: Sequence[metrics.PredictionSummary | None] = ()

    def values(self, name: str) -> Array:
        """Return this field of the summaries, dynamics, or predictions (nan without one), float64, one per case.

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

    The results equal those of `simulate`, for any number of `workers` (threads; default: one per core). Each worker reuses the memory of
    one simulation, and the estimates of the random f-model are drawn in the kernel. `trim`: as in `Schedule.summary`;
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
            raise PolicyError(f"a case must be one such as walltime.simulation.Case(walltime.Easy()), not {shown(case)}", "wrong_type")
        if dynamics:
            check_features(case.policy, "number", ["effects"])
        if fault := seed_fault(case.seed):
            raise PolicyError(fault, "number_out_of_range")
        if isinstance(case.estimates, np.ndarray) and (case.estimates.dtype != np.int64 or case.estimates.shape != (len(workload),)):
            raise PolicyError(f"estimates given as an array must be int64 with one entry per job ({len(workload)})", "wrong_length")
    rules = Dialect.of(dialect, coincident)
    if trim not in metrics.TRIMS:
        raise PolicyError(f"unknown trim {trim!r}. Valid values: {', '.join(metrics.TRIMS)}", "unknown_trim")
    effective(workload.runtime, workload.requested, workload.believed, overrun)
    if machine is None:
        compile_for(cases, dynamics)
    in_order = sorted(range(len(cases)), key=lambda number: cases[number].label)  # neighbours share a simulation

    def make_worker() -> Callable[[int, Callable[[int], None]], _Found]:
        lane = Lane(workload, trim, rules, overrun, dynamics, machine)

        def run(place: int, check: Callable[[int], None]) -> _Found:
            summary, record = lane.run(cases[in_order[place]], check)
            return summary, record, lane.prediction_summary()

        return run

    by_number = dict(zip(in_order, in_threads(make_worker, len(cases), workers, progress), strict=True))
    results = [by_number[number] for number in range(len(cases))]
    records = [record for _, record, _ in results if record is not None] if dynamics else None
    return Batch(cases, [summary for summary, _, _ in results], records, [predictions for _, _, predictions in results])


def compile_for(cases: Sequence[Case], dynamics: bool) -> None:
    """Compile or load the parts of the engine that these cases need, so that no thread waits for them later."""
    from walltime.engine.interface.load import load
    from walltime.engine.interface.number import NumberEngine

    empty, log = np.zeros(0, np.int64), LogView({}, Calendar(0, UTC))
    for policy in {case.policy for case in cases if case.policy.passes.compiled}:
        NumberEngine(Problem(empty, empty, empty, empty, 1, policy, known=log)).compile()
    for name in ("draw", *(("dynamics",) if dynamics else ())):
        load(name)


class Lane:
    """The reusable memory of one thread's simulations, one at a time."""

    def __init__(self, workload: Workload, trim: str, dialect: Dialect, overrun: str, dynamics: bool, machine: Machine | None = None):
        from walltime.engine.interface.load import load
        from walltime.engine.interface.number import NumberEngine
        from walltime.engine.kernel.draw import RandomSource

        self.draw_f_estimates = load("draw")
        self.make_simulation, self.make_source = NumberEngine, RandomSource
        if dynamics:
            load("dynamics")
        self.workload, self.machine = workload, machine
        self.trim, self.dialect, self.overrun, self.dynamics = trim, dialect, overrun, dynamics
        self.simulation: NumberEngine | None = None
        self.plain: Schedule | None = None
        """The last case's schedule if `simulate` made it: on the reference engine, or on a machine of several pools."""
        self.scheduler: Scheduler | None = None
        self.predicted: tuple[Prediction, PredictionSource | None] | None = None
        self.drawn = np.empty(len(workload), np.int64)
        self.runtime = self.requested = self.drawn
        self.kernel_seconds = 0.0
        """This thread's processor time in compiled code so far, s: estimates and simulations."""

    def run(self, case: Case, check: Callable[[int], None]) -> tuple[metrics.Summary, metrics.DynamicsSummary | None]:
        """Simulate one case and return its averages."""
        self.plain = None
        if self.machine is not None:
            return self.run_plainly(case, check)
        scheduler = Scheduler(self.dialect.apply(case.policy), case.prediction)
        times = self.times(case)
        problem = replace(number_problem(self.workload, scheduler, self.dialect, times), logged=self.dynamics)
        if choose(problem)[0] == "reference":
            return self.run_plainly(case, check)
        if case.prediction is not None and case.estimates is None:  # independent of the case, so predictions can be reused
            if self.predicted is None or self.predicted[0] != case.prediction:
                self.predicted = case.prediction, problem.prediction
            problem = replace(problem, prediction=self.predicted[1])
        if self.simulation is None or self.scheduler != scheduler:
            self.simulation, self.scheduler = self.make_simulation(problem), scheduler
            self.simulation.compile()
        else:
            self.simulation.restart(problem)
        begin = time.thread_time()
        self.simulation.run(check)
        self.kernel_seconds += time.thread_time() - begin
        self.requested, self.runtime, _ = times
        summary = self.summary()
        if not self.dynamics:
            return summary, None
        effects = self.simulation.outcome().effects
        assert effects is not None, "the starts were recorded"
        return summary, metrics.summarize_dynamics(metrics.Dynamics(*effects), self.runtime, self.schedule()[3])

    def run_plainly(self, case: Case, check: Callable[[int], None]) -> tuple[metrics.Summary, metrics.DynamicsSummary | None]:
        """Simulate a case that needs the reference engine or another loop by `simulate`."""
        w, model = self.workload, case.estimates
        if isinstance(model, np.ndarray):
            w = w.with_believed(model)
        elif model is not None:
            w = w.with_estimates(model, case.seed)
        rules: dict[str, Any] = {"dialect": self.dialect, "overrun": self.overrun, "dynamics": self.dynamics}
        begin = time.thread_time()
        self.plain = simulate(w, case.policy, prediction=case.prediction, machine=self.machine, progress=check, **rules)
        self.kernel_seconds += time.thread_time() - begin if self.plain.engine == "kernel" else 0.0
        return self.plain.summary(self.trim), self.plain.dynamics_summary(self.trim) if self.dynamics else None

    @property
    def simulated(self) -> Workload:
        """The jobs of the last case; on a machine of several pools, those that can run there."""
        return self.workload if self.plain is None else self.plain.workload

    def prediction_summary(self) -> metrics.PredictionSummary | None:
        """Return the quality of the last case's predictions over the measured jobs; None without a predictor."""
        if self.plain is not None:
            return None if self.plain.predictions is None else self.plain.prediction_summary(self.trim)
        if self.simulation is None or self.simulation.problem.prediction is None:
            return None
        s, mask = self.simulation, self.schedule()[3]
        columns = (self.runtime, self.requested, s.predicted, s.basis, s.start, s.reserved_start, s.corrections)
        return metrics.summarize_predictions(*(column[mask] for column in columns))

    def schedule(self) -> tuple[Array, Array, Array, Array]:
        """Return start, submit, runtime (int64 s) and whether measured (bool) of each job in the last case; overwritten by the next."""
        if self.plain is not None:
            start, submit, runtime = self.plain.start, self.plain.submit, self.plain.runtime
        else:
            assert self.simulation is not None
            start, submit, runtime = self.simulation.start, self.simulation.submit, self.runtime
        return start, submit, runtime, metrics.measured(start + runtime, int(submit.max(initial=0)), self.trim)

    def times(self, case: Case) -> tuple[Array, Array, Array]:
        """Return requests, runtimes and the scheduler's estimates in this case, int64 s."""
        w, model = self.workload, case.estimates
        if model is None:
            requested, believed = w.requested, w.believed
        elif isinstance(model, np.ndarray):
            requested, believed = w.requested, model
        else:
            believed = self.draw(model, case.seed)
            requested = believed if model.limit == "model" else w.requested
        return requested, *effective(w.runtime, requested, believed, self.overrun)

    def draw(self, model: EstimateModel, seed: int) -> Array:
        """Return `model.draw`, computed in the kernel for the random f-model."""
        w = self.workload
        if type(model) is not FModel or not model.random or not 0 <= seed < 2**64:  # model.draw rejects an invalid seed
            return model.draw(w, seed)
        source = self.make_source(np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32), np.uint64(STREAM_F))
        largest = MAX_TIME if model.truncated is None else model.truncated
        runtime = _fixed(model.runtime(w))
        begin = time.thread_time()
        self.draw_f_estimates(source, _fixed(w.job_id), runtime, model.F, largest, float(MAX_TIME), self.drawn)
        self.kernel_seconds += time.thread_time() - begin
        return self.drawn

    def summary(self) -> metrics.Summary:
        """Return the averages of the last case, on a single-pool machine."""
        w, simulation = self.workload, self.simulation
        assert simulation is not None
        return metrics.summarize(
            submit=simulation.submit,
            start=simulation.start,
            runtime=self.runtime,
            procs=w.procs,
            backfilled=simulation.kind == Kind.BACKFILLED,
            machine_procs=w.machine_procs,
            offered_load=metrics.offered_load(w.submit, self.runtime, w.procs, w.machine_procs),
            trim=self.trim,
        )


def _fixed(array: Array) -> Array:
    """Return a read-only view, as compiled functions expect."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
