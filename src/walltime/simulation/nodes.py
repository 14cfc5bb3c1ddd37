"""Workloads on machines of single nodes, for Slurm's and OAR's scheduling: nodes, demands of jobs, priorities and shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from walltime.engine.interface.choice import check_features
from walltime.engine.problem import NodeDemands, Nodes, OarSettings, Shares
from walltime.errors import WorkloadError
from walltime.machine import Machine, Placement, place
from walltime.machine.omissions import with_settings
from walltime.machine.placing import PLACING_REASONS, possible, qos_factors
from walltime.policy import Policy
from walltime.policy.oar import STREAM
from walltime.policy.slurm import SlurmSettings
from walltime.workload import Workload
from walltime.workload.draws import whole_numbers

Array = np.ndarray


def placed_on_nodes(workload: Workload, policy: Policy, machine: Machine) -> tuple[Workload, Placement, dict[str, Any]]:
    """Return the jobs that fit on the nodes, their placement, and the fields of a problem for a policy that plans single nodes.

    Settings of Slurm that are not modelled are in `origin.omissions`. Raises PolicyError if the policy does not support the machine.
    """
    placed, placement, demands = placed_for(workload, policy, machine)
    nodes, settings = nodes_of(placement.machine, placement), policy.settings(machine.slurm)
    fields = {"machine": nodes, "demands": demands, "settings": settings}
    if settings is None:
        oar: Any = policy
        moments = whole_numbers(oar.seed, placed.job_id, STREAM, oar.durations.noticed, oar.durations.phase)
        return placed, placement, fields | {"settings": OarSettings(oar.security_time, oar.slots == "2016", oar.durations, *moments)}
    origin = placed.origin
    placed = replace(placed, origin=replace(origin, omissions=with_settings(origin.omissions, machine, settings.notes)))
    demands, shares = with_priorities(placed, placement.machine, settings, demands, nodes)
    return placed, placement, fields | {"demands": demands, "shares": shares}


def placed_for(workload: Workload, policy: Policy, machine: Machine) -> tuple[Workload, Placement, NodeDemands]:
    """Return the jobs that fit on the nodes under the policy, their placement and demands; raises PolicyError as `placed_on_nodes`."""
    settings = policy.settings(machine.slurm)
    placed, placement, demands = place_on_nodes(workload, machine, settings is None or settings["select_type"] == "linear")
    used = {
        "tiers": len({one.tier for one in machine.partitions}) > 1,
        "limits": bool(placement.limits),
        "outages": bool(placement.outages),
        "second": bool(placement.second.any()),
    }
    check_features(policy, "nodes", [name for name, is_used in used.items() if is_used])
    return placed, placement, demands


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
        partitions=[np.concatenate([own[machine.place_of(name)] for name in one.pools]) for one in machine.partitions],
        tiers=[one.tier for one in machine.partitions],
        outages=outages,
        limits=placement.limits,
    )


def place_on_nodes(workload: Workload, machine: Machine, linear: bool = False) -> tuple[Workload, Placement, NodeDemands]:
    """Return the jobs that fit on the nodes of their partitions, their placement and demands; other jobs are dropped and counted.

    Reads the columns `nodes` (minimum number), `exclusive` (1 for whole nodes, if the partition's nodes have one size), `time_min` (s)
    and `user`. With `linear`, as in SelectType=select/linear, all partitions of the placement's machine allocate whole nodes.
    """
    if linear:
        machine = replace(machine, partitions=tuple(replace(one, exclusive=True) for one in machine.partitions))
    while True:
        placed, placement = place(workload, machine)
        nodes = nodes_of(machine, placement)
        count, part = len(placed), placement.partition
        sizes = np.array([len(own) for own in nodes.partitions])[part]
        whole = np.array([one.exclusive for one in machine.partitions])[part]
        one_size = np.array([len(np.unique(nodes.procs[own])) == 1 for own in nodes.partitions])[part]
        whole |= one_size & (placed.columns.get("exclusive", np.zeros(count, np.int64)) == 1)
        procs_each = np.array([nodes.procs[own].max() for own in nodes.partitions])[part]
        second_each = np.array([nodes.second[own].max() for own in nodes.partitions])[part]
        requested = np.minimum(placed.columns.get("nodes", np.ones(count, np.int64)), sizes)
        second = placement.second
        fewest = np.clip(np.where(second > 0, np.minimum(requested, second), requested), 1, placed.procs)
        for_second = -(-second // np.maximum(second_each, 1))
        wide = np.maximum(np.maximum(requested, -(-placed.procs // procs_each)), for_second)
        needed = np.where(whole, np.maximum(wide, 1), fewest)
        each = np.where(second > 0, np.where(whole, -(-second // needed), 1), 0)
        fits = _fit_when_empty(nodes, placed.procs, second, needed, whole, each, part)
        if fits.all():
            break
        if not fits.any():
            raise WorkloadError(f"none of the {len(workload):,} jobs of {workload.origin.name} fits on the nodes of {machine.name}")
        workload = workload.without({"too_wide_for_partition": np.isin(workload.job_id, placed.job_id[~fits])}, PLACING_REASONS)
    procs = np.where(whole, needed * procs_each, placed.procs)
    if (procs != placed.procs).any():
        origin = placed.origin
        changed = {**origin.changed, "whole_nodes": origin.changed.get("whole_nodes", 0) + int((procs != placed.procs).sum())}
        limits_of, over = possible(placed, placement.limits_of, placement.limits, procs, second)
        changed |= {"over_limit": changed.get("over_limit", 0) + int(over.sum())} if over.any() else {}
        placed, placement = replace(placed, procs=procs, origin=replace(origin, changed=changed)), replace(placement, limits_of=limits_of)
    _, user = np.unique(placed.columns.get("user", np.zeros(count, np.int64)), return_inverse=True)
    numbers = {"nodes": needed, "whole": whole, "each": each, "time_min": np.maximum(placed.columns.get("time_min", np.zeros(count)), 0)}
    numbers |= {"user": user, "association": np.zeros(count), "second": second}
    demands = NodeDemands(
        **{name: np.asarray(values).astype(np.int64) for name, values in numbers.items()},
        partition=part,
        since=placement.since,
        merit=np.zeros(count),
        after=placement.after,
        limits=placement.limits_of,
    )
    return placed, placement, demands


def _fit_when_empty(nodes: Nodes, procs: Array, second: Array, needed: Array, whole: Array, each: Array, part: Array) -> Array:
    """Return whether each job fits on the nodes of an empty partition."""
    fits = np.zeros(len(procs), bool)
    for p, own in enumerate(nodes.partitions):
        mine = np.flatnonzero(part == p)
        by_second = np.sort(nodes.second[own])
        usable = len(own) - np.searchsorted(by_second, each[mine])
        has_second = nodes.second[own] > 0
        has_procs = np.where(second[mine] > 0, nodes.procs[own][has_second].sum(), nodes.procs[own].sum())
        shared = (has_procs >= procs[mine]) & (nodes.second[own].sum() >= second[mine])
        fits[mine] = (usable >= needed[mine]) & (whole[mine] | shared)
    return fits


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
