"""Limits on what runs at the same time for a group of jobs; and jobs that wait for a limit alone, which are parked.

A job over a limit is passed over, as if it were not there. So it leaves the queue's searches until the limit has room again. Then the first
of those that wait for it is called back to its place; and when it has been considered, and the limit still has room, the next one, which
comes behind it. So a limit that lets one job start looks at one job, however many wait.

Where the queue's order is steady, a limit has one list of them, in queue order, and they keep their places. Where the order changes as time
goes by, jobs of the same size and length still keep theirs, which is that of arrival. So they are one group, the limit asks the first job
of each group, and those who are parked have no place in the queue, which is sorted at every pass.

Under other orders, and where reservations are kept, nobody is parked, and all are looked at.
"""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import include
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_LENGTH, BY_WFP, HOLE, NEVER
from walltime.engine.kernel.pools.line import comes_before, is_steady, place_of, take_place
from walltime.engine.kernel.pools.memory import PLACES_IN_BLOCK
from walltime.engine.kernel.queue import order_rank


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
def parks(rules):
    """Whether jobs that wait for a limit alone are parked: where the order within their groups never changes."""
    return is_steady(rules) or (rules.order in (BY_ARRIVAL, BY_LENGTH, BY_WFP) and not rules.predict_again)


@kernel
def _are_in_one_group(rules, jobs, one, other):
    """Whether two jobs that wait for the same limit are in one group of it; they keep their order then."""
    job, beside = jobs[one], jobs[other]
    if is_steady(rules):
        return True
    return job.tier == beside.tier and job.procs == beside.procs and job.order_length == beside.order_length


@called_kernel
def park(state, rules, jobs, limits, line, place, number):
    """Let a job wait for a limit alone."""
    index, limit, parked = line.queue[place].job, limits[number], line.parked
    line.queue[place].procs = HOLE
    line.blocks[place // PLACES_IN_BLOCK].old = 1
    before, first = np.int64(-1), limit.first_group if limit.parked > 0 else np.int64(-1)
    while first >= 0 and not _are_in_one_group(rules, jobs, first, index):
        before, first = first, parked[first].next_group
    if first < 0:
        parked[index].last = index
        parked[index].next_group = limit.first_group if limit.parked > 0 else -1
        limit.first_group = first = index
    elif comes_before(state, rules, jobs, parked[first].last, index):
        parked[parked[first].last].next = index
        parked[first].last = index
    elif comes_before(state, rules, jobs, index, first):
        parked[index].next, parked[index].last, parked[index].next_group = first, parked[first].last, parked[first].next_group
        _put_first(limit, parked, before, index)
        first = index
    else:
        at = first
        if comes_before(state, rules, jobs, parked[first].entered, index):
            at = parked[first].entered
        while comes_before(state, rules, jobs, parked[at].next, index):
            at = parked[at].next
        parked[index].next = parked[at].next
        parked[at].next = index
    parked[first].entered = index
    limit.parked += 1
    if not is_steady(rules):
        parked[index].away = 1
        state.away += 1
        state.holes += 1


@kernel
def _put_first(limit, parked, before, first):
    """Put a group, by its first job, behind the one whose first job is `before`, below 0 for none."""
    if before < 0:
        limit.first_group = first
    else:
        parked[before].next_group = first


@called_kernel
def call_next(state, rules, jobs, limits, line, number, last):
    """Call back the first job that is parked for a limit, behind the one that was called last (-1 for none), if the limit has room.

    Its place is the one that it has kept in a steady queue, or where it belongs in this pass; outside of one the last, as the queue is yet
    to be sorted.
    """
    limit, parked, steady = limits[number], line.parked, is_steady(rules)
    if limit.parked == 0 or limit.used_jobs >= limit.jobs or limit.used_procs >= limit.procs or limit.used_second > limit.second:
        return
    # the job, the first one of its group, the job ahead of it there, and the first one of the group ahead
    index = first = prior = before = np.int64(-1)
    ahead, group = np.int64(-1), limit.first_group
    while group >= 0:
        if steady or last < 0 or limit.used_procs + jobs[group].procs <= limit.procs:  # outside of a pass more may end
            at = _last_ahead(state, rules, jobs, parked, group, last)
            if at != parked[group].last:
                job = group if at < 0 else parked[at].next
                if index < 0 or comes_before(state, rules, jobs, job, index):
                    index, first, prior, before = job, group, at, ahead
        ahead, group = group, parked[group].next_group
    if index < 0:
        return
    if prior >= 0:
        parked[prior].next = parked[index].next
        if parked[first].last == index:
            parked[first].last = prior
        if parked[first].entered == index:
            parked[first].entered = prior
    elif parked[first].last == index:
        _put_first(limit, parked, before, parked[index].next_group)
    else:
        first = parked[index].next
        parked[first].last, parked[first].next_group = parked[index].last, parked[index].next_group
        parked[first].entered = parked[index].entered if parked[index].entered != index else first
        _put_first(limit, parked, before, first)
    limit.parked -= 1
    limit.calls = 1
    at = place_of(state, rules, jobs, line.queue, index) if steady or last >= 0 else state.waiting
    if not steady:
        parked[index].away = 0
        state.away -= 1
        for i in range(state.waiting, at, -1):
            line.queue[i] = line.queue[i - 1]
        take_place(state, jobs, line, at, index, order_rank(rules, state.now, jobs, index))
    place, block, job = line.queue[at], line.blocks[at // PLACES_IN_BLOCK], jobs[index]
    place.procs, place.called = job.procs, number + 1
    block.called += 1
    include(line.live, at // PLACES_IN_BLOCK)
    block.least = min(block.least, job.procs)
    block.partitions |= 1 << min(job.partition, np.int64(62))


@kernel
def _last_ahead(state, rules, jobs, parked, first, last):
    """Of a group, by its first job, the last job that does not come behind a job (-1 for none); -1 if all do."""
    if last < 0 or comes_before(state, rules, jobs, last, first):
        return np.int64(-1)
    at = first
    if not comes_before(state, rules, jobs, last, parked[first].entered):
        at = parked[first].entered
    while at != parked[first].last and not comes_before(state, rules, jobs, last, parked[at].next):
        at = parked[at].next
    return at
