"""One-step agreement on a machine file: pools with disjoint partitions, windows, limits of jobs, overheads."""

from __future__ import annotations

import numpy as np

from walltime.errors import PolicyError
from walltime.inference.one_step import OneStep, SiteRules, one_step
from walltime.machine import Machine, Placement, place
from walltime.machine.placing import NEVER
from walltime.policy import Policy
from walltime.workload import Workload

Array = np.ndarray


def one_step_on(workload: Workload, start: Array, policy: Policy, machine: Machine) -> tuple[Workload, OneStep]:
    """Return the jobs that can run on this machine, and the proposals of a policy at every recorded instant.

    `start`: recorded starts, int64 s, one per job of the workload, negative if unknown. A dependent job may start when its predecessors
    have ended. Raises PolicyError for a policy whose passes are unknown, and for unsupported machines: partitions of several pools, or
    with tiers on one pool; a second resource; outages; limits of processors, several limits of a job, or limits over several pools.
    """
    placed, placement = place(workload, machine)
    start = start[workload.places_of(placed.job_id)]
    if placement.second.any() or (placement.since < NEVER).any():
        raise _not_asked("jobs that need a second resource, or run at the beginning")
    if placement.outages:
        raise _not_asked("outages, which are part of a plan")
    eligible = _after_others(placement, placed.submit, np.where(start >= 0, start + placed.runtime, -1))
    last = int(max(start.max(), placed.submit[-1]))
    windows = [(hours.until(last), np.array([k in own for own in placement.windows_of])) for k, hours in enumerate(placement.windows)]
    group, at_once = _groups(placement)
    answers = []
    for pool, mine in _apart(placement):
        if not (mine & (start >= 0)).any():
            continue
        if at_once is not None and group is not None and np.isin(group[~mine & (group >= 0)], group[mine]).any():
            raise _not_asked("limits over jobs of several pools")
        procs = machine.pools[pool].nodes * machine.pools[pool].procs
        own = SiteRules(windows, None, eligible, group, at_once, machine.overhead, procs, mine)
        answers.append(one_step(placed, start, policy, rules=own))
    return placed, OneStep.joined(answers)


def _not_asked(what: str) -> PolicyError:
    return PolicyError(f"one-step agreement does not support {what}; remove them from the machine file", "unsupported_machine")


def _after_others(placement: Placement, submit: Array, end: Array) -> Array:
    """Return the earliest start of each job: its submission, or the last recorded end of its predecessors."""
    eligible = submit.copy()
    for job, others in enumerate(placement.after):
        eligible[job] = max([int(submit[job]), *(int(end[other]) for other in others)])
    return eligible


def _groups(placement: Placement) -> tuple[Array | None, Array | None]:
    """Return the limit of each job, and the number of running jobs that each limit allows."""
    if not placement.limits:
        return None, None
    if (placement.limits_of.counts > 1).any() or any(procs < NEVER or second < NEVER for _, procs, second in placement.limits):
        raise _not_asked("limits of processors, or several of them for one job")
    return np.array([own[0] if own else -1 for own in placement.limits_of], np.int64), np.array([jobs for jobs, *_ in placement.limits])


def _apart(placement: Placement) -> list[tuple[int, Array]]:
    """Return each pool with the jobs that run only there, bool."""
    machine = placement.machine
    used = np.unique(placement.partition).tolist()
    pools = [{machine.place_of(name) for name in machine.partitions[k].pools} for k in used]
    for k, own in enumerate(pools):
        shared = [j for j, other in enumerate(pools) if own & other]
        if len(own) > 1 or len({machine.partitions[used[j]].tier for j in [k, *shared]}) > 1:
            raise _not_asked("partitions of several pools, or with tiers on one pool")
    return [
        (pool, np.isin(placement.partition, [k for k, own in zip(used, pools, strict=True) if pool in own])) for pool in set().union(*pools)
    ]
