"""What the auditor checks on a machine of several pools; independent of the engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from walltime.machine import Placement
from walltime.machine.placing import NEVER
from walltime.schedule.node_rules import broken_on_nodes
from walltime.workload import Workload

Array = np.ndarray
MACHINE_CHECKS = {
    "pool_capacity": "no job starts in a pool that has not enough left, outages considered",
    "limit_exceeded": "no job starts over one of its limits",
    "dependency": "no job starts before those end that it depends on",
    "node_capacity": "no node is given out twice, to another partition or in an outage, and each job has what it needs of its nodes",
    "limit_shortened": "a limit is shortened only for jobs with a time_min, and not below it",
}
"""Further rules of the auditor for machines of several pools."""
MOST_PARTITIONS = 10
"""Of more partitions, not all combinations are checked where the schedule does not say which pools the jobs had."""


def broken_rules(
    workload: Workload,
    placement: Placement,
    start: Array,
    end: Array,
    given: Array | None,
    slots: tuple[Array, Array, Array, Array] | None = None,
    limit: Array | None = None,
) -> Iterator[tuple[str, str, int, int]]:
    """What breaks the rules of a machine: the rule, a message, the job's index and the time. One entry per job; times int64 s.

    `slots`, `limit`: as in `Schedule`.
    """
    yield from _dependencies(workload, placement, start, end)
    yield from _limits(workload, placement, start, end)
    if limit is not None:
        yield from _shortened(workload, start, limit)
    if slots is not None:
        yield from broken_on_nodes(workload, placement, start, end, slots)
    elif given is not None:
        yield from _pools(workload, placement, start, end, given)
    elif not placement.outages:
        yield from _partitions(workload, placement, start, end)


def skipped_rules(placement: Placement, given: Array | None, slots: object = None, limit: object = None) -> Mapping[str, str]:
    """Rules that cannot be checked, and why."""
    skipped = {"node_capacity": "the schedule does not say which nodes the jobs had"} if slots is None else {}
    if limit is None:
        skipped["limit_shortened"] = "the schedule does not say that limits were shortened"
    if slots is not None:
        return skipped | {"pool_capacity": "nodes are checked one by one"}
    return skipped | _of_pools(placement, given)


def _of_pools(placement: Placement, given: Array | None) -> dict[str, str]:
    if given is None and placement.outages:
        return {"pool_capacity": "the schedule does not say which pools the jobs had, and jobs may outlast the beginning of an outage"}
    return {}


def _dependencies(workload: Workload, placement: Placement, start: Array, end: Array) -> Iterator[tuple[str, str, int, int]]:
    for job, others in enumerate(placement.after):
        for other in others:
            if start[job] < end[other]:
                message = f"job {workload.job_id[job]} starts before job {workload.job_id[other]} ends at {end[other]}, on which it depends"
                yield "dependency", message, job, int(start[job])


def _limits(workload: Workload, placement: Placement, start: Array, end: Array) -> Iterator[tuple[str, str, int, int]]:
    members: dict[int, list[int]] = {}
    for job, limits in enumerate(placement.limits_of):
        for limit in limits:
            members.setdefault(limit, []).append(job)
    amounts = np.stack([np.ones(len(workload), np.int64), workload.procs, placement.second], axis=1)
    for limit, of in members.items():
        jobs = np.array(of)
        used = _used_at_starts(start[jobs], end[jobs], amounts[jobs])
        for k in np.flatnonzero((used > np.array(placement.limits[limit])).any(axis=1)):
            job = int(jobs[k])
            if placement.since[job] == NEVER:
                message = f"job {workload.job_id[job]} starts, and then {used[k, 0]} jobs run of a group that is limited"
                yield "limit_exceeded", message, job, int(start[job])


def _shortened(workload: Workload, start: Array, limit: Array) -> Iterator[tuple[str, str, int, int]]:
    least = workload.columns.get("time_min", np.full(len(workload), -1))
    shorter = (limit < workload.requested) & (limit < workload.believed)
    for job in np.flatnonzero(shorter & ((least <= 0) | (limit < least))).tolist():
        message = f"job {workload.job_id[job]} runs under a limit of {limit[job]} s; it asked for {workload.requested[job]} s"
        message += f", and for {least[job]} s at least" if least[job] > 0 else ", not for less"
        yield "limit_shortened", message, job, int(start[job])


def _pools(workload: Workload, placement: Placement, start: Array, end: Array, given: Array) -> Iterator[tuple[str, str, int, int]]:
    """Where jobs start, what they and those that run have of each pool, against what the pool has then."""
    needed = np.stack([workload.procs, placement.second], axis=1)
    for job in np.flatnonzero((given.sum(axis=1) != needed).any(axis=1)).tolist():
        has = given[job].sum(axis=0)
        message = f"job {workload.job_id[job]} has {has[0]} processors and {has[1]} of the second resource; it needs {needed[job].tolist()}"
        yield "pool_capacity", message, job, int(start[job])
    machine = placement.machine
    for p, pool in enumerate(machine.pools):
        outside = [k for k, one in enumerate(machine.partitions) if pool.name not in one.pools]
        for job in np.flatnonzero(np.isin(placement.partition, outside) & (given[:, p] > 0).any(axis=1)).tolist():
            message = f"job {workload.job_id[job]} has processors of the pool {pool.name}, which its partition has not"
            yield "pool_capacity", message, job, int(start[job])
        jobs = np.flatnonzero((given[:, p] > 0).any(axis=1))
        used = _used_at_starts(start[jobs], end[jobs], given[jobs, p])
        missing = np.zeros_like(used)
        for at, procs, second, begin, until, _ in placement.outages:
            if at == p:
                missing[(start[jobs] >= begin) & (start[jobs] < until)] += (procs, second)
        left = np.array([pool.nodes * pool.procs, pool.nodes * pool.second]) - missing
        for k in np.flatnonzero(((used > left) & (given[jobs, p] > 0)).any(axis=1)).tolist():
            job = int(jobs[k])
            if placement.since[job] == NEVER:
                had = f"{used[k].tolist()} of {left[k].tolist()} of the pool {pool.name}"
                yield "pool_capacity", f"job {workload.job_id[job]} starts, and then {had} is in use", job, int(start[job])


def _partitions(workload: Workload, placement: Placement, start: Array, end: Array) -> Iterator[tuple[str, str, int, int]]:
    """Whether the jobs of all partitions that lie within some pools fit into these, for every union of partitions (Hall's condition)."""
    machine = placement.machine
    sets = [frozenset(one.pools) for one in machine.partitions]
    capacity = {pool.name: np.array([pool.nodes * pool.procs, pool.nodes * pool.second]) for pool in machine.pools}
    unions = {frozenset().union(*chosen) for k in range(1, min(len(sets), MOST_PARTITIONS) + 1) for chosen in combinations(sets, k)}
    amounts = np.stack([workload.procs, placement.second], axis=1)
    for union in sorted(unions, key=sorted):
        inside = np.isin(placement.partition, [k for k, own in enumerate(sets) if own <= union])
        jobs = np.flatnonzero(inside)
        used = _used_at_starts(start[jobs], end[jobs], amounts[jobs])
        has = sum((capacity[name] for name in union), np.zeros(2, np.int64))
        for k in np.flatnonzero((used > has).any(axis=1)):
            job = int(jobs[k])
            had = f"{used[k].tolist()} of {has.tolist()} of {', '.join(sorted(union))}"
            yield "pool_capacity", f"job {workload.job_id[job]} starts, and then {had} is in use", job, int(start[job])


def _used_at_starts(start: Array, end: Array, amounts: Array) -> Array:
    """What jobs use together when each starts, itself and all that start then included; int64, shape (jobs, kinds of amounts)."""
    ran = end > start
    used = np.zeros_like(amounts)
    for kind in range(amounts.shape[1]):
        by_start, by_end = np.argsort(start[ran], kind="stable"), np.argsort(end[ran], kind="stable")
        come = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_start])])
        gone = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_end])])
        at = start[ran]
        used[ran, kind] = (
            come[np.searchsorted(start[ran][by_start], at, side="right")] - gone[np.searchsorted(end[ran][by_end], at, side="right")]
        )
    return used
