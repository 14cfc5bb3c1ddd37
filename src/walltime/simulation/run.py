"""One simulation: from a workload and a scheduler to an engine's problem, and from its outcome to a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.compiled.compilation import notice
from walltime.engine.interface.choice import check_features, choose, features_of, kind_of, support
from walltime.engine.machines import NEVER, Demands, Nodes, OarSettings, Pools
from walltime.engine.problem import Outcome, Problem
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.machine import NO_OVERHEAD, Machine, Placement, place
from walltime.machine.overheads import scheduler_view, start_times
from walltime.metrics import Dynamics
from walltime.node_demands import runs_on_nodes
from walltime.policy import PAPERS, Dialect, Policy
from walltime.policy.log_view import LogView
from walltime.policy.randomness import global_numbers, seeded
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import PredictionRecord, Schedule
from walltime.simulation.job_predictions import CalledPredictions, JobPredictions
from walltime.simulation.specification import Scheduler
from walltime.wording import human_time, seed_fault
from walltime.workload import Array, Workload, check_workload

if TYPE_CHECKING:
    from walltime.engine.interface.nodes import FirstFitEngine, NodesEngine, OarEngine
    from walltime.engine.interface.number import NumberEngine
    from walltime.engine.interface.plain import ReferenceEngine
    from walltime.engine.interface.pools import PoolsEngine

    Engine = NumberEngine | PoolsEngine | NodesEngine | OarEngine | FirstFitEngine | ReferenceEngine


def simulate(
    workload: Workload,
    policy: Policy | Scheduler | str | Any,
    *,
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    overrun: str = "kill",
    prediction: Prediction | Predictor | str | Any = None,
    engine: str = "auto",
    dynamics: bool = False,
    machine: Machine | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int = 0,
) -> Schedule:
    """Replay the workload under the policy and return the schedule.

    `policy`: a policy such as `walltime.Easy()`; the specification of a scheduler, such as `easy:order=sjf`; or a class or an object
    with `choose`; each run gets its own copy.
    `prediction`: a predictor (see `walltime.predictors`), or a `walltime.Prediction`; the policy's specification may name one, too. A
    class or an object with `predict` and `observe` is a predictor as well.
    `machine`: pools, partitions, outages and limits (`walltime.machine`), instead of the workload's single pool. The schedule then has
    the jobs that can run there; it is computed on one pool if that makes no difference (`Schedule.simulated_on`).
    `dialect`: interpretations of points that papers leave open, a `walltime.policy.Dialect` or the name of one.
    `coincident`: treatment of simultaneous events, instead of the dialect's.
        `batch`: all terminations of an instant, then all arrivals, then one pass.
        `sequential`: a pass after every event, arrivals before terminations; jobs expected to end at this instant count as ended.
        `one-by-one`: the same with terminations before arrivals.
    `overrun`: treatment of jobs that run longer than requested.
        `kill`: they end at their request.
        `extend`: the request and the scheduler's estimate are raised to the runtime.
        `continue`: they run on.
    `engine`: the compiled `kernel`, the slow independent `reference`, or `auto`: the kernel if possible (see `Schedule.engine`).
        The reference is needed for policies and predictors in plain Python, and for interpretations of some dialects.
    `dynamics`: whether to record the effects of backfilling in `Schedule.dynamics`; not with a machine.
    `progress`: called repeatedly with the number of jobs started so far (compiled engine only).
    `seed`: the seed of the random generator that a policy or predictor in plain Python takes, as in `begin(self, procs, rng)`,
        and of the numbers that orders read as `random`.

    Raises PolicyError for an unknown policy, order or option, and if `engine="kernel"` does not support the simulation; WorkloadError
    for an invalid workload, or a log without a column that the predictor needs; EngineError if a `PlainPolicy` leaves jobs waiting
    forever.

    >>> from walltime import Easy, Workload
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> simulate(jobs, Easy()).start.tolist()
    [0, 10, 2]
    >>> simulate(jobs, "easy:backfill-order=sjf,predictor=exact").label
    'easy:backfill-order=sjf,predictor=exact'
    """
    check_workload(workload)
    scheduler = Scheduler.of(policy, prediction)
    if fault := seed_fault(seed):
        raise PolicyError(fault, "wrong_type")
    begin = time.perf_counter()
    with seeded(seed), global_numbers(scheduler.own):
        run = run_of(workload, scheduler, dialect=Dialect.of(dialect, coincident), overrun=overrun, machine=machine, dynamics=dynamics)
        simulation = run.engine(engine, straight=True)
        simulation.compile()
        loaded = time.perf_counter()
        simulation.run(_raising(simulation, progress))
    _raising(simulation, None)(0)
    schedule = run.schedule(simulation.outcome(), compile=loaded - begin if simulation.name == "kernel" else 0.0)
    for numbers in tuple(_counting):
        numbers.append(len(workload))
    return replace(schedule, seed=seed)


_counting: list[list[int]] = []


@contextmanager
def counted_simulations() -> Iterator[list[int]]:
    """Yield a list to which each simulation by `simulate` on any thread of this process appends its number of jobs."""
    numbers: list[int] = []
    _counting.append(numbers)
    try:
        yield numbers
    finally:
        _counting[:] = [one for one in _counting if one is not numbers]


def _raising(simulation: Engine, progress: Callable[[int], None] | None) -> Callable[[int], None]:
    """Return a progress function that also raises errors of a plain Python predictor which the compiled loop calls."""
    prediction = simulation.problem.prediction

    def report(done: int) -> None:
        if isinstance(prediction, CalledPredictions):
            prediction.check()
        if progress is not None:
            progress(done)

    return report


Times = tuple[Array, Array, Array]
"""Requests, runtimes and the scheduler's estimates; int64 s, one entry per job each."""


@dataclass(frozen=True, eq=False)
class Run:
    """A workload under a scheduler, with the problem for an engine.

    * `workload`: the jobs as they run; on a machine, those that can run there
    * `placement`: the needs of these jobs on the machine; None without a machine
    """

    workload: Workload
    scheduler: Scheduler
    dialect: Dialect
    overrun: str
    placement: Placement | None
    problem: Problem

    def engine(self, wanted: str = "auto", straight: bool = False) -> Engine:
        """Return the engine that `choose` selects, before the first event.

        `straight`: whether it will run to the end without being copied. Then the compiled loop may call a predictor in plain Python.
        """
        problem, prediction = self.problem, self.problem.prediction
        if straight and wanted != "reference" and isinstance(prediction, JobPredictions) and prediction.can_be_called:
            problem = replace(problem, prediction=prediction.called())
        return new_engine(problem, wanted)

    def schedule(self, outcome: Outcome, **seconds: float) -> Schedule:
        """Return the schedule for an engine's outcome; `seconds`: durations of the stages outside the engine."""
        workload, placement, prediction = self.workload, self.placement, self.scheduler.prediction
        record, limit = None, None
        if prediction is not None:
            assert outcome.predicted is not None and outcome.basis is not None and outcome.corrections is not None  # noqa: PT018
            record = PredictionRecord(prediction, outcome.predicted, outcome.basis, outcome.corrections)
        if outcome.limit is not None and (shortened := outcome.limit < self.problem.planned).any():
            limit = np.where(shortened, np.minimum(outcome.limit, workload.requested), workload.requested)
        waits = workload.feedback or (placement is not None and len(placement.after.items) > 0)
        start, runtime, reserved, submitted = outcome.start, outcome.runtime, outcome.reserved_start, outcome.submit
        if placement is not None and outcome.lost is not None and waits:
            submitted = _submitted(workload, placement, start + runtime)  # the engine returns the submissions of the last runs
        if placement is not None and (own := placement.machine.overhead) != NO_OVERHEAD:
            start, runtime = start_times(start, placement), effective_times(workload, self.overrun)[0]
            reserved = np.where(reserved < 0, reserved, reserved + own.start)
            submitted = _submitted(workload, placement, start + runtime) if waits else submitted
            record = None if record is None else replace(record, predicted=np.maximum(record.predicted - own.start - own.end, 1))
        return Schedule(
            workload=workload,
            policy=self.scheduler.policy,
            start=start,
            end=start + runtime,
            runtime=runtime,
            kind=outcome.kind,
            reserved_start=reserved,
            overrun=self.overrun,
            dialect=self.dialect,
            submitted=submitted if waits else None,
            seconds={**seconds, **outcome.seconds},
            dynamics=None if outcome.effects is None else Dynamics(*outcome.effects),
            predictions=record,
            engine=outcome.engine,
            simulated_on=outcome.machine,
            placement=placement,
            given=self._given() if outcome.given is None else outcome.given,
            slots=outcome.slots,
            limit=limit,
            lost=outcome.lost,
        )

    def _given(self) -> Array | None:
        """Return the processors and second resource of each job in each pool, for jobs that all use one pool; None without pools."""
        machine, demands = self.problem.machine, self.problem.demands
        if not isinstance(machine, Pools) or not isinstance(demands, Demands):
            return None
        given = np.zeros((len(self.problem), len(machine.capacity), 2), np.int64)
        pool = machine.partitions[demands.partition[0]][0]
        given[:, pool] = np.stack([self.problem.procs, demands.second], axis=1)
        return given


MIN_SLOW_JOBS = 1000
"""The reference engine takes about a second for this many jobs; no notice is printed for fewer jobs."""


def new_engine(problem: Problem, wanted: str = "auto") -> Engine:
    """Return the engine that `choose` selects, before the first event; print a notice if it is the slow reference engine."""
    name, problem = choose(problem, wanted)
    if name == "reference" and wanted == "auto" and len(problem) > MIN_SLOW_JOBS:
        why = support(problem.policy, kind_of(problem), features_of(problem)).why
        slow = f"200 to 700 times slower (about {human_time(-(-len(problem) // MIN_SLOW_JOBS))} for each such simulation)"
        line = f"{problem.policy.label} runs in the plain Python engine, {slow}: the compiled engine cannot simulate it {why}"
        notice(line, "plain Python engine")
    kind: Any
    if name == "reference":
        from walltime.engine.interface.plain import ReferenceEngine as kind  # noqa: N813
    elif isinstance(problem.settings, OarSettings):
        from walltime.engine.interface.nodes import OarEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Nodes) and problem.policy.plans_nodes:
        from walltime.engine.interface.nodes import NodesEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Nodes) and problem.policy.passes.kind == "head":
        from walltime.engine.interface.nodes import FirstFitEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Nodes):
        from walltime.engine.interface.nodes import PlannedEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Pools):
        from walltime.engine.interface.pools import PoolsEngine as kind  # noqa: N813
    else:
        from walltime.engine.interface.number import NumberEngine as kind  # noqa: N813
    engine: Engine = kind(problem)
    return engine


def run_of(
    workload: Workload,
    scheduler: Scheduler,
    *,
    dialect: Dialect = PAPERS,
    overrun: str = "kill",
    machine: Machine | None = None,
    dynamics: bool = False,
) -> Run:
    """Return the run of a workload under a scheduler; arguments as in `walltime.simulate`.

    Raises PolicyError for an unsupported machine, and the errors of placing the jobs.
    """
    scheduler = replace(scheduler, policy=dialect.apply(scheduler.policy))
    placement, more, jobs = None, dict[str, Any](), workload
    check_support(scheduler, dialect, machine, dynamics)
    if machine is not None:
        if runs_on_nodes(scheduler.policy, machine):
            from walltime.simulation.nodes import placed_on_nodes

            workload, placement, jobs, more = placed_on_nodes(workload, scheduler.policy, machine)
        else:
            workload, placement = place(workload, machine, extends=overrun == "extend")
            jobs, own = scheduler_view(workload, placement)
            demands = Demands(own.second, own.partition, own.since, own.after, own.limits_of, own.windows_of)
            more = {"machine": pools_of(own), "demands": demands, "tick": machine.overhead.tick}
    times = (jobs.requested, *effective_times(jobs, overrun))
    problem = replace(number_problem(jobs, scheduler, dialect, times), logged=dynamics, kill=overrun == "kill", **more)
    if placement is not None and problem.after is not None:
        problem = replace(problem, after=np.where(placement.since < NEVER, -1, problem.after))  # running jobs have been submitted
    return Run(workload, scheduler, dialect, overrun, placement, problem)


def _submitted(workload: Workload, placement: Placement, end: Array) -> Array:
    """Return the time (int64 s) at which each job's wait began: its submission or, if later, the last end of a job on which it depends."""
    submit = workload.submit.copy()
    if workload.feedback:
        after, think = workload.dependencies()
        follows = (after >= 0) & (placement.since == NEVER)
        submit[follows] = np.maximum(end[after[follows]] + think[follows], 0)
    for job, others in enumerate(placement.after):
        submit[job] = max([int(submit[job]), *(int(end[other]) for other in others)])
    return submit


def check_support(scheduler: Scheduler, dialect: Dialect, machine: Machine | None, dynamics: bool) -> None:
    """Raise PolicyError if the policy does not support a requested feature on such a machine, for any jobs."""
    kind = "number" if machine is None else "nodes" if runs_on_nodes(scheduler.policy, machine) else "pools"
    used = {
        "predictor": scheduler.prediction is not None,
        "overheads": machine is not None and machine.overhead != NO_OVERHEAD,
        "windows": machine is not None and bool(machine.windows),
        "events": (one_by_one := dialect.coincident in ("arrivals-first", "one-by-one")),
        "dialect": dialect != PAPERS and not one_by_one,
        "effects": dynamics,
    }
    check_features(scheduler.policy, kind, [name for name, is_used in used.items() if is_used])


def number_problem(workload: Workload, scheduler: Scheduler, dialect: Dialect, times: Times) -> Problem:
    """Return the problem for a single pool of processors; the dialect must have been applied to the policy before."""
    requested, runtime, planned = times
    after, think = workload.dependencies() if workload.feedback else (None, None)
    return Problem(
        submit=workload.submit,
        runtime=runtime,
        planned=planned,
        procs=workload.procs,
        machine=workload.machine_procs,
        policy=scheduler.policy,
        known=LogView.of(scheduler.policy.reads, workload, requested),
        after=after,
        think=think,
        prediction=None if scheduler.prediction is None else JobPredictions(scheduler.prediction, workload, *times),
        coincident=dialect.coincident,
        expiry=dialect.expiry,
    )


def pools_of(placement: Placement) -> Pools:
    """Return the pools of a machine for an engine."""
    machine = placement.machine
    return Pools(
        capacity=np.array([(pool.nodes * pool.procs, pool.nodes * pool.second) for pool in machine.pools], np.int64),
        partitions=[[machine.place_of(name) for name in one.pools] for one in machine.partitions],
        tiers=[one.tier for one in machine.partitions],
        outages=placement.outages,
        limits=placement.limits,
        windows=placement.windows,
    )


def placed_under(workload: Workload, machine: Machine, policy: Policy | None) -> tuple[Workload, Placement]:
    """Return the jobs that can run on this machine under a policy, and their placement; see `walltime.machine.place`."""
    if policy is None or not runs_on_nodes(policy, machine):
        return place(workload, machine)
    from walltime.simulation.nodes import placed_for

    return placed_for(workload, policy, machine)[:2]


def placed_on(workload: Workload, machine: Machine) -> tuple[Workload, Placement]:
    """Return the jobs that can run on this machine under its own policy, if it has one, and their placement."""
    return placed_under(workload, machine, None if machine.policy is None else Scheduler.of(machine.policy).policy)
