"""The auditor's rules for machines with several pools; independent of the kernel."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from walltime.auditor.first_fit_decisions import FirstFitWalk, Sample
from walltime.auditor.oar_decisions import OarWalk
from walltime.auditor.pool_decisions import PoolsWalk
from walltime.auditor.pool_flows import PoolLevels, broken_by_unions, broken_in_outages
from walltime.auditor.rows import used_at_starts
from walltime.auditor.slurm_decisions import SlurmWalk
from walltime.auditor.walk import Difference, MachineSchedule
from walltime.machine.placing import NEVER
from walltime.node_demands import demands_on, nodes_of, runs_on_nodes
from walltime.policy import Policy, Wfp
from walltime.policy.orders import has_history
from walltime.predictors import Prediction
from walltime.wording import counted
from walltime.workload import Array, Workload

MACHINE_CHECKS = {
    "pool_capacity": "no job starts in a pool without enough free processors, outages considered",
    "pool_order": "a job takes what stays free in its partition's pools, in their order",
    "limit_exceeded": "no job starts over one of its limits",
    "window_shut": "no job starts, or is planned to run, in hours that a window of the site closes to it",
    "dependency": "no job starts before the jobs on which it depends have ended",
    "node_capacity": "no node is given out twice, to another partition or in an outage, and each job has what it needs on its nodes",
    "node_order": "a job gets the nodes that Slurm, or OAR, chooses for it",
    "preemption": "a run ends early exactly where Slurm preempts it, or where it loses a node",
    "limit_shortened": "a limit is shortened only for jobs with a time_min, not below it, and as Slurm does it",
}
"""Additional rules for machines with several pools, and their requirements."""
NODE_WALKS: Mapping[str, Callable[[MachineSchedule, Any], Any]] = {"slurm": SlurmWalk, "oar": OarWalk}
"""Walks along schedules of policies that plan nodes, by the kinds of `walltime.policy.PassSpec`."""
DECISIONS = ("head_waits", "left_waiting", "reservation_delayed", "out_of_turn", "reserved_start_missed")
"""Rules on a policy's decisions in the state that the schedule has reached."""


def broken_rules(schedule: MachineSchedule, policy: Policy | None = None, prediction: Prediction | None = None) -> Iterator[Difference]:
    """Yield the violations of the rules for machines with several pools.

    Without a `policy`, only the rules for all schedules are checked. `prediction`: the policy's runtime predictions.
    """
    on_nodes = runs_on_nodes(policy, schedule.placement.machine)
    yield from _dependencies(schedule)
    yield from _limits(schedule)
    yield from _windows(schedule)
    if schedule.limit is not None:
        yield from _shortened(schedule, schedule.limit, may_be_shortened(schedule.workload, policy))
    if schedule.slots is not None:
        yield from _nodes(schedule, schedule.slots)
    elif schedule.given is not None:
        yield from _pools(schedule, schedule.given, exact=not on_nodes)
    else:
        yield from _somewhere(schedule, by_node=on_nodes)
    if policy is not None and _unchecked_reason(policy, on_nodes, prediction) is None:
        of_nodes = NODE_WALKS.get(policy.passes.kind, FirstFitWalk)
        walk = of_nodes(schedule, policy) if on_nodes else PoolsWalk(schedule, policy, prediction)
        yield from walk.run()


def skipped_rules(schedule: MachineSchedule, policy: Policy | None = None, prediction: Prediction | None = None) -> Mapping[str, str]:
    """Return the rules that cannot be checked, and the reason."""
    by_nodes, on_nodes = "nodes are checked one by one", runs_on_nodes(policy, schedule.placement.machine)
    skipped = {"pool_capacity": by_nodes, "pool_order": by_nodes}
    if schedule.slots is None:
        skipped = dict.fromkeys(("node_capacity", "node_order"), "the schedule does not record the jobs' nodes")
    if schedule.limit is None:
        skipped["limit_shortened"] = "the schedule does not record shortened limits"
    if schedule.given is None:
        skipped["pool_order"] = "the schedule does not record the jobs' pools"
    reason = _unchecked_reason(policy, on_nodes, prediction)
    if policy is None or reason is not None:
        return skipped | dict.fromkeys((*DECISIONS, "pool_order", "node_order"), reason or "")
    if on_nodes:
        skipped["pool_order"] = f"under {policy.name} nodes are chosen one by one"
    else:
        skipped["node_order"] = f"{policy.label} chooses pools, not nodes"
    if policy.passes.kind != "kept":
        skipped["reserved_start_missed"] = f"{policy.label} does not keep its reservations"
    return skipped


def decided_share(schedule: MachineSchedule, policy: Policy | None, prediction: Prediction | None = None) -> tuple[float | None, list[str]]:
    """Return the share of the events at which the policy's decisions are checked, None without a policy, and notes on it."""
    on_nodes = runs_on_nodes(policy, schedule.placement.machine)
    if policy is None or _unchecked_reason(policy, on_nodes, prediction) is not None:
        return None if policy is None else 0.0, []
    if not on_nodes or policy.passes.kind in NODE_WALKS:
        return 1.0, []
    sample = Sample.of(schedule, policy)
    return sample.share, [str(sample)] if sample.share < 1 else []


def _unchecked_reason(policy: Policy | None, on_nodes: bool, prediction: Prediction | None) -> str | None:
    """Return the reason why the policy's decisions cannot be checked; None if they can."""
    if policy is None:
        return "no policy was given"
    if policy.plans_nodes:
        return None
    if on_nodes and (prediction is not None or has_history(policy)):
        return f"the decisions of {policy.label} on a machine of nodes are not checked with predictions or an order by history"
    own = getattr(policy, "backfill_order", None)
    if any(isinstance(order, Wfp) and order.threshold for order in (policy.order, own)):
        return "a threshold of scores is not supported on a machine with several pools"
    if policy.on_pools.engine != "kernel" and not on_nodes:
        return f"the decisions of {policy.label} on a machine with several pools are not checked"
    return None


def may_be_shortened(workload: Workload, policy: Policy | None) -> Array:
    """Return a mask (bool) of the jobs whose limit may be shorter than requested: under Slurm without soft limits, to `time_min`.

    Without a policy, the limit of every job with a `time_min` may be shorter.
    """
    least = workload.columns.get("time_min", np.full(len(workload), -1))
    if policy is None:
        return np.asarray(least > 0)
    if not policy.shortens_limits:
        return np.zeros(len(workload), bool)
    return np.asarray((least > 0) & (least < workload.planned))


def shortened_limits(
    workload: Workload, policy: Policy | None, job: Array, requested: Array, recorded: Array | None, lasted: Array
) -> Array:
    """Return the kill limits of jobs, int64 s: as requested or, if limits may be shortened, as recorded.

    `job`: indices into the workload. If the schedule records no limits, the limit is the time that a job `lasted` (s), but not less than
    its `time_min`.
    """
    shorter = may_be_shortened(workload, policy)[job]
    if recorded is not None:
        return np.where(shorter, recorded, requested)
    if not shorter.any():
        return requested
    least = workload.columns["time_min"][job]
    return np.where(shorter & (lasted < requested), np.maximum(lasted, least), requested)


def _dependencies(schedule: MachineSchedule) -> Iterator[Difference]:
    start, end, job_id = schedule.start, schedule.end, schedule.workload.job_id
    for job, others in enumerate(schedule.placement.after):
        for other in others:
            if start[job] < end[other]:
                yield schedule.broken("dependency", job, f"starts before job {job_id[other]} ends at {end[other]}, on which it depends")


def _limits(schedule: MachineSchedule) -> Iterator[Difference]:
    workload, placement = schedule.workload, schedule.placement
    members = defaultdict[int, list[int]](list)
    for job, limits in enumerate(placement.limits_of):
        for limit in limits:
            members[limit].append(job)
    amounts = np.stack([np.ones(len(workload), np.int64), workload.procs, placement.second], axis=1)
    for limit, own in members.items():
        jobs = np.array(own)
        used = used_at_starts(schedule.start[jobs], schedule.end[jobs], amounts[jobs])
        for k in np.flatnonzero((used > np.array(placement.limits[limit])).any(axis=1)):
            if placement.since[jobs[k]] == NEVER:
                yield schedule.broken("limit_exceeded", jobs[k], f"starts, and then {counted(used[k, 0], 'job')} of a limited group run")


def _windows(schedule: MachineSchedule) -> Iterator[Difference]:
    start, windows = schedule.start, schedule.windows
    for job in np.flatnonzero(schedule.placement.since == NEVER).tolist() if windows.shut_hours else ():
        if windows.shut(job, int(start[job])):
            what = f"starts with a planned length of {windows.planned[job]} s when a window of the site forbids it"
            yield schedule.broken("window_shut", job, what)


def _shortened(schedule: MachineSchedule, limit: Array, allowed: Array) -> Iterator[Difference]:
    workload = schedule.workload
    least = workload.columns.get("time_min", np.full(len(workload), -1))
    shorter = (limit < workload.requested) & (limit < workload.planned)
    for job in np.flatnonzero(shorter & (~allowed | (limit < least))).tolist():
        bound = f"a minimum of {least[job]} s" if allowed[job] else "its limit may not be shortened"
        what = f"runs under a limit of {limit[job]} s; it requested {workload.requested[job]} s, and {bound}"
        yield schedule.broken("limit_shortened", job, what)


def _pools(schedule: MachineSchedule, given: Array, exact: bool) -> Iterator[Difference]:
    """Check at each start that the running jobs use no more of each pool than it has at that time.

    `exact`: whether jobs get exactly what they need; on nodes, they may get more of the second resource, or more processors on whole nodes.
    """
    placement, start, machine = schedule.placement, schedule.start, schedule.placement.machine
    has, needed = given.sum(axis=1), np.stack([schedule.workload.procs, placement.second], axis=1)
    for job in np.flatnonzero(((has < needed) | (exact & (has != needed))).any(axis=1)).tolist():
        first, second = needed[job].tolist()
        what = f"has {counted(has[job, 0], 'processor')} and {has[job, 1]} of the second resource, but needs {first} and {second}"
        yield schedule.broken("pool_capacity", job, what)
    for p, pool in enumerate(machine.pools):
        outside = [k for k, one in enumerate(machine.partitions) if pool.name not in one.pools]
        for job in np.flatnonzero(np.isin(placement.partition, outside) & (given[:, p] > 0).any(axis=1)).tolist():
            yield schedule.broken("pool_capacity", job, f"has processors of the pool {pool.name}, which is not in its partition")
        jobs = np.flatnonzero((given[:, p] > 0).any(axis=1))
        used = used_at_starts(start[jobs], schedule.end[jobs], given[jobs, p])
        left = np.stack([PoolLevels(placement, p, kind).at(start[jobs]) for kind in range(2)], axis=1)
        for k in np.flatnonzero(((used > left) & (given[jobs, p] > 0)).any(axis=1)).tolist():
            if placement.since[jobs[k]] == NEVER:
                had = f"{used[k].tolist()} of {left[k].tolist()} of the pool {pool.name}"
                yield schedule.broken("pool_capacity", jobs[k], f"starts, and then {had} is in use")


def _somewhere(schedule: MachineSchedule, by_node: bool) -> Iterator[Difference]:
    """Check that the running jobs can be placed in some way, for schedules that record neither pools nor nodes of jobs."""
    reported = set()
    nodes = nodes_of(schedule.placement.machine, schedule.placement, schedule.workload) if by_node else None
    for job, what in chain(broken_by_unions(schedule), broken_in_outages(schedule, nodes)):
        if schedule.placement.since[job] == NEVER and job not in reported:
            reported.add(job)
            yield schedule.broken("pool_capacity", job, what)


def _nodes(schedule: MachineSchedule, slots: Sequence[Array]) -> Iterator[Difference]:
    """Yield the violations of rules on nodes; nodes are numbered pool by pool."""
    placement, start, end, machine = schedule.placement, schedule.start, schedule.end, schedule.placement.machine
    job, node, procs, second = slots
    nodes = nodes_of(machine, placement, schedule.workload)
    needs = demands_on(nodes, schedule.workload, placement)
    yield from _needs(schedule, slots, nodes, needs)
    memory = np.where(needs.memory[job] > 0, needs.memory[job], needs.task_memory[job] * (procs // needs.task[job]))
    memory = np.where(needs.whole[job] > 0, 0, memory)
    for amounts, capacity in zip(nodes.allocated(needs.second_row[job], procs, second, memory), nodes.amounts, strict=True):
        for k, used in _overused(start[job], end[job], node, amounts, capacity):
            if placement.since[job[k]] == NEVER:
                what = f"starts, and then {used} of {capacity[node[k]]} of node {node[k]} is in use"
                yield schedule.broken("node_capacity", job[k], what)
    yield from _outages(schedule, slots, nodes)


def _needs(schedule: MachineSchedule, slots: Sequence[Array], nodes: Any, needs: Any) -> Iterator[Difference]:
    """Check that each job has the amounts that it needs, in total and on each node, and only on nodes that it may use."""
    job, node, procs, second = slots
    number, total_procs, total_second = (
        np.bincount(job, weights=values, minlength=len(needs.nodes)).astype(np.int64) for values in (np.ones(len(job)), procs, second)
    )
    short = (number < needs.nodes) | (total_procs < needs.asked) | ((needs.whole == 0) & (total_procs > needs.asked))
    short |= (needs.most_nodes > 0) & (number > needs.most_nodes)
    short |= (needs.total > 0) & (total_second != needs.total)
    for k in np.flatnonzero(short).tolist():
        what = f"has {counted(number[k], 'node')}, {counted(total_procs[k], 'processor')} and {total_second[k]} of the second resource"
        yield schedule.broken("node_capacity", k, f"{what}, but needs {needs.nodes[k]}, {needs.asked[k]} and {needs.total[k]}")
    inside = np.zeros((len(nodes.members), len(nodes.procs)), bool)
    for k, own in enumerate(nodes.members):
        inside[k, own] = True
    task, most, each = (getattr(needs, name)[job] for name in ("task", "most", "each"))
    shared = (procs % task != 0) | (procs > most)
    due = np.where(each > 0, each, needs.per_task[job] * (procs // task))
    wrong = np.where(needs.whole[job] > 0, procs != nodes.procs[node], shared) | ((needs.total[job] == 0) & (second != due))
    for rows, what in ((~inside[needs.members[job], node], "which it may not use"), (wrong, "but not what it needs there")):
        for k in np.flatnonzero(rows).tolist():
            yield schedule.broken("node_capacity", job[k], f"has node {node[k]}, {what}")


def _overused(start: Array, end: Array, node: Array, amounts: Array, capacity: Array) -> Iterator[tuple[int, int]]:
    """Yield each slot at whose start the use of its node exceeds the node's capacity, with the amount in use."""
    ran = np.flatnonzero((end > start) & (amounts > 0))
    at = np.concatenate([start[ran], end[ran]])
    change = np.concatenate([amounts[ran], -amounts[ran]])
    slot = np.concatenate([ran, ran])
    order = np.lexsort((change, at, node[slot]))  # ends come before starts
    used = np.cumsum(change[order])
    for k in np.flatnonzero((used > capacity[node[slot[order]]]) & (change[order] > 0)).tolist():
        yield int(slot[order[k]]), int(used[k])


def _outages(schedule: MachineSchedule, slots: Sequence[Array], nodes: Any) -> Iterator[Difference]:
    """Check that jobs that start between two changes of a pool's outages use no more different nodes than the outages leave."""
    placement, start, (job, node) = schedule.placement, schedule.start, slots[:2]
    for p, one in enumerate(placement.machine.pools):
        levels = PoolLevels(placement, p, 0, nodes)
        for begin, until in pairwise(levels.times.tolist()):
            left = int(levels.at(begin)) // one.procs
            begun = (start[job] >= begin) & (start[job] < until) & (placement.since[job] == NEVER) & (nodes.pool[node] == p)
            if len(np.unique(node[begun])) > left:
                last = int(np.flatnonzero(begun)[np.argmax(start[job[begun]])])
                what = f"starts in an outage that leaves {counted(left, 'node')} of the pool {one.name}"
                yield schedule.broken("node_capacity", job[last], what)
