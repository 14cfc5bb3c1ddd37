"""Replay a workload under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from walltime.engine.reference.number import Reference
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.machine import Machine
from walltime.metrics import Dynamics
from walltime.policy import PAPERS, Dialect, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import PredictionRecord, Schedule
from walltime.simulation.engines import check_dynamics, lowered_prediction, needs_reference, new_kernel, new_reference
from walltime.simulation.on_machine import run_on_machine
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload, check_workload

if TYPE_CHECKING:
    from walltime.engine.interface.branch import Branch
    from walltime.engine.interface.number import Simulation

Array = np.ndarray
ENGINES = ("auto", "kernel", "reference")


def simulate(
    workload: Workload,
    policy: Policy | Scheduler | str,
    *,
    coincident: str | None = None,
    dialect: Dialect | str = PAPERS,
    overrun: str = "kill",
    prediction: Prediction | Predictor | str | None = None,
    engine: str = "auto",
    dynamics: bool = False,
    machine: Machine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replay the workload under the policy and return the schedule.

    `policy`: a policy, or the specification of a scheduler as on the command line, such as `easy:order=sjf`, optionally with a
    predictor. `dialect`: how the rules are read, the name of a `walltime.Dialect`, or one. `coincident`, in place of the dialect's,
    for simultaneous events: `batch` handles all terminations of an instant, then all arrivals, then makes one
    pass; `sequential` makes a pass after every event, arrivals before terminations, and jobs whose expected end is this very instant
    count as ended; `one-by-one` is the same with terminations before arrivals. `overrun`, for jobs that run longer than requested:
    `kill` ends them at their request; `extend` raises the request and the scheduler's estimate to the runtime; `overrun` lets them
    run. `prediction`: a predictor (see `walltime.predictors`) or a `walltime.Prediction`. `engine`: the compiled `kernel`; the slow
    independent `reference`; or `auto` (default): the kernel whenever possible. The reference engine is needed for `one-by-one`,
    policies and predictors in plain Python, and policies with interpretations other than the default; `Schedule.engine` tells which
    one ran. `dynamics`: whether to record the effects of backfilling in `Schedule.dynamics`. `machine`:
    pools, partitions, outages and limits (`walltime.machine`) in place of one number of processors; the schedule is then of the jobs that
    can run there, and without predictions and dynamics. `progress` is called from time to time
    with the number of jobs started so far (compiled engine only).

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
    scheduler, rules, ran = chosen_engine(policy, prediction, Dialect.of(dialect, coincident), engine)
    if machine is not None:
        return _on_machine(workload, scheduler, machine, overrun, rules, dynamics, ran, progress)
    if dynamics:
        check_dynamics(scheduler.policy)
    if ran == "reference":
        begin = time.perf_counter()
        reference = new_reference(Reference, workload, scheduler, rules, overrun, dynamics)
        reference.run()
        found = _dynamics_of_reference(reference) if dynamics else None
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
        return schedule_of(reference, workload, scheduler, rules, overrun, seconds, found)
    from walltime.engine.interface.load import load

    lowered = lowered_prediction(workload, scheduler, overrun)
    predicting = time.perf_counter()
    simulation = new_kernel(workload, scheduler, rules, overrun, lowered, dynamics)
    simulation.compile()
    if dynamics:
        load("dynamics")
    loaded = time.perf_counter()
    simulation.run(progress)
    found = dynamics_of(simulation) if dynamics else None
    seconds = {"compile": loaded - predicting, "simulate": simulation.seconds}
    if dynamics:
        seconds["dynamics"] = simulation.seconds_dynamics
    return schedule_of(simulation, workload, scheduler, rules, overrun, seconds, found)


def chosen_engine(
    policy: Policy | Scheduler | str, prediction: Prediction | Predictor | str | None, dialect: Dialect, engine: str
) -> tuple[Scheduler, Dialect, str]:
    """The scheduler as the dialect reads it, the dialect, and the engine that runs it: `kernel` or `reference`.

    Raises PolicyError for an unknown engine, and if the kernel is wanted and cannot run it.
    """
    scheduler = Scheduler.of(policy, prediction)
    scheduler = replace(scheduler, policy=dialect.apply(scheduler.policy))
    if engine not in ENGINES:
        raise PolicyError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    needs = needs_reference(scheduler.policy, dialect, scheduler.prediction)
    if engine == "kernel" and needs:
        raise PolicyError(f"{needs} on the reference engine only; leave the engine to be chosen, or ask for the reference")
    return scheduler, dialect, "reference" if needs or engine == "reference" else "kernel"


def schedule_of(
    engine: Simulation | Branch | Reference,
    workload: Workload,
    scheduler: Scheduler,
    dialect: Dialect,
    overrun: str,
    seconds: Mapping[str, float],
    dynamics: Dynamics | None = None,
) -> Schedule:
    """The schedule that an engine has made when it is done; `seconds`: the time that each part took."""
    chosen, record = scheduler.prediction, None
    if isinstance(engine, Reference):
        jobs = engine.jobs
        submitted, start, reserved_start, predicted, corrections = (
            np.array([getattr(job, name) for job in jobs], np.int64)
            for name in ("submit", "start", "reserved_start", "predicted", "corrections")
        )
        kind, basis = (np.array([getattr(job, name) for job in jobs], np.uint8) for name in ("kind", "basis"))
        if chosen is not None:
            record = PredictionRecord(chosen, predicted, basis, corrections)
    else:
        submitted, start, kind, reserved_start = engine.submit, engine.start, engine.kind, engine.reserved_start
        if chosen is not None:
            record = PredictionRecord(chosen, engine.predicted, engine.basis, engine.corrections)
    runtime, _ = effective_times(workload, overrun)
    return Schedule(
        workload=workload,
        policy=scheduler.policy,
        start=start,
        end=start + runtime,
        runtime=runtime,
        kind=kind,
        reserved_start=reserved_start,
        overrun=overrun,
        dialect=dialect,
        submitted=submitted if workload.feedback else None,
        seconds=dict(seconds),
        dynamics=dynamics,
        predictions=record,
        engine="reference" if isinstance(engine, Reference) else "kernel",
    )


def _on_machine(
    workload: Workload,
    scheduler: Scheduler,
    machine: Machine,
    overrun: str,
    dialect: Dialect,
    dynamics: bool,
    engine: str,
    progress: Callable[[int], None] | None,
) -> Schedule:
    if dynamics or dialect != PAPERS:
        what = "the effects of backfilling are not recorded" if dynamics else f"rules are read as in the papers, not {dialect.label},"
        raise PolicyError(f"{what} on a machine of several pools")
    found = run_on_machine(workload, scheduler, machine, overrun, engine, progress)
    return Schedule(policy=scheduler.policy, overrun=overrun, dialect=dialect, **found)


def dynamics_of(simulation: Simulation) -> Dynamics:
    """The effects of backfilling in a finished simulation whose starts were recorded."""
    found = simulation.dynamics()
    delay = np.where(found.suffered > 0, simulation.start - found.initial_shadow, 0)
    return Dynamics(found.wild, found.suffered, delay, found.shortest, found.alone, simulation.sequence)


def _dynamics_of_reference(reference: Reference) -> Dynamics:
    jobs = reference.jobs
    wild, suffered, delay, shortest, alone = (
        np.array([getattr(job, name) for job in jobs], dtype)
        for name, dtype in (("wild", bool), ("suffered", np.int64), ("delay", np.int64), ("shortest", bool), ("alone", bool))
    )
    return Dynamics(wild, suffered, delay, shortest, alone, np.argsort([job.ticket for job in jobs], kind="stable"))
