"""Cut out a period of a log that begins with the recorded running and waiting jobs instead of an empty machine."""

from dataclasses import replace

import numpy as np

from walltime.errors import PolicyError
from walltime.machine import Machine, place
from walltime.workload import MISSING, Array, Workload
from walltime.workload.scaling import with_submits

RUNNING = "running_since"
NO_ROOM = "no_room_at_begin"
CARRIED = "carried_over"
"""The column that marks jobs submitted before the period, which are simulated but not measured."""


def stretch(workload: Workload, machine: Machine, begin: int, end: int) -> Workload:
    """Return the jobs submitted from `begin` until `end` (s from the log's start), with those recorded as running or waiting at `begin`.

    Running jobs run from the beginning (column `running_since`), waiting ones are submitted at `begin`; both have `carried_over` 1. A log
    without waits gives neither. If the recorded running jobs do not fit on the machine together, the last ones to start are left out.
    Raises PolicyError for a period without jobs.
    """
    submit = workload.submit
    inside, span = (submit >= begin) & (submit < end), workload.origin.span(begin, end)
    if not inside.any():
        raise PolicyError(f"no job of {workload.origin.name} is submitted from {span}; use another window", "empty_window")
    recorded = workload.recorded_wait
    if recorded is None or begin <= int(submit.min()):
        return workload.take(inside, f"submitted from {span}")
    start = np.where(recorded >= 0, submit + recorded, MISSING)
    before = (submit < begin) & (start >= 0)
    running = before & (start < begin) & (start + workload.runtime > begin)
    waiting = before & (start >= begin)
    lost = running & ~_fits(workload, machine, running, start)
    running &= ~lost
    step = f"submitted from {span}, with the jobs running ({running.sum()}) and waiting ({waiting.sum()}) at its start"
    concerned, chosen = inside | running | waiting | lost, inside | running | waiting
    jobs = workload.take(concerned, step).without(
        {NO_ROOM: lost[concerned]}, {NO_ROOM: "The job ran when the window began, but its partition has no room for it."}
    )
    running, waiting = running[chosen], waiting[chosen]
    moved = np.where(running | waiting, begin, jobs.submit)
    own = dict(jobs.columns)
    own["wait"] = np.where(running, MISSING, np.where(waiting, start[chosen] - begin, own["wait"]))
    own[RUNNING] = np.where(running, np.minimum(start[chosen], begin), MISSING)
    own[CARRIED] = (running | waiting).astype(np.int64)
    return with_submits(replace(jobs, columns=own), moved).with_feedback(False)


def carried_over(workload: Workload) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs that were submitted before the period."""
    return workload.columns.get(CARRIED, np.zeros(len(workload), np.int64)) == 1


def _fits(workload: Workload, machine: Machine, running: Array, start: Array) -> Array:
    """Return a mask of the running jobs that fit together, in order of start; each takes the pools of its partition in order."""
    fits = np.zeros(len(workload), bool)
    if not running.any():
        return fits
    mine = np.flatnonzero(running)
    placed, placement = place(workload.take(mine, ""), machine)
    known = mine[np.isin(workload.job_id[mine], placed.job_id)]
    machine = placement.machine
    free = np.array([[pool.nodes * pool.procs, pool.nodes * pool.second] for pool in machine.pools], np.int64)
    for k in np.argsort(start[known], kind="stable").tolist():
        left, taken = np.array([placed.procs[k], placement.second[k]]), np.zeros_like(free)
        for name in machine.partitions[int(placement.partition[k])].pools:
            pool = machine.place_of(name)
            taken[pool] = np.minimum(left, free[pool])
            left = left - taken[pool]
        if not left.any():
            free -= taken
            fits[known[k]] = True
    return fits
