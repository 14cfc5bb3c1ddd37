"""What the auditor checks on a machine of several pools; independent of the engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from walltime.auditor.nodes import broken_on_nodes
from walltime.auditor.oar_decisions import oar_differences
from walltime.auditor.pool_decisions import differences, keeps_reservations
from walltime.auditor.pool_flows import broken_by_unions, broken_in_outages, used_at_starts
from walltime.auditor.slurm_decisions import slurm_differences
from walltime.auditor.walk import Difference, MachineSchedule
from walltime.machine.placing import NEVER
from walltime.policy import Policy, Wfp
from walltime.predictors import Prediction
from walltime.workload import Workload

Array = np.ndarray
MACHINE_CHECKS = {
    "pool_capacity": "no job starts in a pool that has not enough left, outages considered",
    "pool_order": "a job takes what stays free of its partition's pools in their order",
    "limit_exceeded": "no job starts over one of its limits",
    "window_shut": "no job starts, or is planned to run, in hours that a window of the site shuts for it",
    "dependency": "no job starts before those end that it depends on",
    "node_capacity": "no node is given out twice, to another partition or in an outage, and each job has what it needs of its nodes",
    "node_order": "a job gets the nodes that Slurm, or OAR, chooses for it",
    "limit_shortened": "a limit is shortened only for jobs with a time_min, not below it, and as Slurm does it",
}
"""Further rules of the auditor for machines of several pools."""
ON_NODES: Mapping[str, Callable[[MachineSchedule, Any], Iterator[Difference]]] = {"slurm": slurm_differences, "oar": oar_differences}
"""What goes along a schedule of single nodes, by the kinds of `walltime.policy.PassSpec`."""
DECISIONS = ("head_waits", "left_waiting", "reservation_delayed", "out_of_turn", "reserved_start_missed")
"""Rules on what a policy starts in the state that the schedule has led to."""


def broken_rules(schedule: MachineSchedule, policy: Policy | None = None, prediction: Prediction | None = None) -> Iterator[Difference]:
    """What breaks the rules of a machine: the rule, a message, the job's index and the time. One entry per job; times int64 s.

    Without a `policy` only the rules for all schedules are checked; `prediction`: what it plans with.
    """
    yield from _dependencies(schedule)
    yield from _limits(schedule)
    yield from _windows(schedule)
    if schedule.limit is not None:
        yield from _shortened(schedule, schedule.limit, may_be_shortened(schedule.workload, policy))
    if schedule.slots is not None:
        yield from broken_on_nodes(schedule, schedule.slots)
    elif schedule.given is not None:
        yield from _pools(schedule, schedule.given)
    else:
        yield from _somewhere(schedule, by_node=policy is not None and policy.plans_nodes)
    if policy is None or _why_undecided(policy) is not None:
        return
    if policy.plans_nodes:
        yield from ON_NODES[policy.passes.kind](schedule, policy)
    else:
        yield from differences(schedule, policy, prediction)


def skipped_rules(schedule: MachineSchedule, policy: Policy | None = None) -> Mapping[str, str]:
    """Rules that cannot be checked, and why."""
    no_nodes, by_nodes = "the schedule does not say which nodes the jobs had", "nodes are checked one by one"
    skipped = {"node_capacity": no_nodes, "node_order": no_nodes} if schedule.slots is None else {}
    if schedule.limit is None:
        skipped["limit_shortened"] = "the schedule does not say that limits were shortened"
    if schedule.slots is not None:
        skipped["pool_capacity"] = by_nodes
    if schedule.given is None or schedule.slots is not None:
        skipped["pool_order"] = "the schedule does not say which pools the jobs had" if schedule.given is None else by_nodes
    why = _why_undecided(policy)
    if why is not None:
        return skipped | dict.fromkeys((*DECISIONS, "pool_order", "node_order"), why)
    assert policy is not None
    if policy.plans_nodes:
        skipped["pool_order"] = f"under {policy.name} nodes are chosen one by one"
        skipped["reserved_start_missed"] = f"{policy.name} makes its reservations anew in every pass over the jobs that wait"
    else:
        skipped["node_order"] = f"{policy.label} chooses pools, not nodes"
        if not keeps_reservations(policy):
            skipped["reserved_start_missed"] = f"{policy.label} does not keep its reservations"
    return skipped


def _why_undecided(policy: Policy | None) -> str | None:
    """Why it is not known what the policy starts; None if it is."""
    if policy is None:
        return "no policy was given"
    if policy.plans_nodes:
        return None
    own = getattr(policy, "backfill_order", None)
    if any(isinstance(order, Wfp) and order.threshold for order in (policy.order, own)):
        return "a threshold of scores is not known on a machine of several pools"
    if policy.on_pools.engine != "kernel":
        return f"what {policy.label} decides on a machine of several pools is not judged"
    return None


def may_be_shortened(workload: Workload, policy: Policy | None) -> Array:
    """The jobs whose limits may be shorter than what they asked for: under Slurm, without soft limits, those with a shorter `time_min`.

    Without a policy all with a `time_min`.
    """
    least = workload.columns.get("time_min", np.full(len(workload), -1))
    if policy is None:
        return np.asarray(least > 0)
    if not policy.shortens_limits:
        return np.zeros(len(workload), bool)
    return np.asarray((least > 0) & (least < workload.believed))


def believable_limits(
    workload: Workload, policy: Policy | None, job: Array, requested: Array, said: Array | None, row: Array, lasted: Array
) -> Array:
    """The limits by which jobs are ended: what they asked for, or, where that may be shortened, what the schedule says.

    `job`, `row`: which jobs of the workload and rows of the schedule are meant. A schedule without limits says them by how long the jobs
    `lasted`, if it is no less than their `time_min`.
    """
    shorter = may_be_shortened(workload, policy)[job]
    if said is not None:
        return np.where(shorter, said[row], requested)
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
    members: dict[int, list[int]] = {}
    for job, limits in enumerate(placement.limits_of):
        for limit in limits:
            members.setdefault(limit, []).append(job)
    amounts = np.stack([np.ones(len(workload), np.int64), workload.procs, placement.second], axis=1)
    for limit, of in members.items():
        jobs = np.array(of)
        used = used_at_starts(schedule.start[jobs], schedule.end[jobs], amounts[jobs])
        for k in np.flatnonzero((used > np.array(placement.limits[limit])).any(axis=1)):
            if placement.since[jobs[k]] == NEVER:
                yield schedule.broken("limit_exceeded", jobs[k], f"starts, and then {used[k, 0]} jobs run of a group that is limited")


def _windows(schedule: MachineSchedule) -> Iterator[Difference]:
    start, windows = schedule.start, schedule.windows
    for job in np.flatnonzero(schedule.placement.since == NEVER).tolist() if windows.held else ():
        if windows.shut(job, int(start[job])):
            what = f"planned for {windows.planned[job]} s, starts where a window of the site does not let it"
            yield "window_shut", f"job {schedule.workload.job_id[job]}, {what}", job, int(start[job])


def _shortened(schedule: MachineSchedule, limit: Array, allowed: Array) -> Iterator[Difference]:
    workload = schedule.workload
    least = workload.columns.get("time_min", np.full(len(workload), -1))
    shorter = (limit < workload.requested) & (limit < workload.believed)
    for job in np.flatnonzero(shorter & (~allowed | (limit < least))).tolist():
        why = f"for {least[job]} s at least" if allowed[job] else "its limit may not be shortened"
        what = f"runs under a limit of {limit[job]} s; it asked for {workload.requested[job]} s, and {why}"
        yield schedule.broken("limit_shortened", job, what)


def _pools(schedule: MachineSchedule, given: Array) -> Iterator[Difference]:
    """Where jobs start, what they and those that run have of each pool, against what the pool has then."""
    workload, placement, start, machine = schedule.workload, schedule.placement, schedule.start, schedule.placement.machine
    needed = np.stack([workload.procs, placement.second], axis=1)
    for job in np.flatnonzero((given.sum(axis=1) != needed).any(axis=1)).tolist():
        procs, second = given[job].sum(axis=0)
        what = f"has {procs} processors and {second} of the second resource; it needs {needed[job].tolist()}"
        yield schedule.broken("pool_capacity", job, what)
    for p, pool in enumerate(machine.pools):
        outside = [k for k, one in enumerate(machine.partitions) if pool.name not in one.pools]
        for job in np.flatnonzero(np.isin(placement.partition, outside) & (given[:, p] > 0).any(axis=1)).tolist():
            yield schedule.broken("pool_capacity", job, f"has processors of the pool {pool.name}, which its partition has not")
        jobs = np.flatnonzero((given[:, p] > 0).any(axis=1))
        used = used_at_starts(start[jobs], schedule.end[jobs], given[jobs, p])
        missing = np.zeros_like(used)
        for at, procs, second, begin, until, _ in placement.outages:
            if at == p:
                missing[(start[jobs] >= begin) & (start[jobs] < until)] += (procs, second)
        left = np.array([pool.nodes * pool.procs, pool.nodes * pool.second]) - missing
        for k in np.flatnonzero(((used > left) & (given[jobs, p] > 0)).any(axis=1)).tolist():
            if placement.since[jobs[k]] == NEVER:
                had = f"{used[k].tolist()} of {left[k].tolist()} of the pool {pool.name}"
                yield schedule.broken("pool_capacity", jobs[k], f"starts, and then {had} is in use")


def _somewhere(schedule: MachineSchedule, by_node: bool) -> Iterator[Difference]:
    """Whether there is any way to place the jobs."""
    seen = set()
    for job, had in broken_by_unions(schedule):
        if schedule.placement.since[job] == NEVER and job not in seen:
            seen.add(job)
            yield schedule.broken("pool_capacity", job, f"starts, and then {had} is in use")
    for job, why in broken_in_outages(schedule, by_node):
        if job not in seen:
            seen.add(job)
            yield schedule.broken("pool_capacity", job, f"starts at {schedule.start[job]}, but {why}")
