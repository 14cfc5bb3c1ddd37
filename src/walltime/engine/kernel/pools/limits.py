"""Limits on what runs at the same time for a group of jobs; and jobs that wait for a limit alone, which are parked.

A job over a limit is passed over, as if it were not there. So it leaves the queue's searches until the limit has room again, in a list of
its limit in queue order. Then the first of these is called back to its place; and when it has been considered, and the limit still has
room, the next one, which comes behind it. So a limit that lets one job start looks at one job, however many wait.

Jobs are parked where the queue's order is steady and reservations are made anew; elsewhere all are looked at.
"""

from __future__ import annotations

import numpy as np

from walltime.engine.kernel.bits import include
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import HOLE, NEVER
from walltime.engine.kernel.pools.memory import PLACES_IN_BLOCK
from walltime.engine.kernel.queue import order_rank

__all__ = ["before", "call_next", "count_towards_limits", "full_limit", "is_any_tight", "is_shut", "may_start", "park", "within_limits"]


@kernel
def may_start(state, jobs, machine, index):
    """Whether a job may start now as far as its limits and its windows go."""
    return not is_shut(state, jobs, machine, index) and within_limits(jobs, machine.limits, machine.limits_of, index)


@kernel
def is_shut(state, jobs, machine, index):
    """Whether one of its windows forbids a job to start now."""
    if state.windowed:
        for k in range(machine.limits_of.first[index], machine.limits_of.first[index + 1]):
            limit = machine.limits[machine.limits_of.items[k]]
            if limit.shut or state.now + jobs[index].believed > limit.until:
                return True
    return False


@kernel
def within_limits(jobs, limits, limits_of, index):
    """Whether a job may start as far as its limits go."""
    return full_limit(jobs, limits, limits_of, index) < 0


@kernel
def full_limit(jobs, limits, limits_of, index):
    """The first limit that a job would be over if it started, by number; -1 for none."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        if limit.used_jobs + 1 > limit.jobs or limit.used_procs + jobs[index].procs > limit.procs:
            return limits_of.items[k]
        if limit.used_second + jobs[index].second > limit.second:
            return limits_of.items[k]
    return -1


@kernel
def is_any_tight(limits, limits_of, index):
    """1 if another job may be over a limit that counts for this one, which has just started."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        if limit.used_jobs >= limit.jobs or limit.procs < NEVER or limit.second < NEVER:
            return 1
    return 0


@kernel
def count_towards_limits(jobs, limits, limits_of, index, sign):
    """Count a job that starts (1) or has ended (-1) towards its limits."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        limit.used_jobs += sign
        limit.used_procs += sign * jobs[index].procs
        limit.used_second += sign * jobs[index].second


@kernel
def before(tier, own, arrival, other_tier, other, other_arrival):
    """Whether a job comes before another one, by tier, rank and arrival."""
    if tier != other_tier:
        return tier > other_tier
    if own != other:
        return own < other
    return arrival < other_arrival


@called_kernel
def park(state, rules, jobs, limits, line, place, number):
    """Let a job wait for a limit alone."""
    index, limit, parked, queue = line.queue[place].job, limits[number], line.parked, line.queue
    queue[place].procs = HOLE
    line.blocks[place // PLACES_IN_BLOCK].old = 1
    if limit.parked == 0:
        limit.first_parked = limit.last_parked = index
    elif _comes_before(state, rules, jobs, limit.last_parked, index):
        parked[limit.last_parked] = index
        limit.last_parked = index
    elif _comes_before(state, rules, jobs, index, limit.first_parked):
        parked[index] = limit.first_parked
        limit.first_parked = index
    else:
        at = limit.first_parked
        if _comes_before(state, rules, jobs, limit.last_entered, index):
            at = limit.last_entered
        while _comes_before(state, rules, jobs, parked[at], index):
            at = parked[at]
        parked[index] = parked[at]
        parked[at] = index
    limit.last_entered = index
    limit.parked += 1


@kernel
def _comes_before(state, rules, jobs, one, other):
    """Whether a job comes before another one in the queue."""
    own, others = order_rank(rules, state.now, jobs, one), order_rank(rules, state.now, jobs, other)
    return before(jobs[one].tier, own, jobs[one].arrival, jobs[other].tier, others, jobs[other].arrival)


@called_kernel
def call_next(state, rules, jobs, limits, line, number, last):
    """Call back the first job that is parked for a limit, behind the one that was called last (-1 for none), if the limit has room."""
    limit, parked = limits[number], line.parked
    if limit.parked == 0 or limit.used_jobs >= limit.jobs or limit.used_procs >= limit.procs or limit.used_second > limit.second:
        return
    index, prior = limit.first_parked, np.int64(-1)
    if last >= 0 and not _comes_before(state, rules, jobs, last, index):
        prior = index
        if not _comes_before(state, rules, jobs, last, limit.last_entered):
            prior = limit.last_entered
        while prior != limit.last_parked and not _comes_before(state, rules, jobs, last, parked[prior]):
            prior = parked[prior]
        if prior == limit.last_parked:
            return
        index = parked[prior]
    if prior < 0:
        limit.first_parked = prior = parked[index]
    else:
        parked[prior] = parked[index]
    if limit.last_parked == index:
        limit.last_parked = prior
    if limit.last_entered == index:
        limit.last_entered = prior
    limit.parked -= 1
    limit.calls = 1
    at = _place_of(state, rules, jobs, line.queue, index)
    place, block, job = line.queue[at], line.blocks[at // PLACES_IN_BLOCK], jobs[index]
    place.procs, place.called = job.procs, number + 1
    block.called += 1
    include(line.live, at // PLACES_IN_BLOCK)
    block.least = min(block.least, job.procs)
    block.partitions |= 1 << min(job.partition, np.int64(62))


@kernel
def _place_of(state, rules, jobs, queue, index):
    """The place of a job in the queue."""
    rank, job = order_rank(rules, state.now, jobs, index), jobs[index]
    low, high = 0, state.waiting
    while low < high:
        middle = (low + high) // 2
        place = queue[middle]
        if before(jobs[place.job].tier, place.rank, place.tie, job.tier, rank, job.arrival):
            low = middle + 1
        else:
            high = middle
    return low
