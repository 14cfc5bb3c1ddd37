"""The auditor's rules for schedules that record the jobs' nodes; independent of the engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from walltime.auditor.walk import Difference, MachineSchedule
from walltime.machine.placing import NEVER

Array = np.ndarray
Slots = Sequence[Array]


def broken_on_nodes(schedule: MachineSchedule, slots: Slots) -> Iterator[Difference]:
    """Yield the violations of rules on nodes, which are numbered pool by pool."""
    placement, start, end, machine = schedule.placement, schedule.start, schedule.end, schedule.placement.machine
    job, node, procs, second = slots
    pool = np.repeat(np.arange(len(machine.pools)), [one.nodes for one in machine.pools])
    yield from _needs(schedule, slots)
    partitions = [np.isin(pool, [machine.place_of(name) for name in one.pools]) for one in machine.partitions]
    inside = np.array(partitions)[placement.partition[job], node]
    for k in np.flatnonzero(~inside).tolist():
        yield schedule.broken("node_capacity", job[k], f"has node {node[k]}, which is not in its partition")
    for amounts, each in ((procs, "procs"), (second, "second")):
        capacity = np.array([getattr(one, each) for one in machine.pools])[pool]
        for k, used in _overused(start[job], end[job], node, amounts, capacity):
            if placement.since[job[k]] == NEVER:
                what = f"starts, and then {used} of {capacity[node[k]]} of node {node[k]} is in use"
                yield schedule.broken("node_capacity", job[k], what)
    yield from _outages(schedule, slots, pool)


def _needs(schedule: MachineSchedule, slots: Slots) -> Iterator[Difference]:
    """Check that each job has the processors and the second resource that it needs."""
    workload, placement = schedule.workload, schedule.placement
    has = np.zeros((len(workload), 2), np.int64)
    np.add.at(has, slots[0], np.stack(slots[2:], axis=1))
    needed = np.stack([workload.procs, placement.second], axis=1)
    for k in np.flatnonzero((has != needed).any(axis=1)).tolist():
        what = f"has {has[k, 0]} processors and {has[k, 1]} of the second resource; it needs {needed[k].tolist()}"
        yield schedule.broken("node_capacity", k, what)


def _overused(start: Array, end: Array, node: Array, amounts: Array, capacity: Array) -> Iterator[tuple[int, int]]:
    """Yield the slots at whose start more of a node is in use than it has, and the amount in use."""
    ran = np.flatnonzero((end > start) & (amounts > 0))
    at = np.concatenate([start[ran], end[ran]])
    change = np.concatenate([amounts[ran], -amounts[ran]])
    slot = np.concatenate([ran, ran])
    order = np.lexsort((change, at, node[slot]))  # ends come before starts
    used = np.cumsum(change[order])
    for k in np.flatnonzero((used > capacity[node[slot[order]]]) & (change[order] > 0)).tolist():
        yield int(slot[order[k]]), int(used[k])


def _outages(schedule: MachineSchedule, slots: Slots, pool: Array) -> Iterator[Difference]:
    """Check that between two changes of a pool's outages, jobs start on no more different nodes than are left."""
    placement, start, (job, node) = schedule.placement, schedule.start, slots[:2]
    for p, one in enumerate(placement.machine.pools):
        mine = [(procs // one.procs, begin, until) for at, procs, _, begin, until, _ in placement.outages if at == p]
        moments = sorted({time for _, begin, until in mine for time in (begin, until)})
        for begin, until in pairwise(moments):
            left = one.nodes - sum(nodes for nodes, b, e in mine if b <= begin < e)
            begun = (start[job] >= begin) & (start[job] < until) & (placement.since[job] == NEVER) & (pool[node] == p)
            if len(np.unique(node[begun])) > max(left, 0):
                last = int(np.flatnonzero(begun)[np.argmax(start[job[begun]])])
                what = f"starts in an outage that leaves {max(left, 0)} nodes of the pool {one.name}"
                yield schedule.broken("node_capacity", job[last], what)
