"""A scheduling pass on a machine of several pools that makes all reservations again, and functions that every pass there needs.

Most passes start no job, so a pass does only work that may change something:

* If nothing but arrivals has happened, and these are last in the queue, only they are considered.
* If all pools of a partition are blocked and have their reservations, a job there that needs more than is free now is skipped after one
  look at its place in the queue. So is a job that would delay the earliest reservation of its partition.
* Blocks of such jobs are skipped after one look, too. A job that starts, or is over a limit (limits.py), leaves a hole in the queue; blocks
  with nothing but holes are skipped.
* Jobs start in one place of the code, and the plan is made in one place, so that both are inlined: passing all arrays took a sixth of the
  time.
* The plan, or EASY's part of it (plan.py), is made when a job that fits now could delay a reservation, or when a reservation must be noted.
  Until then reservations are deferred, since the reservations of jobs ahead do not depend on jobs behind them.
"""

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.bits import next_member
from walltime.engine.kernel.heap import pop_candidate, push_candidate
from walltime.engine.kernel.memory import BACKFILLED, HEAD, HOLE, IMMEDIATE, KEEP, NEVER, RESERVED
from walltime.engine.kernel.pools.limits import full_limit, is_shut, is_tight, may_start, throttle, throttles, use_limits, wake_next
from walltime.engine.kernel.pools.memory import PLACES_IN_BLOCK, list_of
from walltime.engine.kernel.pools.plan import (
    are_shadows_enough,
    end_of_gap,
    first_gap,
    fits_beside,
    is_short,
    plan_of_running,
    reserve_shadow,
    share,
    take,
    take_from_shadows,
)
from walltime.engine.kernel.pools.queue_index import drop_started, is_steady, renew_block, sort_waiting_jobs
from walltime.engine.kernel.queue import backfill_rank
from walltime.engine.kernel.running import overdue, run_job


@kernel
def pass_with_fresh_reservations(state, rules, jobs, machine, queue_index, plan, kept):
    """Consider the waiting jobs in order; repeat the pass after a start that changes the plan, if at most the head has a reservation."""
    if kept is not None:
        return
    _begin_pass(state, rules, jobs, machine, queue_index, plan)
    in_order, queue, partitions = rules.own_backfill_order == 0, queue_index.queue, machine.partitions
    i, is_over, smallest = state.looked_at, False, NEVER  # `smallest`: the fewest processors that a candidate needs
    state.looked_at = state.waiting
    while not (state.again or is_over):
        i = _next_place(state, partitions, queue_index, i)
        at, in_queue, woken, may = i, i < state.waiting, np.int64(0), False
        if in_queue:
            i += 1
            woken = queue[at].woken
            if woken:
                queue[at].woken = machine.limits[woken - 1].waking = 0
                queue_index.blocks[at // PLACES_IN_BLOCK].woken -= 1
            may = _admit_or_throttle(state, rules, jobs, machine, queue_index, at)
        elif state.candidates > 0 and smallest <= state.most_free:
            at = pop_candidate(state, queue_index.candidates)
            may = may_start(state, jobs, machine, queue[at].job)
        else:
            is_over = True
        fits, settled, is_blocked, reserves, at_once = False, False, False, False, False
        if may:
            job, fits = jobs[queue[at].job], _may_fit(state, partitions, queue[at])
            settled = partitions[job.partition].settled > 0
            is_blocked, _, reservations = _claims_on(machine.pools, machine.pools_of, job.partition)
            reserves = in_queue and not settled and reservations < rules.depth
            at_once = reserves or not (in_queue and rules.backfill and is_blocked) or in_order
        if not state.planned and _needs_plan(state, rules, jobs, queue_index.deferred, is_over, fits, at_once):
            _make_plan(state, rules, jobs, machine, queue_index, plan)
            fits = fits and _may_fit(state, partitions, queue[at])
        if fits and at_once and _fits_now(state, rules, machine, plan, jobs[queue[at].job]):
            behind = is_blocked and (in_queue or rules.depth > 0 or _is_behind(state, jobs, machine, queue_index, at))
            _start_now(state, rules, jobs, machine, queue_index, plan, at, behind)
        elif may and in_queue:
            if fits and not at_once:
                index = queue[at].job
                smallest = min(smallest, queue[at].procs)
                push_candidate(state, queue_index.candidates, backfill_rank(rules, state.now, jobs, index), jobs[index].arrival, at)
            if not settled:
                _block(state, rules, jobs, machine, queue_index, plan, queue[at].job, reserves)
        if woken:
            wake_next(state, rules, jobs, machine.limits, queue_index, woken - 1, queue[at].job)
    if state.again:
        state.freed = 1
    if state.holes == state.waiting or 4 * state.holes > state.waiting + 16 or (state.holes > 0 and not is_steady(rules)):
        drop_started(state, rules, jobs, queue_index)
        state.looked_at = state.waiting


@kernel
def _admit_or_throttle(state, rules, jobs, machine, queue_index, at):
    """Return whether a place in the queue has a job whose limits and windows let it start; throttle a job that is over a limit."""
    if queue_index.queue[at].procs == HOLE:
        return False
    full = full_limit(jobs, machine.limits, machine.limits_of, queue_index.queue[at].job)
    if full >= 0 and throttles(rules):
        throttle(state, rules, jobs, machine.limits, queue_index, at, full)
    return full < 0 and not is_shut(state, jobs, machine, queue_index.queue[at].job)


@kernel
def _needs_plan(state, rules, jobs, deferred, is_over, fits, at_once):
    """Return whether the plan must be made, for a job that fits now but may delay a reservation, or to note reservations after the pass."""
    if is_over:
        for k in range(state.deferred):  # noqa: SIM110 (a generator cannot be compiled)
            if jobs[deferred[k]].reserved_start < 0:
                return True
        return False
    return fits and (state.deferred > 0 or (at_once and (state.outages > 0 or rules.predict_own != rules.predict_running)))


@kernel
def _next_place(state, partitions, queue_index, i):
    """Return the first place from this one on that must be considered; `waiting` if there is none."""
    blocks = (state.waiting + PLACES_IN_BLOCK - 1) // PLACES_IN_BLOCK
    while i < state.waiting:
        if i % PLACES_IN_BLOCK == 0:
            i = PLACES_IN_BLOCK * next_member(queue_index.live, i // PLACES_IN_BLOCK, blocks, 1)
            if i >= state.waiting:
                return state.waiting
        block, last = queue_index.blocks[i // PLACES_IN_BLOCK], min((i // PLACES_IN_BLOCK + 1) * PLACES_IN_BLOCK, state.waiting)
        if block.old and i % PLACES_IN_BLOCK == 0:
            renew_block(state, queue_index, i // PLACES_IN_BLOCK)
        if block.partitions & ~state.settled != 0 or block.woken > 0:
            while i < last and _is_idle(state, partitions, queue_index.queue[i]):
                i += 1
            if i < last:
                return i
            continue
        if block.least > state.most_free:
            i = last
        while i < last and not _may_fit(state, partitions, queue_index.queue[i]):
            i += 1
        if i < last:
            return i
    return i


@kernel
def _is_idle(state, partitions, place):
    """Return whether a place has no waiting job, or one that can neither start nor be blocked; a job that was just woken is not idle."""
    if place.woken:
        return False
    return place.procs == HOLE or (partitions[place.partition].settled and not _may_fit(state, partitions, place))


@kernel
def _begin_pass(state, rules, jobs, machine, queue_index, plan):
    """Continue where the last pass ended, or begin again if anything other than arrivals has happened since."""
    if not is_steady(rules):
        sort_waiting_jobs(state, rules, jobs, queue_index)
        state.freed = 1
    state.candidates = 0
    state.freed |= state.windowed  # the passing of time alone may shut jobs out
    if state.freed == 0 and not overdue(state, machine.running):
        plan.time[0] = state.now
        return
    state.looked_at = state.planned = state.deferred = state.freed = 0
    for p in range(len(machine.pools)):
        machine.pools[p].reservations = machine.pools[p].blocked = machine.pools[p].closed = 0
        machine.pools[p].begin = NEVER
    for k in range(len(machine.partitions)):
        machine.partitions[k].settled = 0
    state.settled = 0
    _count_free(state, machine.pools, machine.pools_of, machine.partitions)


@kernel
def _count_free(state, pools, pools_of, partitions):
    """Count the processors that are free now for each partition, ignoring reservations."""
    state.most_free = 0
    for part in range(len(partitions)):
        own, procs, second = partitions[part], np.int64(0), np.int64(0)
        for p in list_of(pools_of, part):
            pool = pools[p]
            if not pool.closed:
                procs += max(pool.free_procs, 0)
                second += max(pool.free_second, 0)
        own.free_procs, own.free_second, own.until, own.extra = procs, second, NEVER, procs
        state.most_free = max(state.most_free, procs)


@kernel
def _count_beside(pools, pools_of, partitions):
    """Find until which time, or on how many processors, jobs of each partition may run next to the earliest reservation."""
    for part in range(len(partitions)):
        own, until = partitions[part], NEVER
        for p in list_of(pools_of, part):
            until = min(until, pools[p].begin)
        if until < NEVER:
            own.until, own.extra = until, own.free_procs
            for p in list_of(pools_of, part):
                pool = pools[p]
                if pool.begin == until:
                    own.extra -= max(pool.free_procs - pool.left_procs, 0)


@kernel
def _count_taken(state, machine, p, given, length):
    """Subtract a starting job's processors in a pool from the free ones of each partition; `extra` may stay too large, which is safe."""
    pool, partitions, members = machine.pools[p], machine.partitions, machine.partitions_of
    if pool.closed:
        return
    runs_on = pool.begin == NEVER or state.now + length > pool.begin
    for part in list_of(members, p):
        own = partitions[part]
        own.free_procs -= given[0]
        own.free_second -= given[1]
        own.extra -= given[0] if runs_on else 0


@kernel
def _block(state, rules, jobs, machine, queue_index, plan, index, reserves):
    """Make a job wait for the pools of its partition; if it `reserves`, it gets a reservation, at once or when the plan is made."""
    job = jobs[index]
    if reserves and state.planned and not is_short(rules):
        _reserve(state, rules, machine, plan, job, index)
    elif reserves:
        queue_index.deferred[state.deferred] = index
        state.deferred += 1
        state.planned = 0
    for p in list_of(machine.pools_of, job.partition):
        pool = machine.pools[p]
        pool.blocked = 1
        pool.reservations += 1 if reserves else 0
        pool.closed = 0 if rules.backfill else 1
    state.settled = -1  # all partitions from the 63rd on share one bit
    for part in range(len(machine.partitions)):
        _, all_blocked, reservations = _claims_on(machine.pools, machine.pools_of, part)
        machine.partitions[part].settled = 1 if all_blocked and reservations >= rules.depth else 0
        if machine.partitions[part].settled == 0:
            state.settled &= ~(1 << min(part, 62))
    if not rules.backfill:
        _count_free(state, machine.pools, machine.pools_of, machine.partitions)
        _count_beside(machine.pools, machine.pools_of, machine.partitions)


@kernel
def _may_fit(state, partitions, place):
    """Return whether enough is free for the job of a place now, and when the earliest reservation of its partition begins."""
    part = partitions[place.partition]
    if place.procs > part.free_procs or place.second > part.free_second:
        return False
    return place.procs <= part.extra or place.length <= part.until - state.now


@kernel
def _fits_now(state, rules, machine, plan, job):
    """Return whether a job for which enough is free now fits for its planned length."""
    if not state.planned:
        return True
    if are_shadows_enough(state, rules):
        return fits_beside(state, machine.pools, machine.pools_of, plan.least, job)
    return end_of_gap(state, machine.pools, machine.pools_of, plan, job, 0) < 0


@kernel
def _start_now(state, rules, jobs, machine, queue_index, plan, place, behind):
    """Start a job, given by its place in the queue, that has just been found to fit now; `behind`: whether a job ahead of it waits."""
    index, least = queue_index.queue[place].job, plan.least
    job = jobs[index]
    if state.planned and are_shadows_enough(state, rules):
        share(machine.pools, machine.pools_of, machine.given, job, index, least)
        take_from_shadows(state, machine.pools, machine.pools_of, machine.given, job, index)
    elif state.planned:
        take(state, machine, plan, job, index, state.now)
    else:
        for p in list_of(machine.pools_of, job.partition):
            least[p, 0], least[p, 1] = max(machine.pools[p].free_procs, 0), max(machine.pools[p].free_second, 0)
        share(machine.pools, machine.pools_of, machine.given, job, index, least)
    if job.reserved_start < 0 and rules.depth > 1 and _claims_on(machine.pools, machine.pools_of, job.partition)[2] < rules.depth:
        job.reserved_start = state.now
    start_reserved(state, rules, jobs, machine, index, behind)
    block = queue_index.blocks[place // PLACES_IN_BLOCK]
    if queue_index.queue[place].procs == block.least:
        block.old = 1
    queue_index.queue[place].procs = HOLE
    state.holes += 1


@kernel
def _make_plan(state, rules, jobs, machine, queue_index, plan):
    state.planned = 1
    if are_shadows_enough(state, rules):
        for k in range(state.deferred):
            reserve_shadow(state, jobs, machine, queue_index.deferred[k])
        _count_beside(machine.pools, machine.pools_of, machine.partitions)
        return
    plan_of_running(state, machine, plan)
    for k in range(state.deferred):
        _reserve(state, rules, machine, plan, jobs[queue_index.deferred[k]], queue_index.deferred[k])
    if not is_short(rules):
        state.deferred = 0


@kernel
def _reserve(state, rules, machine, plan, job, index):
    """Give a blocked job the earliest reservation that fits into the plan, if any does."""
    begin = first_gap(state, machine.pools, machine.pools_of, plan, job, state.now)
    if begin < NEVER:
        if job.reserved_start < 0 and (rules.depth > 1 or begin > state.now):
            job.reserved_start = begin
        take(state, machine, plan, job, index, begin)


@kernel
def start_reserved(state, rules, jobs, machine, index, behind):
    """Start a job that has a reservation from now on; `behind`: whether a job ahead of it waits."""
    job = jobs[index]
    job.start = state.now
    job.kind = BACKFILLED if behind else IMMEDIATE if job.submit == state.now else RESERVED
    use_pools(machine, job, index, 1)
    if rules.mode != KEEP:
        for p in list_of(machine.pools_of, job.partition):
            if machine.given[index, p, 0] + machine.given[index, p, 1] > 0:
                _count_taken(state, machine, p, machine.given[index, p], job.own_length)
        state.most_free = 0
        for part in range(len(machine.partitions)):
            state.most_free = max(state.most_free, machine.partitions[part].free_procs)
    use_limits(jobs, machine.limits, machine.limits_of, index, 1)
    run_job(state, rules, jobs, machine, index)
    if len(machine.limits) > 0 and is_tight(machine.limits, machine.limits_of, index):
        state.freed = state.tightened = 1  # a waiting job may now be over a limit
    if job.run_length != job.own_length:
        state.freed = 1
        if rules.mode == HEAD:
            state.again = 1
    if rules.mode == KEEP and job.run_length > job.own_length:
        state.broken = 1  # it takes amounts that were reserved for others


@kernel
def use_pools(machine, job, index, sign):
    """Take the amounts of a starting job out of its pools (1), or release them (-1)."""
    for p in list_of(machine.pools_of, job.partition):
        machine.pools[p].free_procs -= sign * machine.given[index, p, 0]
        machine.pools[p].free_second -= sign * machine.given[index, p, 1]


@kernel
def _claims_on(pools, pools_of, partition):
    """Return whether jobs ahead wait for any pool of a partition, and for all, and the most reservations on one of them."""
    some, every, most = False, True, np.int64(0)
    for p in list_of(pools_of, partition):
        blocked = pools[p].blocked > 0
        some |= blocked
        every &= blocked
        most = max(most, pools[p].reservations)
    return some, every, most


@kernel
def _is_behind(state, jobs, machine, queue_index, place):
    """Return whether a job ahead of a candidate waits for a pool of its partition; used where no job has a reservation."""
    partition = queue_index.queue[place].partition
    for i in range(place):
        ahead = queue_index.queue[i]
        if ahead.procs != HOLE and share_a_pool(machine.pools_of, ahead.partition, partition):
            if may_start(state, jobs, machine, ahead.job):
                return True
    return False


@kernel
def share_a_pool(pools_of, one, other):
    """Return whether two partitions have a pool in common."""
    if one == other:
        return True
    for p in list_of(pools_of, one):
        for other_pool in list_of(pools_of, other):
            if p == other_pool:
                return True
    return False
