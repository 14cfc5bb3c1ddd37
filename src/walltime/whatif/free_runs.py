"""Simulations that run freely, beside what a log records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walltime import metrics
from walltime.machine import Machine
from walltime.simulation.run import simulate
from walltime.whatif.inference import FreeRun
from walltime.workload import Workload
from walltime.workload.scaling import shake

__all__ = ["free_runs"]

Array = np.ndarray


def free_runs(workload: Workload, chosen: Array, plain: Machine, machine: Machine) -> Iterator[FreeRun]:
    """The plain machine, the one with its rules, and the latter against itself with submissions shaken by 30 s.

    `chosen`: the jobs, bool, over which they are compared with the recorded waits.
    """
    recorded = workload.recorded_wait
    assert recorded is not None
    for name, own in (("plain EASY", plain), ("with the rules", machine)):
        schedule = simulate(workload, own.policy or "easy", machine=own)
        place = _places(workload.job_id, schedule.workload.job_id)
        yield _free_run(name, recorded[place], schedule.wait, chosen[place])
    shaken = simulate(shake(workload, 30, 1), machine.policy or "easy", machine=machine)
    other = _places(shaken.workload.job_id, schedule.workload.job_id)
    yield _free_run("with the rules, against itself shaken by 30 s", shaken.wait[other], schedule.wait, chosen[place])


def _places(ids: Array, wanted: Array) -> Array:
    """Where these job numbers are."""
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids[order], wanted)]


def _free_run(name: str, recorded: Array, simulated: Array, chosen: Array) -> FreeRun:
    one, other = recorded[chosen], simulated[chosen]
    waits = metrics.recorded_waits(one, other)
    within = float(np.mean(np.abs(other - one) <= 600))
    return FreeRun(name, len(one), float(one.mean()), float(other.mean()), waits.rank_correlation, within)
