"""Limits on simultaneously running jobs of a group, and *throttled* jobs, which wait only for a limit.

A pass ignores a job over a limit, so the job leaves the queue until the limit has room again. Then the first job that waits for the limit
returns to its place. If the limit still has room after this job has been considered, the next one returns. So if a limit has room for one
job, only one is considered, however many wait.

In a constant queue order, each limit has one list of its throttled jobs in queue order, and they keep their places. If the order changes
with time, jobs of the same size and length still keep their order of arrival. They form a group, and the limit considers the first job of
each group. Throttled jobs then have no place in the queue, which is sorted in every pass.

Under other orders, and where reservations are kept, no job is throttled, and all are considered.
"""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import include
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_LENGTH, BY_WFP, HOLE, NEVER
from walltime.engine.kernel.pools.memory import PLACES_IN_BLOCK, list_of
from walltime.engine.kernel.pools.queue_index import comes_before, is_steady, place_of, take_place
from walltime.engine.kernel.queue import order_rank


@kernel
def may_start(state, jobs, machine, index):
    """Return whether the limits and windows of a job let it start now."""
    return not is_shut(state, jobs, machine, index) and full_limit(jobs, machine.limits, machine.limits_of, index) < 0


@kernel
def is_shut(state, jobs, machine, index):
    """Return whether a window does not let a job start now."""
    if state.windowed:
        for number in list_of(machine.limits_of, index):
            limit = machine.limits[number]
            if limit.shut or state.now + jobs[index].planned > limit.until:
                return True
    return False


@kernel
def full_limit(jobs, limits, limits_of, index):
    """Return the number of the first limit that a job would exceed if it started; -1 for none.

    If a job counts several times towards a limit, its list repeats the limit that many times in a row.
    """
    last, count = np.int64(-1), np.int64(0)
    for number in list_of(limits_of, index):
        limit = limits[number]
        count = count + 1 if number == last else np.int64(1)
        last = number
        if limit.used_jobs + count > limit.jobs or limit.used_procs + jobs[index].procs > limit.procs:
            return number
        if limit.used_second + jobs[index].second > limit.second:
            return number
    return -1


@kernel
def is_tight(limits, limits_of, index):
    """Return 1 if the start of this job may have left too little of one of its limits for another job."""
    for number in list_of(limits_of, index):
        limit = limits[number]
        if limit.used_jobs >= limit.jobs or limit.procs < NEVER or limit.second < NEVER:
            return 1
    return 0


@kernel
def use_limits(jobs, limits, limits_of, index, sign):
    """Count a job that starts (1) or has ended (-1) towards its limits."""
    for number in list_of(limits_of, index):
        limit = limits[number]
        limit.used_jobs += sign
        limit.used_procs += sign * jobs[index].procs
        limit.used_second += sign * jobs[index].second


@kernel
def throttles(rules):
    """Return whether jobs that wait only for a limit are throttled; this requires that the order within their groups never changes."""
    return is_steady(rules) or (rules.order in (BY_ARRIVAL, BY_LENGTH, BY_WFP) and not rules.predict_again)


@kernel
def _are_in_one_group(rules, jobs, one, other):
    """Return whether two jobs that wait for the same limit are in one of its groups, in which they keep their order."""
    job, peer = jobs[one], jobs[other]
    if is_steady(rules):
        return True
    return job.tier == peer.tier and job.procs == peer.procs and job.order_length == peer.order_length


@called_kernel
def throttle(state, rules, jobs, limits, queue_index, place, number):
    """Take a job out of the queue and let it wait for a limit."""
    index, limit, throttled = queue_index.queue[place].job, limits[number], queue_index.throttled
    queue_index.queue[place].procs = HOLE
    queue_index.blocks[place // PLACES_IN_BLOCK].old = 1
    before, first = np.int64(-1), limit.first_group if limit.throttled > 0 else np.int64(-1)
    while first >= 0 and not _are_in_one_group(rules, jobs, first, index):
        before, first = first, throttled[first].next_group
    if first < 0:
        throttled[index].last = index
        throttled[index].next_group = limit.first_group if limit.throttled > 0 else -1
        limit.first_group = first = index
    elif comes_before(state, rules, jobs, throttled[first].last, index):
        throttled[throttled[first].last].next = index
        throttled[first].last = index
    elif comes_before(state, rules, jobs, index, first):
        throttled[index].next, throttled[index].last = first, throttled[first].last
        throttled[index].next_group = throttled[first].next_group
        _put_first(limit, throttled, before, index)
        first = index
    else:
        at = first
        if comes_before(state, rules, jobs, throttled[first].entered, index):
            at = throttled[first].entered
        while comes_before(state, rules, jobs, throttled[at].next, index):
            at = throttled[at].next
        throttled[index].next = throttled[at].next
        throttled[at].next = index
    throttled[first].entered = index
    limit.throttled += 1
    if not is_steady(rules):
        throttled[index].away = 1
        state.away += 1
        state.holes += 1


@kernel
def _put_first(limit, throttled, before, first):
    """Insert a group, given by its first job, after the group whose first job is `before`; at the front if that is negative."""
    if before < 0:
        limit.first_group = first
    else:
        throttled[before].next_group = first


@called_kernel
def wake_next(state, rules, jobs, limits, queue_index, number, last):
    """Wake the first throttled job of a limit that comes after the last one woken (`last`, -1 for none), if the limit has room.

    In a steady queue, the job has kept its place. Otherwise it gets the place that it has in this pass or, outside of a pass, the last
    place.
    """
    limit, throttled, steady = limits[number], queue_index.throttled, is_steady(rules)
    if limit.throttled == 0 or limit.used_jobs >= limit.jobs or limit.used_procs >= limit.procs or limit.used_second > limit.second:
        return
    # the job, the first job of its group, the job ahead of it there, and the first job of the group before
    index = first = prior = before = np.int64(-1)
    ahead, group = np.int64(-1), limit.first_group
    while group >= 0:
        if steady or last < 0 or limit.used_procs + jobs[group].procs <= limit.procs:  # outside of a pass, more jobs may end now
            at = _last_ahead(state, rules, jobs, throttled, group, last)
            if at != throttled[group].last:
                job = group if at < 0 else throttled[at].next
                if index < 0 or comes_before(state, rules, jobs, job, index):
                    index, first, prior, before = job, group, at, ahead
        ahead, group = group, throttled[group].next_group
    if index < 0:
        return
    if prior >= 0:
        throttled[prior].next = throttled[index].next
        if throttled[first].last == index:
            throttled[first].last = prior
        if throttled[first].entered == index:
            throttled[first].entered = prior
    elif throttled[first].last == index:
        _put_first(limit, throttled, before, throttled[index].next_group)
    else:
        first = throttled[index].next
        throttled[first].last, throttled[first].next_group = throttled[index].last, throttled[index].next_group
        throttled[first].entered = throttled[index].entered if throttled[index].entered != index else first
        _put_first(limit, throttled, before, first)
    limit.throttled -= 1
    limit.waking = 1
    at = place_of(state, rules, jobs, queue_index.queue, index) if steady or last >= 0 else state.waiting
    if not steady:
        throttled[index].away = 0
        state.away -= 1
        for i in range(state.waiting, at, -1):
            queue_index.queue[i] = queue_index.queue[i - 1]
        take_place(state, jobs, queue_index, at, index, order_rank(rules, state.now, jobs, index))
    place, block, job = queue_index.queue[at], queue_index.blocks[at // PLACES_IN_BLOCK], jobs[index]
    place.procs, place.woken = job.procs, number + 1
    block.woken += 1
    include(queue_index.live, at // PLACES_IN_BLOCK)
    block.least = min(block.least, job.procs)
    block.partitions |= 1 << min(job.partition, np.int64(62))


@kernel
def _last_ahead(state, rules, jobs, throttled, first, last):
    """Return the last job in the group of `first` that does not come after the job `last`; -1 if there is none or `last` is negative."""
    if last < 0 or comes_before(state, rules, jobs, last, first):
        return np.int64(-1)
    at = first
    if not comes_before(state, rules, jobs, last, throttled[first].entered):
        at = throttled[first].entered
    while at != throttled[first].last and not comes_before(state, rules, jobs, last, throttled[at].next):
        at = throttled[at].next
    return at
