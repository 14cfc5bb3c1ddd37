"""Run free simulations, which do not follow the recorded starts, and compare them with the record."""

from collections.abc import Iterator

import numpy as np

from walltime.engine.interface.choice import choose
from walltime.inference.inference import FreeRun
from walltime.machine import Machine
from walltime.metrics.recorded import NEAR, agreement
from walltime.metrics.weekly_interval import LogWeeks
from walltime.policy import Policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of, simulate
from walltime.simulation.specification import Scheduler
from walltime.workload import Array, Workload
from walltime.workload.scaling import held_until, shake

BY_HINDSIGHT = "with the rules and eligible times, in hindsight"


def free_runs(workload: Workload, chosen: Array, plain: Machine, machine: Machine, eligible: Array) -> Iterator[FreeRun]:
    """Yield four simulations: on the plain machine, on the machine with rules, of a shaken copy, and with inferred eligible times.

    `chosen`: the jobs (bool) to compare with the record. `eligible`: when each job seems to have become eligible, int64 s; in the last run,
    no job starts before this time.
    """
    recorded = workload.recorded_wait
    assert recorded is not None
    for name, own in (("plain EASY", plain), ("with the rules", machine)):
        schedule, place = _run(workload, own)
        yield _free_run(name, schedule, recorded[place], chosen[place])
    shaken, _ = _run(shake(workload, 30, 1), machine)
    other = _places(shaken.workload.job_id, schedule.workload.job_id)
    yield _free_run("with the rules, against a copy shaken by 30 s", schedule, shaken.wait[other], chosen[place])
    late, _ = _run(held_until(workload, eligible), machine)  # in another order
    place = _places(workload.job_id, late.workload.job_id)
    yield _free_run(BY_HINDSIGHT, late, recorded[place], chosen[place], np.maximum(eligible - workload.submit, 0)[place])


def free_waits(workload: Workload, machine: Machine) -> Array:
    """Simulate the whole log on this machine, and return the wait of each job, int64 s; -1 for jobs that do not fit the machine."""
    schedule, place = _run(workload, machine)
    waits = np.full(len(workload), -1)
    waits[place] = schedule.wait
    return waits


def engine_of(workload: Workload, policy: Policy, machine: Machine) -> str:
    """Return the engine, `kernel` or `reference`, that simulates the log under a policy on this machine."""
    return choose(run_of(workload, Scheduler(policy), machine=machine).problem)[0]


def _run(workload: Workload, machine: Machine) -> tuple[Schedule, Array]:
    """Simulate the jobs on a machine; return the schedule and the index of each of its jobs in the workload."""
    schedule = simulate(workload, machine.policy or "easy", machine=machine)
    return schedule, _places(workload.job_id, schedule.workload.job_id)


def _places(ids: Array, wanted: Array) -> Array:
    """Return the indices of the wanted job numbers in `ids`."""
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids[order], wanted)]


def _free_run(name: str, schedule: Schedule, recorded: Array, chosen: Array, held: Array | int = 0) -> FreeRun:
    weeks = LogWeeks.of(schedule.workload.submit, (schedule.submit, schedule.start))
    own = agreement("", "", recorded[chosen], (schedule.wait + held)[chosen], weeks, chosen)
    within = own.within[NEAR.index(600)]
    return FreeRun(name, own.jobs, own.mean_recorded, own.mean_simulated, own.rank_correlation, within, own.threshold, own.doubt)
