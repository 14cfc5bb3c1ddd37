"""Delays of a scheduler: convert jobs and machines to the scheduler's view, and times of decisions to starts and back.

A job holds its processors from the decision that starts it until they have been cleaned up, so to the scheduler it is longer by both
overheads. Events between two ticks are seen at the next tick. The engines and the auditor work on these longer jobs that arrive on ticks,
and need no code for overheads.
"""

from copy import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from walltime.machine.placing import NEVER, Placement
from walltime.machine.tables import NO_OVERHEAD, Overhead, next_tick
from walltime.workload import Array, Workload

Time = TypeVar("Time", int, Array)


def scheduler_view(workload: Workload, placement: Placement) -> tuple[Workload, Placement]:
    """Return the jobs and their needs as the scheduler sees them: events are on ticks, and runtimes and requests include the overheads."""
    own = placement.machine.overhead
    if own == NO_OVERHEAD:
        return workload, placement
    running = placement.since < NEVER
    since = np.where(running, _decision_of_running(own, placement.since), NEVER)

    def occupied(length: Array) -> Array:
        return np.where(running, release_times(own, placement.since + length) - since, own.occupied(length))

    with np.errstate(over="ignore"):
        requested, runtime = occupied(workload.requested), occupied(workload.runtime)
        planned = requested if workload.planned is workload.requested else occupied(workload.planned)
    at_first = running & (workload.submit == placement.since)
    columns = dict(workload.columns)
    if "think_time" in columns:
        columns["think_time"] = next_tick(columns["think_time"], own.tick)
    submit = np.where(at_first, since, next_tick(workload.submit, own.tick))
    seen = copy(workload)  # a new workload would require ascending numbers for the jobs that arrive at one tick
    for name, values in (("submit", submit), ("runtime", runtime), ("requested", requested), ("planned", planned), ("columns", columns)):
        object.__setattr__(seen, name, values)
    return seen, replace(
        placement,
        since=since,
        outages=[(pool, procs, second, *_outage(own, *times)) for pool, procs, second, *times in placement.outages],
        windows=[hours.on_ticks(own.tick) for hours in placement.windows],
    )


def decision_times(start: Array, placement: Placement) -> Array:
    """Return the time (int64 s) at which the scheduler decided to start each job."""
    own = placement.machine.overhead
    return np.where(placement.since < NEVER, _decision_of_running(own, placement.since), start - own.start)


def start_times(decision: Array, placement: Placement) -> Array:
    """Return the time (int64 s) at which each job starts after the scheduler's decision."""
    return np.where(placement.since < NEVER, placement.since, decision + placement.machine.overhead.start)


def release_times(overhead: Overhead, end: Time) -> Time:
    """Return the times, s, from which the scheduler sees the processors of ended jobs as free; `end`: the ends of the jobs, s."""
    return next_tick(end + overhead.end, overhead.tick)


def _decision_of_running(overhead: Overhead, since: Array) -> Array:
    """Return the decision times of initially running jobs: not before 0, unless the job started before 0."""
    return np.maximum(since - overhead.start, np.minimum(since, 0))


def _outage(overhead: Overhead, begin: int, end: int, known: int) -> tuple[int, int, int]:
    """Return an outage with its times moved to ticks: jobs must have left at the last tick before it starts."""
    begin = begin // overhead.tick * overhead.tick
    return begin, end if end == NEVER else next_tick(end, overhead.tick), min(next_tick(known, overhead.tick), begin)
