"""Times at which a job had no room on single nodes although enough was free on all nodes together, by the request that was in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from walltime.engine.problem import NodeDemands, Nodes
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler

Array = np.ndarray
WITHOUT: Mapping[str, dict[str, int]] = {
    "features": {},
    "memory": {"memory": 0, "task_memory": 0},
    "resource": {"total": 0, "each": 0, "per_task": 0},
}
"""Requests that are left out in turn; `features` are those of the set of nodes that the job may use."""


def shortages(schedule: Schedule, job: int, moments: Array, chosen: Array) -> dict[str, Array]:
    """Return at which of some times (s, ascending) a job had no room on the nodes, by cause; bool, shape (moments,).

    `reservation`, `outage`: it would have had room without reservations, or without these and outages, at the time or before its planned
    end. `features`, `memory`, `resource` (the second one): it would have had room without this request. `nodes`: the free processors were
    spread over the nodes in another way than it requests. `chosen`: the times at which to look, bool. None is found without a simulation
    of single nodes.
    """
    found = {name: np.zeros(len(moments), bool) for name in ("reservation", "outage", *WITHOUT, "nodes")}
    if schedule.simulated_on != "nodes" or schedule.slots is None or schedule.placement is None or not chosen.any():
        return found
    scheduler, machine = Scheduler.of_schedule(schedule), schedule.placement.machine
    problem = run_of(schedule.workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun, machine=machine).problem
    nodes, demands = problem.machine, problem.demands
    assert isinstance(nodes, Nodes), "it was simulated on nodes"
    assert isinstance(demands, NodeDemands), "it was simulated on nodes"
    own = {name: int(column[job]) for name, column in demands._asdict().items() if isinstance(column, np.ndarray)}
    without = {**WITHOUT, "features": {"members": int(demands.partition[job])}}
    length = max(1, int(problem.believed[job]))
    otherwise = "reservation" if nodes.reservations and nodes.reservations[own["partition"]] > 0 else "nodes"
    for k, free in _free_amounts(schedule, demands, np.stack([nodes.procs, nodes.second, nodes.memory]), job, moments):
        gone, kept = _blocked(nodes, own["partition"], int(moments[k]), length)
        if not chosen[k] or _has_room(nodes, own, np.where(gone | kept, -1, free)):
            continue
        rooms = {"reservation": _has_room(nodes, own, np.where(gone, -1, free)), "outage": _has_room(nodes, own, free)}
        rooms |= {name: _has_room(nodes, own | changed, free) for name, changed in without.items()}
        found[next((name for name, has_room in rooms.items() if has_room), otherwise)][k] = True
    return found


def _blocked(nodes: Nodes, partition: int, moment: int, length: int) -> tuple[Array, Array]:
    """Return which nodes a job of a partition that starts at a time and is planned for a length may not use, for outages and reservations.

    As in Slurm, it uses no node that a known outage, or a reservation of others, takes before its planned end. A job in a reservation uses
    the nodes that this has at the time, as long as the reservation has not ended.
    """
    gone, kept, inside = (np.zeros(len(nodes.procs), bool) for _ in range(3))
    number = nodes.reservations[partition] if nodes.reservations else 0
    bound = False
    for own, begin, end, known, reservation in nodes.outages:
        if reservation == number > 0 and end > moment:
            bound = True
            inside[own] |= begin <= moment
        elif min(known, begin) <= moment < end and begin < moment + length and not 0 < reservation == abs(number):
            (kept if reservation else gone)[own] = True
    return gone, kept | ~inside if bound else kept


def free_on_nodes(schedule: Schedule, nodes: Nodes, demands: NodeDemands, runs: Array) -> Array:
    """Return the processors, second resource and memory of each node that these jobs (bool) leave free, int64, in rows."""
    free = np.stack([nodes.procs, nodes.second, nodes.memory]).astype(np.int64)
    of, node, amounts = _amounts(schedule, demands)
    np.subtract.at(free.T, node[runs[of]], amounts[:, runs[of]].T)
    return free


def room_obstacle(nodes: Nodes, demands: NodeDemands, job: int, free: Array, during: tuple[int, int] | None = None) -> str:
    """Return the request that leaves a job no room on nodes with these free amounts, as in `shortages`; empty if there is room.

    `during`: a time, s, in which outages and reservations take nodes.
    """
    own = {name: int(column[job]) for name, column in demands._asdict().items() if isinstance(column, np.ndarray)}
    if during is not None:
        gone, kept = _blocked(nodes, own["partition"], during[0], during[1] - during[0])
        free = np.where(gone | kept, -1, free)
    if _has_room(nodes, own, free):
        return ""
    without = {**WITHOUT, "features": {"members": own["partition"]}}
    if cause := next((name for name, changed in without.items() if _has_room(nodes, own | changed, free)), ""):
        return cause
    return "resource" if _has_room(nodes, own | WITHOUT["resource"] | WITHOUT["memory"], free) else "nodes"


def _amounts(schedule: Schedule, demands: NodeDemands) -> tuple[Array, Array, Array]:
    """Return the job and the node of each share of a node, and its processors, second resource and memory, in rows."""
    assert schedule.slots is not None
    of, node, procs, second = (np.asarray(column) for column in schedule.slots)
    memory = np.where(demands.memory[of] > 0, demands.memory[of], demands.task_memory[of] * (procs // demands.task[of]))
    return of, node, np.stack([procs, second, np.where(demands.whole[of] > 0, 0, memory)])


def _free_amounts(schedule: Schedule, demands: NodeDemands, capacity: Array, job: int, moments: Array) -> Iterator[tuple[int, Array]]:
    """Yield the place of each time, and the free processors, second resource and memory of each node then, int64, in rows."""
    of, node, amounts = _amounts(schedule, demands)
    amounts = amounts * (of != job)
    free = capacity.astype(np.int64)
    times = np.concatenate([schedule.start[of], schedule.end[of]])
    where, changes = np.concatenate([node, node]), np.concatenate([-amounts, amounts], axis=1)
    order = np.argsort(times, kind="stable")
    parts = np.split(order, np.searchsorted(times[order], moments, side="right"))  # the changes up to each time
    for k, rows in enumerate(parts[: len(moments)]):
        np.add.at(free.T, where[rows], changes[:, rows].T)
        yield k, free.copy()


def _has_room(nodes: Nodes, own: Mapping[str, int], free: Array) -> bool:
    """Return whether a job with these requests fits on nodes with these free amounts."""
    members = nodes.members[own["members"]]
    procs, second, memory = free[:, members]
    size = np.where(procs == nodes.procs[members], procs, 0)
    if not own["whole"]:
        tasks = procs // own["task"]
        for amount, each in ((second, own["per_task"]), (memory, own["task_memory"])):
            tasks = np.minimum(tasks, amount // each) if each else tasks
        size = np.minimum(tasks * own["task"], own["most"])
    enough = (size >= max(1, own["least"])) & (second >= own["each"]) & (memory >= own["memory"])
    sizes = np.sort(size[enough])[::-1][: own["most_nodes"] or None]
    return bool(enough.sum() >= own["nodes"] and sizes.sum() >= own["asked"] and second[enough].sum() >= own["total"])
