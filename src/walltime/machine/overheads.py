"""Time that a scheduler takes: the jobs and the machine as it sees them, and the times of its decisions.

A job holds its processors from the decision that starts it until they have been cleaned up, so to the scheduler it is longer by both
overheads. What happens between two ticks it sees at the next one. So every engine, and the auditor, work on jobs that are longer and come
on ticks, and nothing in them knows of overheads.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TypeVar

import numpy as np

from walltime.machine.machine import NO_OVERHEAD, Overhead
from walltime.machine.placing import NEVER, Placement
from walltime.workload import Workload

Array = np.ndarray
Time = TypeVar("Time", int, Array)


def scheduler_view(workload: Workload, placement: Placement) -> tuple[Workload, Placement]:
    """Jobs and what they need as the scheduler sees them: on ticks, and with its overheads in their runtimes and requests."""
    own = placement.machine.overhead
    if own == NO_OVERHEAD:
        return workload, placement
    running = placement.since < NEVER
    since = np.where(running, _decision_of_running(own, placement.since), NEVER)

    def occupied(length: Array) -> Array:
        return np.where(running, freed(own, placement.since + length) - since, own.occupied(length))

    with np.errstate(over="ignore"):
        requested, runtime = occupied(workload.requested), occupied(workload.runtime)
        believed = requested if workload.believed is workload.requested else occupied(workload.believed)
    at_first = running & (workload.submit == placement.since)
    columns = dict(workload.columns)
    if "think_time" in columns:
        columns["think_time"] = _up(own, columns["think_time"])
    submit = np.where(at_first, since, _up(own, workload.submit))
    seen = copy(workload)  # a new workload would ask for ascending numbers of the jobs that come at one tick, which need not be
    for name, values in (("submit", submit), ("runtime", runtime), ("requested", requested), ("believed", believed), ("columns", columns)):
        object.__setattr__(seen, name, values)
    return seen, replace(
        placement,
        since=since,
        outages=[(pool, procs, second, *_outage(own, *times)) for pool, procs, second, *times in placement.outages],
        windows=[hours.on_ticks(own.tick) for hours in placement.windows],
    )


def decided(start: Array, placement: Placement) -> Array:
    """When each job was decided to start, by its start (int64 s)."""
    own = placement.machine.overhead
    return np.where(placement.since < NEVER, _decision_of_running(own, placement.since), start - own.start)


def started(decision: Array, placement: Placement) -> Array:
    """When each job started, by the decision (int64 s)."""
    return np.where(placement.since < NEVER, placement.since, decision + placement.machine.overhead.start)


def freed(overhead: Overhead, end: Time) -> Time:
    """When the scheduler sees that a job's processors are free, by its end, s."""
    return _up(overhead, end + overhead.end)


def _decision_of_running(overhead: Overhead, since: Array) -> Array:
    """When jobs that run at first were decided to start; not before the log begins, unless they started before."""
    return np.maximum(since - overhead.start, np.minimum(since, 0))


def _up(overhead: Overhead, time: Time) -> Time:
    """The tick at which something is seen."""
    return -(-time // overhead.tick) * overhead.tick


def _outage(overhead: Overhead, begin: int, end: int, known: int) -> tuple[int, int, int]:
    """An outage: jobs must be gone at the tick before it begins."""
    begin = begin // overhead.tick * overhead.tick
    return begin, end if end == NEVER else _up(overhead, end), min(_up(overhead, known), begin)
