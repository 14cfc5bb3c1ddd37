"""Find times at which no choice of nodes fitted a job although all nodes together had enough free resources, and the reason."""

from collections.abc import Iterator, Mapping

import numpy as np

from walltime.engine.machines import NodeDemands, Nodes, row_of_amounts
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler

Array = np.ndarray
WITHOUT: Mapping[str, dict[str, int]] = {
    "features": {},
    "memory": {"memory": 0, "task_memory": 0},
    "resource": {"total": 0, "each": 0, "per_task": 0},
}
"""Requests that are omitted one at a time, to find the one that does not fit; `features` restrict the nodes that the job may use."""


def shortages(schedule: Schedule, job: int, moments: Array, chosen: Array) -> dict[str, Array]:
    """Return, for each cause, a mask (bool, shape (moments,)) of the times (s, ascending) at which a job did not fit on the nodes.

    `reservation`, `outage`: it would have fitted without reservations, or without reservations and outages, between this time and its
    planned end. `features`, `memory`, `resource` (the second resource): it would have fitted without this request. `nodes`: the free
    processors were not distributed over the nodes as it requests. `chosen`: the times to examine, bool. Without a simulation of single
    nodes, all masks are False.
    """
    found = {name: np.zeros(len(moments), bool) for name in ("reservation", "outage", *WITHOUT, "nodes")}
    if schedule.simulated_on != "nodes" or schedule.slots is None or schedule.placement is None or not chosen.any():
        return found
    scheduler, machine = Scheduler.of_schedule(schedule), schedule.placement.machine
    problem = run_of(schedule.workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun, machine=machine).problem
    nodes, demands = problem.machine, problem.demands
    assert isinstance(nodes, Nodes), "it was simulated on nodes"
    assert isinstance(demands, NodeDemands), "it was simulated on nodes"
    own, without = _requests(demands, job)
    length = max(1, int(problem.planned[job]))
    otherwise = "reservation" if nodes.reservations and nodes.reservations[own["partition"]] > 0 else "nodes"
    for k, free in _free_amounts(schedule, demands, nodes, job, moments):
        gone, kept = _blocked(nodes, own["partition"], int(moments[k]), length)
        if not chosen[k] or _has_room(nodes, own, np.where(gone | kept, -1, free)):
            continue
        rooms = {"reservation": _has_room(nodes, own, np.where(gone, -1, free)), "outage": _has_room(nodes, own, free)}
        rooms |= {name: _has_room(nodes, own | changed, free) for name, changed in without.items()}
        found[next((name for name, has_room in rooms.items() if has_room), otherwise)][k] = True
    return found


def _blocked(nodes: Nodes, partition: int, moment: int, length: int) -> tuple[Array, Array]:
    """Return two masks of the nodes that a job may not use, because of outages and because of reservations.

    The job starts at `moment` in a partition and is planned for `length`, s. As in Slurm, it uses no node that is in a known outage or in a
    reservation for other jobs before its planned end. A job in a reservation uses the reserved nodes until the reservation ends.
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
    """Return the free amounts of each node, as in `Nodes.amounts`, while these jobs (bool) run; int64."""
    free = nodes.amounts.astype(np.int64)
    of, node, amounts = _amounts(schedule, nodes, demands)
    np.subtract.at(free.T, node[runs[of]], amounts[:, runs[of]].T)
    return free


def room_obstacle(nodes: Nodes, demands: NodeDemands, job: int, free: Array, during: tuple[int, int] | None = None) -> str:
    """Return the request that keeps a job from fitting on nodes with these free amounts, as in `shortages`; empty if it fits.

    `during`: a period (begin, end), s; nodes with outages or reservations in it are not used.
    """
    own, without = _requests(demands, job)
    if during is not None:
        gone, kept = _blocked(nodes, own["partition"], during[0], during[1] - during[0])
        free = np.where(gone | kept, -1, free)
    if _has_room(nodes, own, free):
        return ""
    if cause := next((name for name, changed in without.items() if _has_room(nodes, own | changed, free)), ""):
        return cause
    return "resource" if _has_room(nodes, own | WITHOUT["resource"] | WITHOUT["memory"], free) else "nodes"


def _requests(demands: NodeDemands, job: int) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return a job's requests, and the values that replace them if the request for each of `WITHOUT` is omitted."""
    own = {name: int(column[job]) for name, column in demands._asdict().items() if isinstance(column, np.ndarray)}
    return own, {**WITHOUT, "features": {"members": own["partition"]}}


def _amounts(schedule: Schedule, nodes: Nodes, demands: NodeDemands) -> tuple[Array, Array, Array]:
    """Return the job and the node of each allocation on a node, and its amounts in the rows of `Nodes.amounts`."""
    assert schedule.slots is not None
    of, node, procs, second = (np.asarray(column) for column in schedule.slots)
    memory = np.where(demands.memory[of] > 0, demands.memory[of], demands.task_memory[of] * (procs // demands.task[of]))
    return of, node, nodes.allocated(demands.second_row[of], procs, second, np.where(demands.whole[of] > 0, 0, memory))


def _free_amounts(schedule: Schedule, demands: NodeDemands, nodes: Nodes, job: int, moments: Array) -> Iterator[tuple[int, Array]]:
    """Yield the index of each time, and the free amounts of each node then, as in `Nodes.amounts`, int64."""
    of, node, amounts = _amounts(schedule, nodes, demands)
    amounts = amounts * (of != job)
    free = nodes.amounts.astype(np.int64)
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
    procs, second, memory = free[0, members], free[row_of_amounts(own["second_row"]), members], free[2, members]
    size = np.where(procs == nodes.procs[members], procs, 0)
    if not own["whole"]:
        tasks = procs // own["task"]
        for amount, each in ((second, own["per_task"]), (memory, own["task_memory"])):
            tasks = np.minimum(tasks, amount // each) if each else tasks
        size = np.minimum(tasks * own["task"], own["most"])
    enough = (size >= max(1, own["least"])) & (second >= own["each"]) & (memory >= own["memory"])
    sizes = np.sort(size[enough])[::-1][: own["most_nodes"] or None]
    return bool(enough.sum() >= own["nodes"] and sizes.sum() >= own["asked"] and second[enough].sum() >= own["total"])
