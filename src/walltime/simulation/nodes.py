"""Workloads on machines with individual nodes: the jobs that fit, and the fields of an engine's problem."""

from dataclasses import replace
from typing import Any

import numpy as np

from walltime.distinct import distinct_rows
from walltime.engine.interface.choice import check_features
from walltime.engine.machines import NodeDemands, Nodes
from walltime.machine import Machine, Placement, place
from walltime.machine.counted_limits import with_counted_limits
from walltime.machine.omissions import slurm_limits, with_settings
from walltime.machine.overheads import scheduler_view
from walltime.machine.placing import PLACING_REASONS, TOO_MUCH, no_job_fits, possible
from walltime.node_demands import demands_on, nodes_of, problem_fields, unknown_features, unknown_gpu_type
from walltime.policy import Policy
from walltime.workload import Array, Workload

SECOND, MEMORY = ("total", "each", "per_task"), ("memory", "task_memory")
"""Fields of NodeDemands with the requests for the second resource, and with those for memory."""
UNLIMITED = 2**40
"""A number of processors that is larger than any request."""


def placed_on_nodes(workload: Workload, policy: Policy, machine: Machine) -> tuple[Workload, Placement, Workload, dict[str, Any]]:
    """Return the jobs that fit on the nodes, their placement, the jobs as the scheduler sees them, and the fields of an engine's problem.

    Raises PolicyError if the policy does not support the machine.
    """
    placed, placement, demands = placed_for(workload, policy, machine)
    jobs, seen = scheduler_view(placed, placement)
    fields = problem_fields(jobs, seen, policy, demands if seen is placement else None)
    return placed, placement, jobs, fields


def placed_for(workload: Workload, policy: Policy, machine: Machine) -> tuple[Workload, Placement, NodeDemands]:
    """Return the jobs that fit on the nodes under the policy, their placement and demands; raises PolicyError like `placed_on_nodes`.

    The jobs' `origin.omissions` lists the settings of Slurm that are not modelled, but not the requests that only the simulation of pools
    ignores.
    """
    settings = policy.settings(machine.slurm)
    lost = slurm_limits(machine) if settings is None else {}
    linear = policy.plans_nodes and (settings is None or settings["select_type"] == "linear")
    if settings is None:  # other schedulers have none of these
        plain = [one for one in machine.limits if (one.jobs, one.procs, one.second) != (None, None, None)]
        limits = tuple(replace(one, run_minutes=None, resources={}) for one in plain)
        machine = replace(machine, reservations=(), licences={}, limits=limits)
    placed, placement, demands = place_on_nodes(workload, machine, linear)
    used = {
        "tiers": len({one.tier for one in machine.partitions}) > 1,
        "limits": bool(placement.limits),
        "outages": bool(placement.outages),
        "second": bool(placement.second.any()),
    }
    check_features(policy, "nodes", [name for name, is_used in used.items() if is_used])
    omissions = placed.origin.omissions
    if settings is not None or not policy.plans_nodes:
        omissions = with_settings(omissions, machine, () if settings is None else settings.notes, settings is not None)
    placed = replace(placed, origin=replace(placed.origin, omissions={**omissions, **lost}))
    return placed, placement, demands


def place_on_nodes(workload: Workload, machine: Machine, linear: bool = False) -> tuple[Workload, Placement, NodeDemands]:
    """Return the jobs that fit on the nodes of their partitions, their placement and demands; other jobs are dropped and counted.

    Reads the columns that `demands_on` reads. With `linear`, all partitions of the placement's machine allocate whole nodes, as under
    SelectType=select/linear.
    """
    if linear:
        machine = replace(machine, partitions=tuple(replace(one, exclusive=True) for one in machine.partitions))
    while True:
        placed, placement = with_counted_limits(*place(workload, machine))
        nodes = nodes_of(machine, placement, placed)
        demands = demands_on(nodes, placed, placement)
        fits = _fit_when_empty(nodes, demands)
        if fits.all():
            break
        rules = {name: placed.job_id[mask] for name, mask in _misfits(nodes, demands, ~fits, machine.second).items() if mask.any()}
        if not fits.any():
            raise no_job_fits(workload, machine, {rule: len(jobs) for rule, jobs in rules.items()})
        workload = workload.without({rule: np.isin(workload.job_id, jobs) for rule, jobs in rules.items()}, PLACING_REASONS)
    for rule, mask in (("unknown_features", unknown_features), ("unknown_gpu_type", unknown_gpu_type)):
        if unknown := int(mask(placed, placement).sum()):
            placed = replace(placed, origin=replace(placed.origin, changed={**placed.origin.changed, rule: unknown}))
    smallest = np.array([nodes.procs[own].min() for own in nodes.members])[demands.members]
    # A job on whole nodes gets at least all processors of that many of the smallest nodes.
    procs = np.where(demands.whole > 0, np.maximum(demands.asked, demands.nodes * smallest), placed.procs)
    if (procs != placed.procs).any():
        origin = placed.origin
        changed = {**origin.changed, "whole_nodes": origin.changed.get("whole_nodes", 0) + int((procs != placed.procs).sum())}
        limits_of, over = possible(placed, placement.limits_of, placement.limits, procs, placement.second, placement.run_seconds)
        changed |= {"over_limit": changed.get("over_limit", 0) + int(over.sum())} if over.any() else {}
        placed, placement = replace(placed, procs=procs, origin=replace(origin, changed=changed)), replace(placement, limits_of=limits_of)
        demands = demands._replace(limits=limits_of)
    return placed, placement, demands


def _misfits(nodes: Nodes, demands: NodeDemands, chosen: Array, second: str) -> dict[str, Array]:
    """Return, for each rule, a mask (bool) of the jobs that it drops, among the `chosen` jobs, none of which fits on the nodes.

    The rule names the first of three amounts (processors, second resource, memory) that alone exceeds the nodes that the job may use.
    """
    nothing: Any = np.zeros_like(demands.asked)
    no_second, no_memory = (dict.fromkeys(names, nothing) for names in (SECOND, MEMORY))
    large = nodes._replace(procs=np.full_like(nodes.procs, UNLIMITED))
    open_demands = demands._replace(most=np.full_like(demands.most, UNLIMITED))
    alone = (
        ("too_wide_for_partition", nodes, demands._replace(**no_second, **no_memory)),
        (TOO_MUCH.get(second, "too_much_second"), large, open_demands._replace(**no_memory)),
        ("too_much_memory", large, open_demands._replace(**no_second)),
    )
    found = {rule: np.zeros_like(chosen) for rule, *_ in alone}
    left = chosen.copy()
    for rule, machine, needs in alone:
        found[rule] |= left & ~_fit_when_empty(machine, needs)
        left &= ~found[rule]
    return {**found, "fits_no_node": left}


def _fit_when_empty(nodes: Nodes, demands: NodeDemands) -> Array:
    """Return whether each job fits on the nodes that it may use, when they are empty."""
    fits = np.zeros(len(demands.nodes), bool)
    names = ("members", "whole", "task", "least", "most", "second_row", "each", "per_task", "memory", "task_memory")
    kinds, kind = distinct_rows([getattr(demands, name) for name in names])
    of_kind = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    for mine, (members, whole, task, least, most, row, each, per_task, memory, task_memory) in zip(of_kind, kinds.tolist(), strict=False):
        own = nodes.members[members]
        procs, second = nodes.procs[own], nodes.rows_of_second[row, own]
        if not whole:
            tasks = procs // task if per_task == 0 else np.minimum(procs // task, second // per_task)
            tasks = tasks if task_memory == 0 else np.minimum(tasks, nodes.memory[own] // task_memory)
            procs = np.minimum(tasks * task, most)
        usable = (second >= each) & (nodes.memory[own] >= memory) & (procs >= max(1, least))
        fits[mine] = (usable.sum() >= demands.nodes[mine]) & (procs[usable].sum() >= demands.asked[mine])
        fits[mine] &= second[usable].sum() >= demands.total[mine]
    return fits
