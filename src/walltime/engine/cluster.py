"""The event loop for machines of several pools: partitions, a second resource, outages, limits, dependencies, jobs that run at first.

It is to such machines what loop.py is to one number of processors, and is not used for these. The rules, which cluster_reference.py
states again in plain Python:

* A job takes processors and second resource from the pools of its partition, in their order, as much from each as stays free for as
  long as it is planned to run; it keeps them until it ends.
* Jobs are considered in the order of their partition's tier, then the queue's order, then arrival. A job over one of its limits is
  passed over, as if it were not there.
* A job that cannot start is blocked. If each pool of its partition has fewer than `depth` reservations it gets one, at the earliest
  time at which it fits into the plan. On a machine of one pool this is FCFS, EASY, hybrid or conservative backfilling from scratch.
* Without backfilling, the pools of a blocked job are closed to the jobs behind it; with it, these may start where they do not delay a
  reservation.
* An outage that is known in advance is part of the plan. Where capacity goes that is in use, the jobs run on, and what ends is not
  given out again until the outage is covered.
"""

from __future__ import annotations

from walltime.engine.cluster_plan import first_hole, plan_of_running, take
from walltime.engine.heap import drop_first, push
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.memory import BACKFILLED, DONE, IMMEDIATE, NEVER, PAUSED, RESERVED, STUCK
from walltime.engine.queue import rank


def run_cluster(
    state, rules, jobs, pools, pools_of, outages, changes, limits, limits_of, followers, arrivals, events, running, queue, candidates,
    given, plan, budget,
):  # fmt: skip
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; returns as `run` of loop.py does."""
    while budget > 0:
        now = _next_event(state, changes, arrivals, events)
        if now == NEVER:
            return DONE if state.started == len(jobs) else STUCK
        state.now = now
        while state.events > 0 and events[0].rank == now:
            _end_next(state, jobs, pools, limits, limits_of, followers, arrivals, events, running, given)
        while state.next_change < len(changes) and changes[state.next_change].time == now:
            _change_capacity(state, pools, outages, changes)
        while state.arriving > 0 and arrivals[0].rank == now:
            _arrive(state, jobs, arrivals, queue)
        if state.waiting > 0:
            _sort(state, rules, jobs, queue)
            plan_of_running(state, jobs, pools, outages, running, given, plan)
            budget -= state.waiting * (1 + state.steps)
            _pass(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, plan)
        budget -= 1
    return PAUSED


@kernel
def _next_event(state, changes, arrivals, events):
    """Time of the next arrival, termination or change of capacity; changes alone are no reason to go on."""
    now = NEVER
    if state.arriving > 0:
        now = arrivals[0].rank
    if state.events > 0:
        now = min(now, events[0].rank)
    if state.next_change < len(changes) and (now < NEVER or state.waiting > 0):
        now = min(now, changes[state.next_change].time)
    return now


@called_kernel
def _end_next(state, jobs, pools, limits, limits_of, followers, arrivals, events, running, given):
    """The next termination: give back what the job had, and let those arrive that have waited for its end alone."""
    index = events[0].job
    drop_first(events, state.events)
    state.events -= 1
    place = 0
    while running[place].job != index:
        place += 1
    for i in range(place, state.running - 1):
        running[i] = running[i + 1]
    state.running -= 1
    for p in range(len(pools)):
        pools[p].free_procs += given[index, p, 0]
        pools[p].free_second += given[index, p, 1]
    _count(jobs, limits, limits_of, index, -1)
    for k in range(followers.first[index], followers.first[index + 1]):
        follower = followers.items[k]
        jobs[follower].pending -= 1
        if jobs[follower].pending == 0:
            jobs[follower].submit = max(jobs[follower].submit, state.now)
            push(arrivals, state.arriving, jobs[follower].submit, follower, follower)
            state.arriving += 1


@kernel
def _change_capacity(state, pools, outages, changes):
    """The next change: an outage becomes known, begins or ends."""
    change = changes[state.next_change]
    outage = outages[change.outage]
    outage.phase = change.phase
    if change.phase == 2:
        pools[outage.pool].free_procs -= outage.procs
        pools[outage.pool].free_second -= outage.second
    elif change.phase == 3:
        pools[outage.pool].free_procs += outage.procs
        pools[outage.pool].free_second += outage.second
    state.next_change += 1


@kernel
def _arrive(state, jobs, arrivals, queue):
    """The next arrival."""
    index = arrivals[0].job
    drop_first(arrivals, state.arriving)
    state.arriving -= 1
    jobs[index].arrival = state.arrivals
    state.arrivals += 1
    queue[state.waiting].job = index
    state.waiting += 1


@called_kernel
def _sort(state, rules, jobs, queue):
    """Sort the waiting jobs by tier, rank and arrival; they are nearly sorted since the last time."""
    for i in range(state.waiting):
        index = queue[i].job
        own, tier, arrival = rank(rules.order, rules.order_parameter, state.now, jobs, index), jobs[index].tier, jobs[index].arrival
        k = i
        while k > 0 and _before(tier, own, arrival, jobs[queue[k - 1].job].tier, queue[k - 1].rank, queue[k - 1].tie):
            queue[k].rank, queue[k].tie, queue[k].job = queue[k - 1].rank, queue[k - 1].tie, queue[k - 1].job
            k -= 1
        queue[k].rank, queue[k].tie, queue[k].job = own, arrival, index


@kernel
def _before(tier, own, arrival, other_tier, other, other_arrival):
    """Whether a job comes before another one."""
    if tier != other_tier:
        return tier > other_tier
    if own != other:
        return own < other
    return arrival < other_arrival


@called_kernel
def _pass(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, plan):
    """Consider the waiting jobs in order."""
    for p in range(len(pools)):
        pools[p].reservations = pools[p].blocked = pools[p].closed = 0
    in_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    state.candidates = 0
    for i in range(state.waiting):
        index = queue[i].job
        if not _within_limits(jobs, limits, limits_of, index):
            continue
        job = jobs[index]
        reserves = _reservations(pools, pools_of, job) < rules.depth
        if reserves or not rules.backfill or in_order or not _is_blocked(pools, pools_of, job):
            begin = first_hole(state, plan, pools, pools_of, job, NEVER - 1 if reserves else state.now)
            if reserves and job.reserved_start < 0 and begin < NEVER and (rules.depth > 1 or begin > state.now):
                job.reserved_start = begin
            if begin == state.now:
                _start(state, jobs, pools, pools_of, limits, limits_of, events, running, given, plan, index)
                continue
            if reserves and begin < NEVER:
                take(state, plan, pools, pools_of, jobs, given, index, begin)
        elif not in_order:
            candidates[state.candidates].rank = rank(rules.backfill_order, rules.backfill_parameter, state.now, jobs, index)
            candidates[state.candidates].tie, candidates[state.candidates].job = job.arrival, index
            state.candidates += 1
        for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
            pool = pools[pools_of.items[k]]
            pool.blocked = 1
            pool.closed = 0 if rules.backfill else 1
            pool.reservations += 1 if reserves else 0
    _backfill(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, candidates, given, plan)
    left = 0
    for i in range(state.waiting):
        if jobs[queue[i].job].start < 0:
            queue[left].rank, queue[left].tie, queue[left].job = queue[i].rank, queue[i].tie, queue[i].job
            left += 1
    state.waiting = left


@kernel
def _backfill(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, candidates, given, plan):
    """Start the candidates that fit now and delay no reservation, in the backfill order, ties by arrival."""
    while state.candidates > 0:
        best = 0
        for i in range(1, state.candidates):
            if _before(0, candidates[i].rank, candidates[i].tie, 0, candidates[best].rank, candidates[best].tie):
                best = i
        index = candidates[best].job
        state.candidates -= 1
        last = candidates[state.candidates]
        candidates[best].rank, candidates[best].tie, candidates[best].job = last.rank, last.tie, last.job
        if _within_limits(jobs, limits, limits_of, index):
            if first_hole(state, plan, pools, pools_of, jobs[index], state.now) == state.now:
                _start(state, jobs, pools, pools_of, limits, limits_of, events, running, given, plan, index)


@called_kernel
def _start(state, jobs, pools, pools_of, limits, limits_of, events, running, given, plan, index):
    """Start a job in the place that has just been found for it."""
    job = jobs[index]
    take(state, plan, pools, pools_of, jobs, given, index, state.now)
    job.start = state.now
    if _is_blocked(pools, pools_of, job):
        job.kind = BACKFILLED
    else:
        job.kind = IMMEDIATE if job.submit == state.now else RESERVED
    for p in range(len(pools)):
        pools[p].free_procs -= given[index, p, 0]
        pools[p].free_second -= given[index, p, 1]
    _count(jobs, limits, limits_of, index, 1)
    push(events, state.events, state.now + job.runtime, state.started, index)
    state.events += 1
    state.started += 1
    expected = state.now + job.run_length
    i = state.running
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job = expected, index
    state.running += 1


@kernel
def _reservations(pools, pools_of, job):
    """The most reservations that any pool of a job's partition has."""
    most = 0
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        most = max(most, pools[pools_of.items[k]].reservations)
    return most


@kernel
def _is_blocked(pools, pools_of, job):
    """Whether a job ahead of this one waits for a pool of its partition."""
    blocked = False
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        blocked |= pools[pools_of.items[k]].blocked > 0
    return blocked


@kernel
def _within_limits(jobs, limits, limits_of, index):
    """Whether a job may start as far as its limits go."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        if limit.used_jobs + 1 > limit.jobs or limit.used_procs + jobs[index].procs > limit.procs:
            return False
        if limit.used_second + jobs[index].second > limit.second:
            return False
    return True


@kernel
def _count(jobs, limits, limits_of, index, sign):
    """Count a job that starts (1) or has ended (-1) towards its limits."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        limit.used_jobs += sign
        limit.used_procs += sign * jobs[index].procs
        limit.used_second += sign * jobs[index].second
