"""Replay a workload under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from walltime.engine.reference import Reference
from walltime.errors import PolicyError
from walltime.machine import Machine
from walltime.metrics import Dynamics
from walltime.policy import PAPERS, Dialect, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.engines import lowered_prediction, needs_reference, new_kernel, new_reference
from walltime.schedule.on_machine import run_on_machine
from walltime.schedule.overrun import effective_times
from walltime.schedule.prediction import PredictionRecord
from walltime.schedule.schedule import Schedule
from walltime.schedule.scheduler import Scheduler
from walltime.workload import Workload, check_workload

if TYPE_CHECKING:
    from walltime.engine.run import Simulation

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
    scheduler = Scheduler.of(policy, prediction)
    rules = Dialect.of(dialect, coincident)
    scheduler = replace(scheduler, policy=rules.apply(scheduler.policy))
    policy, chosen = scheduler.policy, scheduler.prediction
    if engine not in ENGINES:
        raise PolicyError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    needs = needs_reference(policy, rules, chosen)
    if engine == "kernel" and needs:
        raise PolicyError(f"{needs} on the reference engine only; leave the engine to be chosen, or ask for the reference")
    ran = "reference" if needs or engine == "reference" else "kernel"
    if machine is not None:
        return _on_machine(workload, scheduler, machine, overrun, rules, dynamics, ran, progress)
    runtime, _ = effective_times(workload, overrun)
    record = None
    if ran == "reference":
        begin = time.perf_counter()
        reference = new_reference(Reference, workload, scheduler, rules, overrun, dynamics)
        reference.run()
        if chosen is not None:
            jobs = reference.jobs
            predicted, corrections = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("predicted", "corrections"))
            record = PredictionRecord(chosen, predicted, np.array([job.basis for job in jobs], np.uint8), corrections)
        found = _dynamics_of_reference(reference) if dynamics else None
        submitted, start, kind, reserved_start = (
            np.array([getattr(job, name) for job in reference.jobs], dtype)
            for name, dtype in (("submit", np.int64), ("start", np.int64), ("kind", np.uint8), ("reserved_start", np.int64))
        )
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
    else:
        from walltime.engine.load import load

        lowered = lowered_prediction(workload, scheduler, overrun)
        predicting = time.perf_counter()
        simulation = new_kernel(workload, scheduler, rules, overrun, lowered, dynamics)
        simulation.compile()
        if dynamics:
            load("dynamics")
        loaded = time.perf_counter()
        simulation.run(progress)
        found = dynamics_of(simulation) if dynamics else None
        submitted = simulation.submit
        start, kind, reserved_start = simulation.start, simulation.kind, simulation.reserved_start
        seconds = {"compile": loaded - predicting, "simulate": simulation.seconds}
        if chosen is not None:
            record = PredictionRecord(chosen, simulation.predicted, simulation.basis, simulation.corrections)
        if dynamics:
            seconds["dynamics"] = simulation.seconds_dynamics
    return Schedule(
        workload=workload,
        policy=policy,
        start=start,
        end=start + runtime,
        runtime=runtime,
        kind=kind,
        reserved_start=reserved_start,
        overrun=overrun,
        dialect=rules,
        submitted=submitted if workload.feedback else None,
        seconds=seconds,
        dynamics=found,
        predictions=record,
        engine=ran,
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
