"""Replay a workload under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from walltime.engine.reference import Reference
from walltime.errors import PolicyError
from walltime.policy import PlainPolicy, Policy
from walltime.schedule.schedule import Schedule
from walltime.workload import Workload

Array = np.ndarray
OVERRUN = ("kill", "extend", "overrun")
ENGINES = ("kernel", "reference")


def simulate(
    workload: Workload,
    policy: Policy,
    *,
    coincident: str = "batch",
    overrun: str = "kill",
    engine: str = "kernel",
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Replay the workload under the policy and return the schedule.

    `coincident`: `batch` handles all terminations of an instant, then all arrivals, then makes one pass; `sequential`
    makes one pass after every single event, arrivals before terminations, jobs whose expected end is this very instant
    counting as gone (SPEC Q-01). `overrun`, for jobs that run longer than they requested (SPEC Q-05): `kill` ends them at
    their request; `extend` raises the request, and what the scheduler believes, to the runtime; `overrun` lets them run.
    `engine`: the compiled `kernel`, or the slow independent `reference`, which a `PlainPolicy` uses always.
    `progress` is called now and then with the number of jobs started so far (compiled engine only).

    Raises PolicyError for an unknown policy, order or option.

    >>> from walltime import Easy, Workload
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> simulate(jobs, Easy()).start.tolist()
    [0, 10, 2]
    """
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy must be one such as walltime.Easy(), not {policy!r}")
    if engine not in ENGINES:
        raise PolicyError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    runtime, believed = effective_times(workload, overrun)
    columns = (workload.submit, runtime, believed, workload.procs)
    after, think = workload.dependencies() if workload.feedback else (None, None)
    if engine == "reference" or isinstance(policy, PlainPolicy):
        begin = time.perf_counter()
        submit, ran, planned, procs = (column.tolist() for column in columns)
        waits_for = (None, None) if after is None or think is None else (after.tolist(), think.tolist())
        reference = Reference(submit, ran, planned, procs, workload.machine_procs, policy, coincident, *waits_for)
        reference.run()
        submitted, start, kind, promised = (
            np.array([getattr(job, name) for job in reference.jobs], dtype)
            for name, dtype in (("submit", np.int64), ("start", np.int64), ("kind", np.uint8), ("promised", np.int64))
        )
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
    else:
        from walltime.engine.run import Simulation, load_kernel

        begin = time.perf_counter()
        load_kernel()
        compiled = time.perf_counter()
        simulation = Simulation(*columns, workload.machine_procs, policy, coincident, after, think)
        simulation.run(progress)
        submitted = simulation.submit
        start, kind, promised = simulation.start, simulation.kind, simulation.promised
        seconds = {"compile": compiled - begin, "simulate": simulation.seconds}
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
    )


def effective_times(workload: Workload, overrun: str) -> tuple[Array, Array]:
    """What each job really runs and what the scheduler believes, int64 seconds, under an overrun rule (SPEC Q-05)."""
    match overrun:
        case "kill":
            return np.minimum(workload.runtime, workload.requested), workload.believed
        case "extend":
            return workload.runtime, np.maximum(workload.believed, workload.runtime)
        case "overrun":
            return workload.runtime, workload.believed
    raise PolicyError(f"unknown overrun rule {overrun!r}; known are {', '.join(OVERRUN)}")
