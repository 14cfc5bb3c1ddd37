"""One scheduling pass on a machine of several pools that makes all reservations anew; and what every pass there needs."""

from __future__ import annotations

from walltime.engine.kernel.callbacks import call_notice
from walltime.engine.kernel.heap import push
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import BACKFILLED, HEAD, IMMEDIATE, KEEP, NEVER, RESERVED
from walltime.engine.kernel.pools.plan import first_hole, take
from walltime.engine.kernel.queue import rank


@called_kernel
def sort_waiting_jobs(state, rules, jobs, queue):
    """Sort the waiting jobs by tier, rank and arrival; they are nearly sorted since the last time."""
    for i in range(state.waiting):
        index = queue[i].job
        own = rank(rules.order, rules.order_parameter, rules.order_starvation, state.now, jobs, index)
        tier, arrival = jobs[index].tier, jobs[index].arrival
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
def pass_with_fresh_places(
    state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, plan, predicting
):
    """Consider the waiting jobs in order.

    Where at most the head has a reservation, and a job is planned with another length once it runs, the pass is made again after its
    start, since what it leaves is not what was planned.
    """
    for p in range(len(pools)):
        pools[p].reservations = pools[p].blocked = pools[p].closed = 0
    in_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    in_order = in_order and rules.backfill_starvation == rules.order_starvation
    state.candidates = 0
    free = _free_now(plan)
    for i in range(state.waiting):
        index = queue[i].job
        if not within_limits(jobs, limits, limits_of, index):
            continue
        job = jobs[index]
        reserves = _reservations(pools, pools_of, job) < rules.depth
        if job.procs > free and not reserves:
            pass  # it is blocked, whatever its partition
        elif reserves or not rules.backfill or in_order or not _is_blocked(pools, pools_of, job):
            begin = first_hole(state, plan, pools, pools_of, job, NEVER - 1 if reserves else state.now)
            if reserves and job.reserved_start < 0 and begin < NEVER and (rules.depth > 1 or begin > state.now):
                job.reserved_start = begin
            if begin == state.now:
                take(state, plan, pools, pools_of, jobs, given, index, begin)
                behind = _is_blocked(pools, pools_of, job)
                start_in_place(state, rules, jobs, pools, limits, limits_of, events, running, given, predicting, index, behind)
                if state.again:
                    break
                free = _free_now(plan)
                continue
            if reserves and begin < NEVER:
                take(state, plan, pools, pools_of, jobs, given, index, begin)
        elif not in_order:
            own = rank(rules.backfill_order, rules.backfill_parameter, rules.backfill_starvation, state.now, jobs, index)
            candidates[state.candidates].rank = own
            candidates[state.candidates].tie, candidates[state.candidates].job = job.arrival, index
            state.candidates += 1
        for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
            pool = pools[pools_of.items[k]]
            pool.blocked = 1
            pool.closed = 0 if rules.backfill else 1
            pool.reservations += 1 if reserves else 0
    _backfill(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, candidates, given, plan, predicting)
    drop_started(state, jobs, queue)


@kernel
def _free_now(plan):
    """The processors that are free now, of all pools."""
    free = 0
    for p in range(plan.free.shape[1]):
        free += max(plan.free[0, p, 0], 0)
    return free


@kernel
def drop_started(state, jobs, queue):
    """Take the jobs that have started out of the queue."""
    left = 0
    for i in range(state.waiting):
        if jobs[queue[i].job].start < 0:
            queue[left].rank, queue[left].tie, queue[left].job = queue[i].rank, queue[i].tie, queue[i].job
            left += 1
    state.waiting = left


@kernel
def _backfill(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, candidates, given, plan, predicting):
    """Start the candidates that fit now and delay no reservation, in the backfill order, ties by arrival."""
    while state.candidates > 0 and not state.again:
        index = next_candidate(state, candidates)
        if within_limits(jobs, limits, limits_of, index):
            if first_hole(state, plan, pools, pools_of, jobs[index], state.now) == state.now:
                take(state, plan, pools, pools_of, jobs, given, index, state.now)
                behind = _is_blocked(pools, pools_of, jobs[index])
                start_in_place(state, rules, jobs, pools, limits, limits_of, events, running, given, predicting, index, behind)


@kernel
def next_candidate(state, candidates):
    """Take out the candidate of the lowest rank, ties by arrival."""
    best = 0
    for i in range(1, state.candidates):
        if _before(0, candidates[i].rank, candidates[i].tie, 0, candidates[best].rank, candidates[best].tie):
            best = i
    index = candidates[best].job
    state.candidates -= 1
    last = candidates[state.candidates]
    candidates[best].rank, candidates[best].tie, candidates[best].job = last.rank, last.tie, last.job
    return index


@called_kernel
def start_in_place(state, rules, jobs, pools, limits, limits_of, events, running, given, predicting, index, behind):
    """Start a job in the place that it has in the plan; `behind`: whether one ahead of it waits."""
    job = jobs[index]
    job.start = state.now
    if behind:
        job.kind = BACKFILLED
    else:
        job.kind = IMMEDIATE if job.submit == state.now else RESERVED
    for p in range(len(pools)):
        pools[p].free_procs -= given[index, p, 0]
        pools[p].free_second -= given[index, p, 1]
    count_towards_limits(jobs, limits, limits_of, index, 1)
    if predicting is not None:
        if rules.started:
            call_notice(rules.started, predicting.learning, index, state.now)
    push(events, state.events, state.now + job.runtime, state.started, index)
    state.events += 1
    state.started += 1
    expected = state.now + job.run_length
    i = state.running
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job, running[i].procs = expected, index, job.procs
    state.running += 1
    if rules.mode == HEAD and job.run_length != job.own_length:
        state.again = 1
    if rules.mode == KEEP and job.run_length > job.own_length:
        state.broken = 1  # it takes what was reserved for others


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
def within_limits(jobs, limits, limits_of, index):
    """Whether a job may start as far as its limits go."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        if limit.used_jobs + 1 > limit.jobs or limit.used_procs + jobs[index].procs > limit.procs:
            return False
        if limit.used_second + jobs[index].second > limit.second:
            return False
    return True


@kernel
def count_towards_limits(jobs, limits, limits_of, index, sign):
    """Count a job that starts (1) or has ended (-1) towards its limits."""
    for k in range(limits_of.first[index], limits_of.first[index + 1]):
        limit = limits[limits_of.items[k]]
        limit.used_jobs += sign
        limit.used_procs += sign * jobs[index].procs
        limit.used_second += sign * jobs[index].second
