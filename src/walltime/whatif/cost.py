"""The cost of a change: node-hours available, used, and lost with jobs that are cut or no longer fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.metrics.summary import Averages
from walltime.schedule.schedule import Schedule
from walltime.wording import counted

Array = np.ndarray
MOST_NAMED = 5
"""Largest number of users or jobs that are named."""


@dataclass(frozen=True)
class Cost(Averages):
    """Node-hours from the first to the last submission, and jobs that lose compared with today's setting."""

    nodes: int
    capacity: float
    """node-hours available"""
    used: float
    """node-hours used"""
    idle: float
    """node-hours not used"""
    cut_jobs: int
    """killed earlier than today, at a shorter limit"""
    cut_hours: float
    """node-hours that they use until then, lost unless they keep checkpoints"""
    missing_hours: float
    """node-hours that they had still used today"""
    cut: Sequence[str]
    """their users, the most lost node-hours first"""
    lost_jobs: int
    """that no longer fit, and are left out"""
    lost_hours: float
    """node-hours that they used today"""
    lost: Sequence[str]
    """their users"""
    rules: Mapping[str, int]
    """number of jobs left out, by rule"""
    work_lost: float
    """share of today's node-hours in jobs killed earlier or left out"""


def cost(today: Schedule, changed: Schedule, both: tuple[Array, Array]) -> Cost:
    """Return the cost of a change compared with today's schedule; `both`: the places of the same jobs in both, int64."""
    mine, theirs = both
    before, after = node_hours(today), node_hours(changed)
    begin, end = int(changed.submit.min()), changed.last_submit
    length = changed.end - changed.start
    inside = np.maximum(np.minimum(changed.end, end) - np.maximum(changed.start, begin), 0)
    used = float((after * inside / np.maximum(length, 1)).sum())
    assert changed.placement is not None, "it ran on a machine of pools"
    nodes = sum(pool.nodes for pool in changed.placement.machine.pools)
    capacity = nodes * (end - begin) / 3600
    cut = changed.runtime[theirs] < today.runtime[mine]
    gone = np.ones(len(today), bool)
    gone[mine] = False
    old, new = today.workload.origin.dropped, changed.workload.origin.dropped
    return Cost(
        nodes=nodes,
        capacity=capacity,
        used=used,
        idle=capacity - used,
        cut_jobs=int(cut.sum()),
        cut_hours=float(after[theirs[cut]].sum()),
        missing_hours=float((before[mine[cut]] - after[theirs[cut]]).sum()),
        cut=_named(today, mine[cut], after[theirs[cut]]),
        lost_jobs=int(gone.sum()),
        lost_hours=float(before[gone].sum()),
        lost=_named(today, np.flatnonzero(gone), before[gone]),
        rules={rule: count - old.get(rule, 0) for rule, count in new.items() if count > old.get(rule, 0)},
        work_lost=float((before[mine[cut]].sum() + before[gone].sum()) / max(before.sum(), 1e-9)),
    )


def node_hours(schedule: Schedule) -> Array:
    """Return the node-hours of each job, float64; parts of nodes count as fractions."""
    assert schedule.placement is not None, "it ran on a machine of pools"
    assert schedule.given is not None, "it ran on a machine of pools"
    procs = np.array([pool.procs for pool in schedule.placement.machine.pools], np.float64)
    return (schedule.given[:, :, 0] / procs).sum(axis=1) * schedule.runtime / 3600


def _named(schedule: Schedule, jobs: Array, hours: Array) -> list[str]:
    """List the users of these jobs with their jobs and node-hours, the most first; single jobs if the log has no users."""
    workload, users = schedule.workload, schedule.workload.columns.get("user")
    single = users is None or (users[jobs] < 0).all()
    known, place = np.unique((workload.job_id if users is None or single else users)[jobs], return_inverse=True)
    total, count = np.bincount(place, weights=hours), np.bincount(place)
    named = []
    for k in np.argsort(-total, kind="stable")[:MOST_NAMED].tolist():
        number = int(known[k])
        name = workload.origin.name_of("user", number) if number >= 0 else "unknown"
        who = f"job {number} (" if single else f"user {name} ({counted(int(count[k]), 'job')}, "
        named.append(f"{who}{total[k]:,.0f} node-hours)")
    return named
