"""The nodes of a machine and what jobs need of them, for schedulers that plan single nodes; accounts, and the jobs' priorities."""

from __future__ import annotations

import numpy as np

from walltime.engine.problem import NodeDemands, Nodes, Shares
from walltime.errors import WorkloadError
from walltime.machine import Machine, Placement
from walltime.machine.placing import qos_factors
from walltime.policy.slurm import SlurmSettings
from walltime.workload import Workload

Array = np.ndarray


def nodes_of(machine: Machine, placement: Placement) -> Nodes:
    """Return the nodes of a machine, pool by pool.

    An outage takes the last nodes of its pool, first those without an earlier outage at the same time.
    """
    counts = [pool.nodes for pool in machine.pools]
    own = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    outages: list[tuple[list[int], int, int, int]] = []
    for pool, procs, _, begin, end, known in sorted(placement.outages, key=lambda one: one[3]):
        gone = {n for nodes, _, until, _ in outages if until > begin for n in nodes}
        candidates = sorted(own[pool].tolist(), key=lambda n: (n in gone, -n))
        outages.append((candidates[: procs // machine.pools[pool].procs], begin, end, known))
    return Nodes(
        pool=np.repeat(np.arange(len(counts)), counts),
        procs=np.repeat([pool.procs for pool in machine.pools], counts).astype(np.int64),
        second=np.repeat([pool.second for pool in machine.pools], counts).astype(np.int64),
        weight=np.repeat([pool.weight for pool in machine.pools], counts).astype(np.int64),
        partitions=[np.concatenate([own[machine.place_of(name)] for name in one.pools]) for one in machine.partitions],
        tiers=[one.tier for one in machine.partitions],
        outages=outages,
        limits=placement.limits,
    )


def demands_on(nodes: Nodes, placed: Workload, placement: Placement) -> NodeDemands:
    """Return what jobs need of the nodes of their partitions.

    Reads the columns `requested_nodes`, or else `nodes` (minimum number), `exclusive` (1 for whole nodes, if the partition's nodes have one
    size), `time_min` (s), `user`, and `held` (s between submission and eligibility). Associations and priorities are added by
    `with_priorities`.
    """
    count, part, second = len(placed), placement.partition, placement.second
    sizes = np.array([len(own) for own in nodes.partitions])[part]
    whole = np.array([one.exclusive for one in placement.machine.partitions])[part]
    one_size = np.array([len(np.unique(nodes.procs[own])) == 1 for own in nodes.partitions])[part]
    whole |= one_size & (placed.columns.get("exclusive", np.zeros(count, np.int64)) == 1)
    procs_each, second_each = (np.array([of[own].max() for own in nodes.partitions])[part] for of in (nodes.procs, nodes.second))
    nodes_of_jobs, unknown = (placed.columns.get(name, np.full(count, -1)) for name in ("requested_nodes", "nodes"))
    requested = np.minimum(np.where(nodes_of_jobs > 0, nodes_of_jobs, unknown), sizes)
    fewest = np.clip(np.where(second > 0, np.minimum(requested, second), requested), 1, placed.procs)
    for_second = -(-second // np.maximum(second_each, 1))
    wide = np.maximum(np.maximum(requested, -(-placed.procs // procs_each)), for_second)
    needed = np.where(whole, np.maximum(wide, 1), fewest)
    each = np.where(second > 0, np.where(whole, -(-second // needed), 1), 0)
    _, user = np.unique(placed.columns.get("user", np.zeros(count, np.int64)), return_inverse=True)
    numbers = {"nodes": needed, "whole": whole, "each": each, "time_min": np.maximum(placed.columns.get("time_min", np.zeros(count)), 0)}
    numbers |= {"user": user, "place": _places(placed, placement), "association": np.zeros(count), "second": second}
    return NodeDemands(
        **{name: np.asarray(values).astype(np.int64) for name, values in numbers.items()},
        partition=part,
        since=placement.since,
        merit=np.zeros(count),
        after=placement.after,
        limits=placement.limits_of,
    )


def _places(placed: Workload, placement: Placement) -> Array:
    """Return each job's place in the order of submissions, int64; -1 for all where jobs queue in the order in which they arrive.

    A job that becomes eligible late, after a hold or the jobs on which it depends, keeps the place of its submission. With feedback, jobs
    are submitted when others end.
    """
    held = np.maximum(placed.columns.get("held", np.zeros(len(placed), np.int64)), 0)
    if placed.feedback or not (held.any() or placement.after.items.size):
        return np.full(len(placed), -1)
    places = np.empty(len(placed), np.int64)
    places[np.argsort(placed.submit - held, kind="stable")] = np.arange(len(placed))
    return places


def with_priorities(
    placed: Workload, machine: Machine, settings: SlurmSettings, demands: NodeDemands, nodes: Nodes
) -> tuple[NodeDemands, Shares]:
    """Return the demands with each job's association and the constant part of its priority, and the tree of shares."""
    if not settings.multifactor:
        return demands, Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
    association, shares = _tree(placed, machine)
    size = job_size(demands.nodes, placed.procs, placed.believed, len(nodes.procs), int(nodes.procs.sum()), settings)
    most = max([1, *(one.job_factor for one in machine.partitions)])
    partition = np.array([one.job_factor / most for one in machine.partitions])[demands.partition]
    merit = settings["priority_weight_job_size"] * size + settings["priority_weight_partition"] * partition
    merit = merit + settings["priority_weight_qos"] * qos_factors(placed, machine)
    return demands._replace(association=association, merit=merit.astype(np.float64)), shares


def job_size(nodes: Array, procs: Array, limit: Array, all_nodes: int, all_procs: int, settings: SlurmSettings) -> Array:
    """Return the job size factor, float64 from 0 to 1: the mean share of nodes and processors (Slurm's guide on priorities)."""
    if settings.flag("SMALL_RELATIVE_TO_TIME"):
        size = procs / np.maximum(limit // 60, 1) / all_procs
    else:
        size = 0.5 * (nodes / all_nodes + procs / all_procs)
    return 1 - size if settings["priority_favor_small"] else size


def _tree(placed: Workload, machine: Machine) -> tuple[Array, Shares]:
    """Return each job's association, and the tree: the machine's shares, and one share for each account and user without."""
    known = {one.account: one for one in machine.shares if one.user is None}
    own = {(one.account, one.user): one.shares for one in machine.shares if one.user is not None}
    places: dict[tuple[str | None, str | None], int] = {(None, None): 0}
    tree = [(0, 1, 0)]  # parent, shares, whether a leaf

    def add(key: tuple[str | None, str | None], parent: int, shares: int) -> int:
        places[key] = len(tree)
        tree.append((parent, shares, int(key[1] is not None)))
        return places[key]

    def account(name: str | None, below: tuple[str, ...] = ()) -> int:
        if name is None or (name, None) in places:
            return places[name, None]
        if name in below:
            raise WorkloadError(f"the account {name!r} is its own ancestor in the machine's shares; correct its parent")
        one = known.get(name)
        above = account(one.parent, (*below, name)) if one is not None and one.parent != name else 0
        return add((name, None), above, 1 if one is None else one.shares)

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
        by_numbers[numbers] = places[key] if key in places else add(key, account(group), own.get((group or "", user), 1))
    return np.array([by_numbers[numbers] for numbers in pairs], np.int64), Shares(*np.array(tree, np.int64).T.copy())
