"""Prepare the input of Slurm's priorities and preemption: associations, shares of accounts, and classes of jobs."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from walltime.engine.machines import CHARGE, NodeDemands, Nodes, Preemption, Shares
from walltime.errors import WorkloadError
from walltime.machine import Machine, Placement
from walltime.machine.counted_limits import resource_amounts
from walltime.machine.placing import qos_factors, qos_values
from walltime.machine.tables import Pool, Share
from walltime.policy.slurm import RESOURCES, SlurmSettings, weights_of
from walltime.workload import MISSING, Array, Workload

LEAST_BASIC = 2**31
"""Priorities above this value come from priority/basic, which begins at 2**32 - 2**16; other plugins usually set lower ones."""
MOST_RANK = 0xFFFF
"""The highest priority or tier that Slurm distinguishes among jobs to be preempted."""


def with_priorities(
    placed: Workload, placement: Placement, settings: SlurmSettings, demands: NodeDemands, nodes: Nodes
) -> tuple[NodeDemands, Shares]:
    """Return the demands with each job's association, charge and the constant part of its priority; and the tree of shares."""
    if settings["priority_type"] == "basic":
        demands = demands._replace(place=_basic_places(placed, demands.place))
    if not settings.multifactor:
        return demands, Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
    machine = placement.machine
    association, shares, priorities, _ = tree_of_shares(placed, machine)
    charge = np.rint(CHARGE * placed.procs * qos_values(placed, machine, lambda one: one.usage_factor, 1.0))
    size = job_size(demands.nodes, placed.procs, placed.planned, len(nodes.procs), int(nodes.procs.sum()), settings)
    most = max([1, *(one.job_factor for one in machine.partitions)])
    partition = np.array([one.job_factor / most for one in machine.partitions])[placement.partition]
    merit = settings["priority_weight_job_size"] * size + settings["priority_weight_partition"] * partition
    merit = merit + settings["priority_weight_qos"] * qos_factors(placed, machine)
    merit = merit + settings["priority_weight_assoc"] * priorities[association] / max(1, priorities.max())
    merit = merit + _resource_shares(placed, placement, demands, weights_of(settings["priority_weight_tres"]))
    for name, sign in (("nice", -1), ("site_factor", 1)):
        own = placed.columns.get(name, np.zeros(len(placed), np.int64))
        merit = merit + sign * np.where(own == MISSING, 0, own)
    return demands._replace(association=association, charge=charge.astype(np.int64), merit=merit.astype(np.float64)), shares


def _basic_places(placed: Workload, places: Array) -> Array:
    """Return each job's rank under priority/basic: from the log's priorities if this plugin set them, otherwise `places`.

    When a job is submitted or its hold is released, the plugin sets its priority to one less than the lowest so far, minus its nice value.
    """
    priority = placed.columns.get("priority", places)
    if placed.feedback or not (priority > LEAST_BASIC).all():
        return places
    order = np.lexsort((np.where(places < 0, np.arange(len(placed)), places), -priority))
    found = np.empty(len(placed), np.int64)
    found[order] = np.arange(len(placed))
    return found


def _resource_shares(placed: Workload, placement: Placement, demands: NodeDemands, weights: Mapping[str, float]) -> Array:
    """Return, for each job, the sum over resources of weight times the job's share of its partition, float64 (PriorityWeightTRES).

    A type of GPUs counts for the jobs that requested it, and the nodes that have it.
    """
    machine, total = placement.machine, np.zeros(len(placed))
    of_nodes: dict[str, Callable[[Pool], int]] = {
        "cpu": lambda one: one.procs,
        "node": lambda _: 1,
        "mem": lambda one: one.second if machine.second == "mem_mb" else one.memory,
        "gres/gpu": lambda one: one.second if machine.second == "gpus" else 0,
    }
    for name, weight in weights.items():
        if not RESOURCES.fullmatch(name):
            continue
        gpu_type = name.removeprefix("gres/gpu:")
        own, of_node = resource_amounts(placed, placement, name, demands.nodes), of_nodes[name.partition(":")[0]]
        units = [
            one.nodes * (of_node(one) if gpu_type == name else sum(n for kind, n in one.by_type.items() if kind.lower() == gpu_type))
            for one in machine.pools
        ]
        has = [sum(units[machine.place_of(pool)] for pool in part.pools) for part in machine.partitions]
        total += weight * own / np.maximum(np.array(has)[placement.partition], 1) * (np.array(has)[placement.partition] > 0)
    return total


def job_size(nodes: Array, procs: Array, limit: Array, all_nodes: int, all_procs: int, settings: SlurmSettings) -> Array:
    """Return the job size factor, float64 from 0 to 1: the mean of the shares of nodes and processors (Slurm's priority guide)."""
    if settings.flag("SMALL_RELATIVE_TO_TIME"):
        size = procs / np.maximum(limit // 60, 1) / all_procs
    else:
        size = 0.5 * (nodes / all_nodes + procs / all_procs)
    return 1 - size if settings["priority_favor_small"] else size


def preemption_of(placed: Workload, placement: Placement, settings: SlurmSettings) -> tuple[Preemption, Array]:
    """Return the rules of preemption between classes of jobs, and each job's class: its QOS if these preempt, otherwise its partition."""
    machine, exempt = placement.machine, settings["preempt_exempt_time"]
    if any(one.preempts for one in machine.qos):
        rows = [(one.priority, one.preempt, one.grace, exempt if one.exempt is None else one.exempt) for one in machine.qos]
        rows.append((0, "off", 0, 0))  # jobs with another quality of service, or none
        may = [[other.name in one.preempts and other.preempt != "off" for other in machine.qos] + [False] for one in machine.qos]
        may.append([False] * len(rows))
        number = {one.name: k for k, one in enumerate(machine.qos)}
        names = [placed.origin.name_of("queue", value) for value in placed.columns.get("queue", np.full(len(placed), MISSING)).tolist()]
        classes = np.array([number.get(name, len(number)) for name in names], np.int64)
    else:
        rows = [(one.tier, one.preempt, one.grace, exempt) for one in machine.partitions]
        may = [[one.tier > other.tier and other.preempt != "off" for other in machine.partitions] for one in machine.partitions]
        classes = placement.partition.astype(np.int64)
    rank, modes, *times = zip(*rows, strict=True)
    requeue = [mode == "requeue" for mode in modes]
    columns = (np.array(values, np.int64) for values in (may, np.clip(rank, 0, MOST_RANK), requeue, *times))
    return Preemption(*columns), classes


class ShareTree(NamedTuple):
    """The tree of shares with its priorities and names, and each job's association, which is an index into the tree; int64.

    A name is a pair of account and user; the user is None for an account, and both are None for the root.
    """

    association: Array
    shares: Shares
    priorities: Array
    names: list[tuple[str | None, str | None]]


def tree_of_shares(placed: Workload, machine: Machine) -> ShareTree:
    """Return the tree of the machine's shares, with one share for each other account and user of the jobs.

    Users without jobs affect the ranks of other users, as in Slurm.
    """
    known = {one.account: one for one in machine.shares if one.user is None}
    own = {(one.account, one.user): one for one in machine.shares if one.user is not None}
    places: dict[tuple[str | None, str | None], int] = {(None, None): 0}
    tree = [(0, 1, 0)]  # parent, shares, whether a leaf
    priorities = [0]

    def add(key: tuple[str | None, str | None], parent: int, one: Share | None) -> int:
        places[key] = len(tree)
        tree.append((parent, 1 if one is None else one.shares, int(key[1] is not None)))
        priorities.append(priorities[parent] if one is None or one.priority is None else one.priority)
        return places[key]

    def account(name: str | None, below: tuple[str, ...] = ()) -> int:
        if name is None or (name, None) in places:
            return places[name, None]
        if name in below:
            raise WorkloadError(f"the account {name!r} is its own ancestor in the machine's shares; correct its parent")
        one = known.get(name)
        above = account(one.parent, (*below, name)) if one is not None and one.parent != name else 0
        return add((name, None), above, one)

    for name in known:
        account(name)
    unknown = np.full(len(placed), -1)
    pairs = list(zip(*(placed.columns.get(name, unknown).tolist() for name in ("group", "user")), strict=True))
    by_numbers: dict[tuple[int, int], int] = {}
    for numbers in dict.fromkeys(pairs):
        user = placed.origin.name_of("user", numbers[1])
        group = placed.origin.name_of("group", numbers[0]) if numbers[0] >= 0 else None
        if group is None:
            accounts = [one for one, other in own if other == user]
            group = accounts[0] if len(accounts) == 1 else None
        key = (group, user)
        by_numbers[numbers] = places[key] if key in places else add(key, account(group), own.get((group or "", user)))
    for key, one in own.items():
        if key not in places:
            add(key, account(key[0]), one)
    association = np.array([by_numbers[numbers] for numbers in pairs], np.int64)
    return ShareTree(association, Shares(*np.array(tree, np.int64).T.copy()), np.array(priorities, np.int64), list(places))
