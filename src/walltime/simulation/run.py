"""From a workload and a scheduler to the problem that an engine is given, and from its outcome to a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.compiled.compilation import notice
from walltime.engine.interface.choice import check_features, choose, features_of, kind_of, support
from walltime.engine.problem import NEVER, Demands, Nodes, OarSettings, Outcome, Pools, Problem
from walltime.estimates import effective_times
from walltime.machine import NO_OVERHEAD, Machine, Placement, place
from walltime.machine.overheads import scheduler_view, start_times
from walltime.metrics import Dynamics
from walltime.policy import PAPERS, Dialect, Policy
from walltime.policy.log_view import LogView
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import PredictionRecord, Schedule
from walltime.simulation.job_predictions import CalledPredictions, JobPredictions
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload, check_workload

if TYPE_CHECKING:
    from walltime.engine.interface.nodes import NodesEngine, OarEngine
    from walltime.engine.interface.number import NumberEngine
    from walltime.engine.interface.plain import ReferenceEngine
    from walltime.engine.interface.pools import PoolsEngine

    Engine = NumberEngine | PoolsEngine | NodesEngine | OarEngine | ReferenceEngine

Array = np.ndarray


def simulate(
    workload: Workload,
    policy: Policy | Scheduler | str,
    *,
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    overrun: str = "kill",
    prediction: Prediction | Predictor | str | None = None,
    engine: str = "auto",
    dynamics: bool = False,
    machine: Machine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replay the workload under the policy and return the schedule.

    `policy`: one such as `walltime.Easy()`, or the specification of a scheduler as on the command line: `easy:order=sjf`.
    `prediction`: a predictor (see `walltime.predictors`), or a `walltime.Prediction`; the policy's specification may name one, too.
    `machine`: pools, partitions, outages and limits (`walltime.machine`), in place of one number of processors; the schedule is then of
    the jobs that can run there, and on one pool where that makes no difference (`Schedule.simulated_on`).
    `dialect`: how the rules are read, a `walltime.policy.Dialect` or the name of one.
    `coincident`: simultaneous events, in place of the dialect's way.
        `batch`: all terminations of an instant, then all arrivals, then one pass.
        `sequential`: a pass after every event, arrivals before terminations; jobs expected to end at this very instant count as ended.
        `one-by-one`: the same with terminations before arrivals.
    `overrun`: jobs that run longer than requested.
        `kill`: they end at their request.
        `extend`: the request and the scheduler's estimate are raised to the runtime.
        `continue`: they run on.
    `engine`: the compiled `kernel`, the slow independent `reference`, or `auto`: the kernel if possible (`Schedule.engine` says which).
        The reference is needed for policies and predictors in plain Python, and for readings of some dialects.
    `dynamics`: whether to record the effects of backfilling in `Schedule.dynamics`; not with a machine.
    `progress`: called from time to time with the number of jobs started so far (compiled engine only).

    Raises PolicyError for an unknown policy, order or option, and if `engine="kernel"` does not support the request; WorkloadError
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
    run = run_of(workload, scheduler, dialect=Dialect.of(dialect, coincident), overrun=overrun, machine=machine, dynamics=dynamics)
    begin = time.perf_counter()
    simulation = run.engine(engine, straight=True)
    simulation.compile()
    loaded = time.perf_counter()
    simulation.run(_raising(simulation, progress))
    _raising(simulation, None)(0)
    return run.schedule(simulation.outcome(), compile=loaded - begin if simulation.name == "kernel" else 0.0)


def _raising(simulation: Engine, progress: Callable[[int], None] | None) -> Callable[[int], None]:
    """Progress that also raises what a predictor in plain Python has raised, where the compiled loop called it."""
    prediction = simulation.problem.prediction

    def report(done: int) -> None:
        if isinstance(prediction, CalledPredictions):
            prediction.check()
        if progress is not None:
            progress(done)

    return report


Times = tuple[Array, Array, Array]
"""Requests, runtimes and the estimates that the scheduler uses, int64 s."""


@dataclass(frozen=True, eq=False)
class Run:
    """A workload under a scheduler, and the problem that this is for an engine.

    `workload`: the jobs as they run; on a machine, those that can run there, with their `placement`.
    """

    workload: Workload
    scheduler: Scheduler
    dialect: Dialect
    overrun: str
    placement: Placement | None
    problem: Problem

    def engine(self, wanted: str = "auto", straight: bool = False) -> Engine:
        """The engine that `choose` chooses, before the first event.

        `straight`: it runs to the end, and is neither copied nor goes back; then the compiled loop may call a predictor in plain Python.
        """
        problem, prediction = self.problem, self.problem.prediction
        if straight and wanted != "reference" and isinstance(prediction, JobPredictions) and prediction.can_be_called:
            problem = replace(problem, prediction=prediction.called())
        return new_engine(problem, wanted)

    def schedule(self, outcome: Outcome, **seconds: float) -> Schedule:
        """The schedule that an engine has made; `seconds`: the time that parts took of which the engine does not know."""
        workload, placement, prediction = self.workload, self.placement, self.scheduler.prediction
        record, limit = None, None
        if prediction is not None:
            assert outcome.predicted is not None and outcome.basis is not None and outcome.corrections is not None  # noqa: PT018
            record = PredictionRecord(prediction, outcome.predicted, outcome.basis, outcome.corrections)
        if outcome.limit is not None and (shortened := outcome.limit < self.problem.believed).any():
            limit = np.where(shortened, np.minimum(outcome.limit, workload.requested), workload.requested)
        waits = workload.feedback or (placement is not None and len(placement.after.items) > 0)
        start, runtime, reserved, submitted = outcome.start, outcome.runtime, outcome.reserved_start, outcome.submit
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
        )

    def _given(self) -> Array | None:
        """What jobs had of each pool where all had what they needed of a single one."""
        machine, demands = self.problem.machine, self.problem.demands
        if not isinstance(machine, Pools) or not isinstance(demands, Demands):
            return None
        given = np.zeros((len(self.problem), len(machine.capacity), 2), np.int64)
        pool = machine.partitions[demands.partition[0]][0]
        given[:, pool] = np.stack([self.problem.procs, demands.second], axis=1)
        return given


SOON = 1000
"""Jobs; so many take the slow engine about a second, so nobody asks why."""


def new_engine(problem: Problem, wanted: str = "auto") -> Engine:
    """The engine that `choose` chooses, before the first event; where that is the slow one, the user is told why."""
    name, problem = choose(problem, wanted)
    if name == "reference" and wanted == "auto" and len(problem) > SOON:
        why = support(problem.policy, kind_of(problem), features_of(problem)).why
        notice(f"{problem.policy.label} runs in plain Python, some thousand times slower than compiled, {why}")
    kind: Any
    if name == "reference":
        from walltime.engine.interface.plain import ReferenceEngine as kind  # noqa: N813
    elif isinstance(problem.settings, OarSettings):
        from walltime.engine.interface.nodes import OarEngine as kind  # noqa: N813
    elif isinstance(problem.machine, Nodes):
        from walltime.engine.interface.nodes import NodesEngine as kind  # noqa: N813
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
    """The run of a workload under a scheduler; arguments as those of `walltime.simulate`.

    Raises PolicyError for what is not known on such a machine, and what placing the jobs raises.
    """
    scheduler = replace(scheduler, policy=dialect.apply(scheduler.policy))
    placement, more, seen = None, dict[str, Any](), None
    check_asked_for(scheduler, dialect, machine, dynamics)
    if machine is not None:
        if scheduler.policy.plans_nodes:
            from walltime.simulation.nodes import placed_on_nodes

            workload, placement, more = placed_on_nodes(workload, scheduler.policy, machine)
        else:
            workload, placement = place(workload, machine, extends=overrun == "extend")
            seen, own = scheduler_view(workload, placement)
            demands = Demands(own.second, own.partition, own.since, own.after, own.limits_of, own.windows_of)
            more = {"machine": pools_of(own), "demands": demands, "tick": machine.overhead.tick}
    jobs = workload if seen is None else seen
    times = (jobs.requested, *effective_times(jobs, overrun))
    problem = replace(number_problem(jobs, scheduler, dialect, times), logged=dynamics, kill=overrun == "kill", **more)
    if placement is not None and problem.after is not None:
        problem = replace(problem, after=np.where(placement.since < NEVER, -1, problem.after))  # it has been submitted already
    return Run(workload, scheduler, dialect, overrun, placement, problem)


def _submitted(workload: Workload, placement: Placement, end: Array) -> Array:
    """From when on each job waited, int64 s: its submission, or what followed the ends of others."""
    submit = workload.submit.copy()
    if workload.feedback:
        after, think = workload.dependencies()
        follows = (after >= 0) & (placement.since == NEVER)
        submit[follows] = np.maximum(end[after[follows]] + think[follows], 0)
    for job, others in enumerate(placement.after):
        submit[job] = max([int(submit[job]), *(int(end[other]) for other in others)])
    return submit


def check_asked_for(scheduler: Scheduler, dialect: Dialect, machine: Machine | None, dynamics: bool) -> None:
    """Raise PolicyError for what a scheduler does not run with on such a machine, whatever the jobs are."""
    kind = "number" if machine is None else "nodes" if scheduler.policy.plans_nodes else "pools"
    check_features(scheduler.policy, kind, _asked_for(scheduler, dialect, machine, dynamics))


def _asked_for(scheduler: Scheduler, dialect: Dialect, machine: Machine | None, dynamics: bool) -> list[str]:
    """What of `FEATURES` does not depend on the jobs, and may be nowhere to be had."""
    asked = {
        "predictor": scheduler.prediction is not None,
        "overheads": machine is not None and machine.overhead != NO_OVERHEAD,
        "windows": machine is not None and bool(machine.windows),
        "events": (one_by_one := dialect.coincident in ("arrivals-first", "one-by-one")),
        "dialect": dialect != PAPERS and not one_by_one,
        "effects": dynamics,
    }
    return [name for name, given in asked.items() if given]


def number_problem(workload: Workload, scheduler: Scheduler, dialect: Dialect, times: Times) -> Problem:
    """The problem on as many processors as the workload's machine has; the policy is one that the dialect has been applied to."""
    requested, runtime, believed = times
    after, think = workload.dependencies() if workload.feedback else (None, None)
    return Problem(
        submit=workload.submit,
        runtime=runtime,
        believed=believed,
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
    """The pools of a machine as engines take them."""
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
    """The jobs that can run on this machine under a policy, as they run there, and what they need; see `walltime.machine.place`."""
    if policy is None or not policy.plans_nodes:
        return place(workload, machine)
    from walltime.simulation.nodes import placed_for

    return placed_for(workload, policy, machine)[:2]
