"""Prepare the input of schedulers that plan individual nodes: nodes, and the needs of jobs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from walltime.distinct import distinct_rows
from walltime.engine.machines import NodeDemands, Nodes, OarSettings
from walltime.errors import WorkloadError
from walltime.machine import Machine, Placement
from walltime.machine.constraints import satisfies
from walltime.machine.placing import NEVER, qos_values
from walltime.machine.tables import LOSSES, numbers_of
from walltime.policy import Policy
from walltime.policy.oar import STREAM
from walltime.slurm_priorities import preemption_of, with_priorities
from walltime.workload import Array, Workload
from walltime.workload.draws import whole_numbers

UNLIMITED_MEMORY = 1024**2
"""Memory per processor, MB, of a pool without a memory limit if other pools have one."""
BITS = 31
"""Bits in which the engine keeps the units of the second resource that a job has on a node, of all types."""
COLUMNS = ("requested_nodes", "nodes", "most_nodes", "exclusive", "requested_procs", "cpus_per_task", "tasks_per_node", "spread")
"""Columns that `demands_on` reads; -1 if the log lacks them."""


def runs_on_nodes(policy: Policy | None, machine: Machine | None) -> bool:
    """Return whether a policy places jobs on individual nodes of a machine."""
    if policy is None or policy.plans_nodes or machine is None:
        return policy is not None and policy.plans_nodes
    return bool(machine.by_node) or (machine.has_nodes and bool(policy.machines["nodes"].engine))


def problem_fields(placed: Workload, placement: Placement, policy: Policy, demands: NodeDemands | None = None) -> dict[str, Any]:
    """Return the fields of a problem that a policy for individual nodes needs: `machine`, `demands`, `settings` and, for Slurm, `shares`.

    `demands`: by default the result of `demands_on`.
    """
    machine, given = placement.machine, policy.settings(placement.machine.slurm)
    nodes = nodes_of(machine, placement, placed)
    demands = demands_on(nodes, placed, placement) if demands is None else demands
    if not policy.plans_nodes:
        demands = demands._replace(sole=np.zeros_like(demands.sole))  # only Slurm's scheduling supports it
        return {"machine": nodes, "demands": demands, "tick": machine.overhead.tick}
    if given is None:
        oar: Any = policy
        moments = whole_numbers(oar.seed, placed.job_id, STREAM, oar.durations.noticed, oar.durations.phase)
        settings = OarSettings(oar.security_time, oar.slots == "2016", oar.durations, *moments)
        return {"machine": nodes, "demands": demands, "settings": settings}
    demands, shares = with_priorities(placed, placement, given, demands, nodes)
    if machine.preempts or machine.loses_jobs:
        preemption, classes = preemption_of(placed, placement, given)
        nodes, demands = nodes._replace(preemption=preemption), demands._replace(preemption=classes)
    return {"machine": nodes, "demands": demands, "settings": given, "shares": shares}


def nodes_of(machine: Machine, placement: Placement, placed: Workload) -> Nodes:
    """Return the nodes of a machine, pool by pool, and the sets of nodes that these jobs may use.

    An outage affects its named nodes or, if only their number is known, the last nodes of its pool, preferably without another outage at
    the same time. Jobs in a reservation get a separate partition of a higher tier with the reserved nodes.
    """
    counts = [pool.nodes for pool in machine.pools]
    own = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    outages: list[tuple[list[int], int, int, int, int]] = []
    losses: list[int] = []
    order = sorted(range(len(placement.outages)), key=lambda k: placement.outages[k][3])
    for (pool, procs, _, begin, end, known), one in ((placement.outages[k], placement.machine.outages[k]) for k in order):
        gone = {n for nodes, _, until, *_ in outages if until > begin for n in nodes}
        candidates = sorted(own[pool].tolist(), key=lambda n: (n in gone, -n))
        candidates = own[pool][numbers_of(one.nodes, machine.pools[pool])].tolist() if isinstance(one.nodes, str) else candidates
        outages.append((candidates[: procs // machine.pools[pool].procs], begin, end, known, 0))
        losses.append(LOSSES.index(one.jobs))
    names = list(dict.fromkeys(one.name for one in machine.reservations))
    reserved: dict[int, list[int]] = {}  # the nodes of each reservation, by its number
    for k, begin, end, known in placement.reservations:
        table = machine.reservations[k]
        pool, number = machine.place_of(table.pool), names.index(table.name) + 1
        nodes = own[pool][numbers_of(table.nodes, machine.pools[pool])].tolist()
        reserved.setdefault(number, []).extend(nodes)
        outages.append((nodes, begin, end, known, number))
    sets, of, _, _ = _members(placed, placement)
    partitions = _partitions(placement)[0]
    admitted = [-number if _is_flexible(machine, number) else number for _, number in partitions]
    of_sets = [np.concatenate([own[k] for k in pools]) for pools in sets]
    for k, part in enumerate(of):
        of_sets[k] = of_sets[k][np.isin(of_sets[k], reserved[admitted[part]])] if admitted[part] > 0 else of_sets[k]
    tiers = [one.tier for one in machine.partitions]
    above = max(tiers) - min(tiers) + 1
    has_memory = any(pool.memory for pool in machine.pools)
    return Nodes(
        pool=np.repeat(np.arange(len(counts)), counts),
        procs=np.repeat([pool.procs for pool in machine.pools], counts).astype(np.int64),
        second=np.repeat([pool.second for pool in machine.pools], counts).astype(np.int64),
        memory=np.repeat([pool.memory or (pool.procs * UNLIMITED_MEMORY if has_memory else 0) for pool in machine.pools], counts),
        weight=np.repeat([pool.weight for pool in machine.pools], counts).astype(np.int64),
        partitions=of_sets[: len(partitions)],
        members=of_sets,
        partition_of_members=of,
        least_loaded=[int(machine.partitions[part].least_loaded) for part, _ in partitions],
        tiers=[tiers[part] + above * (number > 0) for part, number in partitions],
        outages=outages,
        losses=[*losses, *[0] * (len(outages) - len(losses))] if any(losses) else (),
        types=_units_by_row(machine, counts),
        limits=placement.limits,
        run_seconds=placement.run_seconds,
        node_limits=placement.node_limits,
        reservations=admitted if any(admitted) else (),
    )


def _units_by_row(machine: Machine, counts: list[int]) -> Array | None:
    """Return `Nodes.types`; None if no pool has several types. Raises WorkloadError if a node's amounts do not fit in 31 bits."""
    rows = machine.type_rows
    if not rows:
        return None
    units = np.zeros((max(rows.values()) + 1, len(counts)), np.int64)
    for k, pool in enumerate(machine.pools):
        for row, amount in {rows[name]: amount for name, amount in pool.by_type.items()}.items() or [(0, pool.second)]:
            units[row, k] = amount
    if len(units) * int(units.max()).bit_length() > BITS:
        raise WorkloadError(
            f"a node has {len(units)} types of GPUs, and up to {units.max()} of one; with {len(units)} types, a node can have "
            f"{(1 << BITS // len(units)) - 1:,} of each: combine types in gpu_types",
            "too_many_types",
        )
    return np.repeat(units, counts, axis=1)


def _second_rows(placed: Workload, machine: Machine) -> Array:
    """Return the row of `Nodes.types` whose units each job uses, int64: by the requested type, or else by the type that the log records.

    Returns -1 for a job without a known type.
    """
    rows, found = machine.type_rows, np.full(len(placed), -1)
    for column in ("gpu_type", "requested_gpu_type") if rows else ():
        numbers = placed.columns.get(column, found)
        for number in np.unique(numbers[numbers > 0]).tolist():
            types = [one.partition(":")[0] for one in placed.origin.name_of(column, number).split("+")]
            known = [rows[name] for name in types if name in rows]
            found[numbers == number] = known[0] if known else -1
    return found


class PoolNeeds(NamedTuple):
    """The resources that jobs request: the second resource, memory (MB) and processors, in this order.

    `amounts`: shape (jobs, 3). `sets`: the sets of pools that jobs may use, bool, shape (sets, pools); `members`: the set of each job.
    `sizes`: the resources of each pool, float64, shape (pools, 3).
    """

    amounts: Array
    members: Array
    sets: Array
    sizes: Array

    def shares(self, resource: int) -> Array:
        """Return how a job's use of a resource is divided among the pools of each set, by their sizes, shape (sets, pools)."""
        own = self.sets * self.sizes[:, resource]
        return np.asarray(own / np.maximum(own.sum(axis=1, keepdims=True), 1e-9))


def pool_needs(placed: Workload, placement: Placement) -> PoolNeeds:
    """Return the needs of placed jobs in the pools that they may use."""
    pools, nodes = placement.machine.pools, nodes_of(placement.machine, placement, placed)
    needs = demands_on(nodes, placed, placement)
    memory = np.where(needs.memory > 0, needs.memory * needs.nodes, needs.task_memory * (placed.procs // np.maximum(needs.task, 1)))
    sets = np.array([np.bincount(nodes.pool[own], minlength=len(pools)) > 0 for own in nodes.members])
    sizes = np.array([[pool.nodes * pool.second, pool.nodes * pool.memory, pool.nodes * pool.procs] for pool in pools], float)
    return PoolNeeds(np.stack([placement.second, memory, placed.procs], axis=1), needs.members, sets, sizes)


def _partitions(placement: Placement) -> tuple[list[tuple[int, int]], Array]:
    """Return the pairs of partition and reservation (0 for none) that jobs use, and the index of each job's pair."""
    partitions = [(k, 0) for k in range(len(placement.machine.partitions))]
    number = placement.partition.astype(np.int64)
    inside = np.flatnonzero(placement.reservation)
    if len(inside):
        kinds, of = distinct_rows([placement.partition[inside], placement.reservation[inside]])
        number[inside] = len(partitions) + of
        partitions += [(part, of_part) for part, of_part in kinds.tolist()]
    return partitions, number


def _is_flexible(machine: Machine, number: int) -> bool:
    """Return whether jobs in a reservation may also use other nodes and times."""
    names = list(dict.fromkeys(one.name for one in machine.reservations))
    return any("FLEX" in one.flags for one in machine.reservations if number and one.name == names[number - 1])


def _members(placed: Workload, placement: Placement) -> tuple[list[tuple[int, ...]], list[int], Array, Array]:
    """Return the sets of pools that jobs may use, their partitions, each job's set, and which jobs request something that no pool has.

    The first sets are the partitions. Jobs that request features or a type of GPUs may use only the pools that have them; if none has, all.
    """
    machine, (partitions, partition) = placement.machine, _partitions(placement)
    names = list(dict.fromkeys(one.name for one in machine.reservations))
    sets = [
        tuple(
            machine.place_of(name) for name in machine.partitions[part].pools if not number or _has_nodes(machine, names[number - 1], name)
        )
        for part, number in partitions
    ]
    of, number, unknown = list(range(len(sets))), partition.copy(), np.zeros(len(placed), bool)
    places: dict[tuple[int, tuple[int, ...]], int] = {}
    typed, featured = (any(values) for values in zip(*((pool.by_type, pool.features) for pool in machine.pools), strict=True))
    none = np.full(len(placed), -1)
    requests = [
        placed.columns.get(name, none) if used else none for name, used in (("constraints", featured), ("requested_gpu_type", typed))
    ]
    rows = np.flatnonzero(((requests[0] > 0) | (requests[1] > 0)) & (placement.since == NEVER))
    if not len(rows):
        return sets, of, number, unknown
    kinds, of_row = distinct_rows([column[rows] for column in (partition, *requests)])
    for k, (part, constraint, gpu_type) in enumerate(kinds.tolist()):
        mine = rows[of_row == k]
        words = placed.origin.name_of("constraints", constraint) if constraint > 0 else ""
        kind = placed.origin.name_of("requested_gpu_type", gpu_type) if gpu_type > 0 else ""
        wanted = "" if "+" in kind else kind
        pools = [machine.pools[p] for p in sets[part]]
        fit = [satisfies(pool.features, words) and wanted in ("", *pool.by_type) for pool in pools]
        allowed = tuple(p for p, fits in zip(sets[part], fit, strict=True) if fits)
        unknown[mine] = not allowed
        if allowed and allowed != sets[part]:
            number[mine] = places.setdefault((part, allowed), len(sets))
            sets += [allowed] * (len(places) > len(sets) - len(partitions))
            of += [part] * (len(sets) - len(of))
    return sets, of, number, unknown


def _has_nodes(machine: Machine, name: str, pool: str) -> bool:
    """Return whether jobs in the reservation with this name may use nodes of a pool."""
    return any(one.pool == pool or "FLEX" in one.flags for one in machine.reservations if one.name == name)


def unknown_features(placed: Workload, placement: Placement) -> Array:
    """Return a mask (bool) of the jobs that request features or a type of GPUs that no node of their partition has."""
    return _members(placed, placement)[-1]


def unknown_gpu_type(placed: Workload, placement: Placement) -> Array:
    """Return a mask (bool) of the jobs with GPUs of an unknown type, if some nodes have several types."""
    return (_second_rows(placed, placement.machine) < 0) & (placement.second > 0) & bool(placement.machine.type_rows)


def demands_on(nodes: Nodes, placed: Workload, placement: Placement) -> NodeDemands:
    """Return the needs of jobs on the nodes that they may use.

    Reads the columns `requested_nodes`, or else `nodes` (minimum number), and `most_nodes`, `exclusive` (1 for whole nodes, 2 for nodes of
    the user alone), `spread` (1 for nodes in order of weight), `cpus_per_task` and `tasks_per_node`. Also `time_min` (s), `user`, `held` (s
    between submission and eligibility), and of the second resource `_per_node`, `_per_cpu` and `_per_task`, after its name. Jobs that run
    at first may have any nodes of their partition. Associations and priorities are added by `with_priorities`.
    """
    count, second, to_come = len(placed), placement.second, placement.since == NEVER
    unknown = np.full(count, -1)
    column = {name: placed.columns.get(name, unknown) for name in COLUMNS}
    column |= {name: np.where(to_come, column[name], -1) for name in ("most_nodes", "cpus_per_task", "tasks_per_node")}
    if placement.node_limits:
        column["most_nodes"] = np.where(to_come, _most_by_limits(placed, placement, column["most_nodes"]), -1)
    _, _, members, _ = _members(placed, placement)

    def of_nodes(amounts: Array, reduce: Callable[[Array], int]) -> Array:
        """Return a statistic over the nodes that each job may use, such as the largest number of processors."""
        return np.array([reduce(amounts[own]) for own in nodes.members])[members]

    sizes, procs_each, smallest = (of_nodes(nodes.procs, reduce) for reduce in (len, np.max, np.min))
    second_row, rows = np.maximum(_second_rows(placed, placement.machine), 0), nodes.rows_of_second
    second_each, least_second = (
        np.stack([of_nodes(row, reduce) for row in rows])[second_row, np.arange(count)] for reduce in (np.max, np.min)
    )
    whole = np.array([one.exclusive for one in placement.machine.partitions])[placement.partition] | (column["exclusive"] == 1)
    mixed = whole & (smallest < procs_each)
    procs = np.where(mixed & (column["requested_procs"] > 0), np.minimum(column["requested_procs"], placed.procs), placed.procs)
    task = np.where((column["cpus_per_task"] > 1) & ~whole, column["cpus_per_task"], 1)
    task = np.where((procs % task == 0) & (task <= procs_each), task, 1)
    asked_nodes = np.where(column["requested_nodes"] > 0, column["requested_nodes"], column["nodes"])
    per_node, per_task = _amounts_each(placed, placement.machine, placement.machine.second, second, task, asked_nodes, second_each)
    per_node, per_task = (np.where((each <= second_each) & ~whole & (second > 0) & to_come, each, 0) for each in (per_node, per_task))
    in_total = (per_node == 0) & (per_task == 0) & (second > 0)
    requested = np.minimum(asked_nodes, sizes)
    fewest = np.clip(np.where(in_total, np.minimum(requested, second), requested), 1, procs // task)
    least = np.where((column["tasks_per_node"] > 0) & ~whole, column["tasks_per_node"] * task, 0)
    least = np.where((least <= procs_each) & (least * fewest == procs), least, 0)
    most = np.where(least > 0, least, procs_each)
    least = np.where((column["most_nodes"] == 1) & (procs <= procs_each) & ~whole, procs, least)
    for_second = -(-second // np.maximum(second_each, 1))
    wide = np.maximum(np.maximum(requested, -(-procs // np.where(mixed, np.maximum(procs, 1), procs_each))), for_second)
    needed = np.where(whole, np.maximum(wide, 1), fewest)
    each = np.where(in_total, np.where(whole, -(-second // needed), 1), per_node)
    _, user = np.unique(placed.columns.get("user", np.zeros(count, np.int64)), return_inverse=True)
    sole = (column["exclusive"] == 2) & to_come
    numbers = {
        "nodes": needed,
        "whole": whole,
        "spread": column["spread"] == 1,
        "sole": sole,
        "each": each,
        "time_min": np.maximum(placed.columns.get("time_min", np.zeros(count)), 0),
        "preemption": np.zeros(count),
    }
    numbers |= {"user": user, "place": _places(placed, placement), "second": second, "members": members}
    numbers |= {"association": np.zeros(count), "charge": np.zeros(count)}
    numbers |= {"unreserved": qos_values(placed, placement.machine, lambda one: one.no_reserve, 0)}
    numbers |= {"asked": np.where(whole & ~mixed, needed * procs_each, procs), "task": task, "least": least, "most": most}
    numbers |= _memory(placed, placement, task, asked_nodes, whole, of_nodes(nodes.memory, np.max))
    tasks = smallest // task  # on an empty node
    for amount, of_task in ((least_second, per_task), (of_nodes(nodes.memory, np.min), numbers["task_memory"])):
        tasks = np.where(of_task > 0, np.minimum(tasks, amount // np.maximum(of_task, 1)), tasks)
    fewer = (column["most_nodes"] > 0) & ~whole & (least == 0) & (procs > 1) & (smallest > 1)
    most_nodes = np.where(fewer, np.maximum(column["most_nodes"], needed), 0)
    numbers |= {"most_nodes": np.where(most_nodes * tasks * task >= procs, most_nodes, 0)}
    numbers |= {"total": np.where(in_total, second, 0), "per_task": per_task, "second_row": second_row}
    return NodeDemands(
        **{name: np.asarray(values).astype(np.int64) for name, values in numbers.items()},
        partition=_partitions(placement)[1],
        since=placement.since,
        merit=np.zeros(count),
        after=placement.after,
        limits=placement.limits_of,
    )


def _most_by_limits(placed: Workload, placement: Placement, most_nodes: Array) -> Array:
    """Return how many nodes each job may have under its limits on nodes, and by its request; no number above 0 for any. int64."""
    most, limits = np.where(most_nodes > 0, most_nodes, NEVER), placement.limits_of
    np.minimum.at(most, limits.places, np.array(placement.node_limits, np.int64)[limits.items])
    return np.where(most < placed.procs, most, most_nodes)


def _amounts_each(
    placed: Workload, machine: Machine, name: str, total: Array, task: Array, nodes: Array, largest: Array
) -> tuple[Array, Array]:
    """Return how much of a resource jobs need on each node and for each task, int64; both are 0 if any nodes may provide it.

    Without such columns, memory is per processor if it is Slurm's DefMemPerCPU for each, or if it is on no node (`largest`). Else it
    is of each node, like GPUs, where the number of nodes is known and divides it.
    """
    unknown = np.full(len(placed), -1)
    node, cpu, by_task = (placed.columns.get(f"{name}_per_{unit}", unknown).astype(np.int64) for unit in ("node", "cpu", "task"))
    default = machine.slurm.get("DefMemPerCPU", "") if name == "mem_mb" else ""
    is_default = (node < 0) & (total == int(default) * placed.procs) if default.isdecimal() else np.zeros(len(placed), bool)
    per_task = np.where(by_task > 0, by_task, np.where(cpu > 0, cpu * task, np.where(is_default, total // placed.procs * task, 0)))
    wide = (node < 0) & (nodes > 0) & (-(-total // np.maximum(nodes, 1)) > largest) if name == "mem_mb" else np.zeros(len(placed), bool)
    per_task = np.where((per_task == 0) & wide, -(-total // placed.procs) * task, per_task)
    divides = (node < 0) & (nodes > 0) & (total % np.maximum(nodes, 1) == 0)
    per_node = np.where(node > 0, node, np.where(divides, total // np.maximum(nodes, 1), 0))
    return np.where(per_task > 0, 0, per_node), per_task


def _memory(placed: Workload, placement: Placement, task: Array, nodes: Array, whole: Array, largest: Array) -> dict[str, Array]:
    """Return the memory that jobs need on each node and for each task, MB, if it is not the second resource."""
    total = np.maximum(placed.columns.get("mem_mb", np.zeros(len(placed))), 0).astype(np.int64)
    to_come = placement.since == NEVER
    if not any(pool.memory for pool in placement.machine.pools):
        return dict.fromkeys(("memory", "task_memory"), np.zeros(len(placed), np.int64))
    per_node, per_task = _amounts_each(placed, placement.machine, "mem_mb", total, task, nodes, largest)
    spread = (per_node == 0) & (per_task == 0)
    per_task = np.where(spread, -(-total // placed.procs) * task, per_task)
    return {"memory": np.where(to_come, per_node, 0), "task_memory": np.where(whole | ~to_come, 0, per_task)}


def _places(placed: Workload, placement: Placement) -> Array:
    """Return each job's rank in the order of submissions, int64; all are -1 if jobs queue in order of arrival.

    A job that becomes eligible late, by a hold or a dependency, keeps the place in the queue that it got at its submission. With feedback,
    ends submit jobs.
    """
    held = np.maximum(placed.columns.get("held", np.zeros(len(placed), np.int64)), 0)
    if placed.feedback or not (held.any() or placement.after.items.size):
        return np.full(len(placed), -1)
    places = np.empty(len(placed), np.int64)
    places[np.argsort(placed.submit - held, kind="stable")] = np.arange(len(placed))
    return places
