"""Workloads on machines of single nodes, for Slurm's and OAR's scheduling: the jobs that fit, and the fields of a problem."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from walltime.engine.interface.choice import check_features
from walltime.engine.problem import NodeDemands, Nodes, OarSettings
from walltime.errors import WorkloadError
from walltime.machine import Machine, Placement, place
from walltime.node_demands import demands_on, nodes_of, with_priorities
from walltime.policy import Policy
from walltime.policy.oar import STREAM
from walltime.workload import Workload
from walltime.workload.draws import whole_numbers

Array = np.ndarray


def placed_on_nodes(workload: Workload, policy: Policy, machine: Machine) -> tuple[Workload, Placement, dict[str, Any]]:
    """Return the jobs that fit on the nodes, their placement, and the fields of a problem for a policy that plans single nodes.

    Warns of Slurm settings that are not modelled. Raises PolicyError if the policy does not support the machine.
    """
    placed, placement, demands = placed_for(workload, policy, machine)
    nodes, settings = nodes_of(placement.machine, placement), policy.settings(machine.slurm)
    fields = {"machine": nodes, "demands": demands, "settings": settings}
    if settings is None:
        oar: Any = policy
        moments = whole_numbers(oar.seed, placed.job_id, STREAM, oar.durations.noticed, oar.durations.phase)
        return placed, placement, fields | {"settings": OarSettings(oar.security_time, oar.slots == "2016", oar.durations, *moments)}
    if settings.notes:
        _warn(settings.notes)
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


@functools.cache
def _warn(notes: tuple[str, ...]) -> None:
    warnings.warn(f"not modelled: {', '.join(notes)}; see the guide on Slurm's scheduling", stacklevel=5)


def place_on_nodes(workload: Workload, machine: Machine, linear: bool = False) -> tuple[Workload, Placement, NodeDemands]:
    """Return the jobs that fit on the nodes of their partitions, their placement and demands; other jobs are dropped and counted.

    Reads the columns that `demands_on` reads. With `linear`, as in SelectType=select/linear, all partitions of the placement's machine
    allocate whole nodes.
    """
    if linear:
        machine = replace(machine, partitions=tuple(replace(one, exclusive=True) for one in machine.partitions))
    while True:
        placed, placement = place(workload, machine)
        nodes = nodes_of(machine, placement)
        demands = demands_on(nodes, placed, placement)
        fits = _fit_when_empty(nodes, placed.procs, demands)
        if fits.all():
            break
        if not fits.any():
            raise WorkloadError(f"none of the {len(workload):,} jobs of {workload.origin.name} fits on the nodes of {machine.name}")
        gone = np.isin(workload.job_id, placed.job_id[~fits])
        origin = workload.origin
        dropped = {**origin.dropped, "too_wide_for_partition": origin.dropped.get("too_wide_for_partition", 0) + int(gone.sum())}
        workload = replace(workload.take(~gone, ""), origin=replace(origin, dropped=dropped))
    each = np.array([nodes.procs[own].max() for own in nodes.partitions])[placement.partition]
    procs = np.where(demands.whole, demands.nodes * each, placed.procs)
    if (procs != placed.procs).any():
        origin = placed.origin
        changed = {**origin.changed, "whole_nodes": origin.changed.get("whole_nodes", 0) + int((procs != placed.procs).sum())}
        placed = replace(placed, procs=procs, origin=replace(origin, changed=changed))
    return placed, placement, demands


def _fit_when_empty(nodes: Nodes, procs: Array, demands: NodeDemands) -> Array:
    """Return whether each job fits on the nodes of an empty partition."""
    fits = np.zeros(len(procs), bool)
    for p, own in enumerate(nodes.partitions):
        mine = np.flatnonzero(demands.partition == p)
        second = demands.second[mine]
        usable = len(own) - np.searchsorted(np.sort(nodes.second[own]), demands.each[mine])
        has_procs = np.where(second > 0, nodes.procs[own][nodes.second[own] > 0].sum(), nodes.procs[own].sum())
        shared = (has_procs >= procs[mine]) & (nodes.second[own].sum() >= second)
        fits[mine] = (usable >= demands.nodes[mine]) & ((demands.whole[mine] > 0) | shared)
    return fits
