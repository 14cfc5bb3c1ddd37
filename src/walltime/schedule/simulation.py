"""Replay a workload under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from walltime.engine.reference import COINCIDENT, Reference
from walltime.errors import PolicyError
from walltime.estimates.predictors import Predictor
from walltime.metrics import Dynamics
from walltime.policy import Belief, Correction, PlainPolicy, Policy
from walltime.schedule.known import known_to
from walltime.schedule.overrun import effective_times
from walltime.schedule.prediction import PredictionRecord, Setting, compiled, for_kernel, for_reference
from walltime.schedule.schedule import Schedule
from walltime.workload import Workload, check_workload

if TYPE_CHECKING:
    from walltime.engine.run import Simulation

Array = np.ndarray
ENGINES = ("kernel", "reference")


def simulate(
    workload: Workload,
    policy: Policy,
    *,
    coincident: str = "batch",
    overrun: str = "kill",
    engine: str = "kernel",
    dynamics: bool = False,
    predictor: Predictor | None = None,
    believe: str | Belief = "regular",
    correction: str | Correction = "tsafrir07",
    history: str = "simulation",
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replay the workload under the policy and return the schedule.

    `coincident`: `batch` handles all terminations of an instant, then all arrivals, then makes one pass; `sequential`
    makes one pass after every single event, arrivals before terminations, jobs whose expected end is this very instant
    counting as gone; `one-by-one` is the same with terminations before arrivals (SPEC Q-01). `overrun`, for jobs that run
    longer than they requested (SPEC Q-05): `kill` ends them at their request; `extend` raises the request, and what the
    scheduler believes, to the runtime; `overrun` lets them run.
    `engine`: the compiled `kernel`, or the slow independent `reference`, which `one-by-one`, a `PlainPolicy` and a policy with
    other `readings` than the default use always.
    `dynamics`: whether to note the starts as they happen, so that `Schedule.dynamics` tells what backfilling did.
    `progress` is called now and then with the number of jobs started so far (compiled engine only).

    `predictor`: predicts each job's runtime when it is submitted, from jobs that have ended (see `walltime.estimates`); jobs are
    killed at the users' requests all the same. `believe`: where the predictions are believed, `regular` (everywhere), `selective`
    (not of running jobs), `none`, or three bits: in the order of the queue, of a waiting job's own length, of running jobs (SPEC
    A-11); elsewhere the users' estimates are. `correction`: what is expected of a running job that outlives its prediction:
    `tsafrir07` or `tsafrir07:elapsed` (rising increments), `estimate`, `double`, `none`; each correction is an event, followed by
    a pass. `history`: the predictor learns from what ends in the `simulation`, or in the `log`, whose waits must be known. A
    predictor of your own that learns from the simulation runs on the reference engine. Under hybrid and conservative
    backfilling from scratch a job that starts holds its own length until the end of the pass, then its expected one. Under
    conservative backfilling reservations are made afresh, and promises may be broken, when a prediction is corrected, when a
    waiting job is predicted anew, and after a job has started that is expected to run for longer than its own length.

    Raises PolicyError for an unknown policy, order or option, WorkloadError for what is no workload and if the log lacks what the
    predictor needs, EngineError if a `PlainPolicy` leaves jobs waiting for ever.

    >>> from walltime import Easy, Workload
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> simulate(jobs, Easy()).start.tolist()
    [0, 10, 2]
    """
    check_workload(workload)
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy must be one such as walltime.Easy(), not {policy!r}")
    if engine not in ENGINES:
        raise PolicyError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    if coincident not in COINCIDENT:
        raise PolicyError(f"unknown way to handle coincident events {coincident!r}; known are {', '.join(COINCIDENT)}")
    setting = Setting.of(predictor, believe, correction, history)
    runtime, believed = effective_times(workload, overrun)
    times = (workload.requested, runtime, believed)
    record = None
    columns = (workload.submit, runtime, believed, workload.procs)
    known = known_to(policy, workload, workload.requested)
    after, think = workload.dependencies() if workload.feedback else (None, None)
    plain = engine == "reference" or coincident == "one-by-one" or bool(policy.readings) or isinstance(policy, PlainPolicy)
    if plain or (setting is not None and not compiled(setting)):
        begin = time.perf_counter()
        submit, ran, planned, procs = (column.tolist() for column in columns)
        preceding, pause = (None, None) if after is None or think is None else (after.tolist(), think.tolist())
        predictions = None if setting is None else for_reference(setting, workload, *times)
        lists = known._replace(columns={name: values.tolist() for name, values in known.columns.items()})
        rules = (workload.machine_procs, policy, coincident, preceding, pause, dynamics, predictions, lists)
        reference = Reference(submit, ran, planned, procs, *rules)
        reference.run()
        if setting is not None:
            jobs = reference.jobs
            predicted, corrections = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("predicted", "corrections"))
            record = PredictionRecord(setting, predicted, np.array([job.basis for job in jobs], np.uint8), corrections)
        found = _dynamics_of_reference(reference) if dynamics else None
        submitted, start, kind, promised = (
            np.array([getattr(job, name) for job in reference.jobs], dtype)
            for name, dtype in (("submit", np.int64), ("start", np.int64), ("kind", np.uint8), ("promised", np.int64))
        )
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
    else:
        from walltime.engine.load import load
        from walltime.engine.run import Simulation

        prediction = None if setting is None else for_kernel(setting, workload, *times)
        predicting = time.perf_counter()
        simulation = Simulation(*columns, workload.machine_procs, policy, coincident, after, think, dynamics, prediction, known)
        simulation.compile()
        if dynamics:
            load("dynamics")
        loaded = time.perf_counter()
        simulation.run(progress)
        found = dynamics_of(simulation) if dynamics else None
        submitted = simulation.submit
        start, kind, promised = simulation.start, simulation.kind, simulation.promised
        seconds = {"compile": loaded - predicting, "simulate": simulation.seconds}
        if setting is not None:
            record = PredictionRecord(setting, simulation.predicted, simulation.basis, simulation.corrections)
        if dynamics:
            seconds["dynamics"] = simulation.seconds_dynamics
    return Schedule(
        workload=workload,
        policy=policy,
        start=start,
        end=start + runtime,
        runtime=runtime,
        kind=kind,
        promised=promised,
        overrun=overrun,
        coincident=coincident,
        submitted=submitted if workload.feedback else None,
        seconds=seconds,
        dynamics=found,
        predictions=record,
    )


def dynamics_of(simulation: Simulation) -> Dynamics:
    """What backfilling did in a finished simulation that was logged."""
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
