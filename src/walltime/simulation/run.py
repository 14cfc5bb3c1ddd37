"""Replay a workload under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable

from walltime.machine import Machine
from walltime.policy import PAPERS, Dialect, Policy
from walltime.predictors import Prediction, Predictor
from walltime.schedule.schedule import Schedule
from walltime.simulation.problem import run_of
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload, check_workload

__all__ = ["simulate"]


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
    can run there, and without dynamics; where they are no more than a number for these jobs, they are simulated as one
    (`Schedule.simulated_on`). `progress` is called from time to time
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
    run = run_of(workload, scheduler, dialect=Dialect.of(dialect, coincident), overrun=overrun, machine=machine, dynamics=dynamics)
    begin = time.perf_counter()
    simulation = run.engine(engine)
    simulation.compile()
    loaded = time.perf_counter()
    simulation.run(progress)
    return run.schedule(simulation.outcome(), compile=loaded - begin if simulation.name == "kernel" else 0.0)
