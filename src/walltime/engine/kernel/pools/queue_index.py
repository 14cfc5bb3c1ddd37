"""The queue of a machine of several pools: places in queue order and, for each block of places, the smallest needs of its jobs.

A job that starts leaves a hole, and so does a throttled one (limits.py). If the order changes with time, the queue is sorted in every pass.
"""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import exclude, include
from walltime.engine.kernel.memory import HOLE, KEEP, NEVER
from walltime.engine.kernel.pools.memory import PLACES_IN_BLOCK
from walltime.engine.kernel.queue import order_rank


@kernel
def is_steady(rules):
    """Return whether the order of two waiting jobs never changes."""
    return not (rules.order_reads_time or rules.predict_again or rules.order_starvation < NEVER)


@kernel
def enter_queue(state, rules, jobs, queue_index, index):
    """Put an arriving job into the queue: at its place in the order, or at the end if the queue is sorted in every pass."""
    own, job, queue = 0.0, jobs[index], queue_index.queue
    k = state.waiting
    if is_steady(rules):
        own = order_rank(rules, state.now, jobs, index)
        while k > 0 and before(job.tier, own, job.arrival, jobs[queue[k - 1].job].tier, queue[k - 1].rank, queue[k - 1].tie):
            queue[k] = queue[k - 1]
            k -= 1
    state.unreserved += 1
    if k < state.looked_at:
        state.freed = 1
    take_place(state, jobs, queue_index, k, index, own)


@kernel
def take_place(state, jobs, queue_index, k, index, own):
    """Put a job of this rank into a place of the queue; the jobs behind have already moved back by one place."""
    job, queue = jobs[index], queue_index.queue
    place = queue[k]
    place.rank, place.tie, place.job = own, job.arrival, index
    place.partition, place.procs, place.second, place.length, place.woken = job.partition, job.procs, job.second, job.own_length, 0
    state.waiting += 1
    if k == state.waiting - 1 and k % PLACES_IN_BLOCK > 0:
        _add_to_block(queue[k], queue_index.blocks[k // PLACES_IN_BLOCK])
        include(queue_index.live, k // PLACES_IN_BLOCK)
    else:
        _renew_blocks(state, queue_index, k)


@called_kernel
def sort_waiting_jobs(state, rules, jobs, queue_index):
    """Sort the waiting jobs by tier, rank and arrival, by insertion: few jobs have moved since the last pass."""
    queue, last_tier, last_rank, last_tie = queue_index.queue, NEVER, 0.0, np.int64(0)  # of the place before
    changed = state.waiting
    for i in range(state.waiting):
        job, tie = queue[i].job, queue[i].tie
        rank, tier = order_rank(rules, state.now, jobs, job), jobs[job].tier
        queue[i].rank, queue[i].length = rank, jobs[job].own_length
        if not before(tier, rank, tie, last_tier, last_rank, last_tie):
            last_tier, last_rank, last_tie = tier, rank, tie
            continue
        partition, procs, second, length, woken = queue[i].partition, queue[i].procs, queue[i].second, queue[i].length, queue[i].woken
        k = i
        while k > 0 and before(tier, rank, tie, jobs[queue[k - 1].job].tier, queue[k - 1].rank, queue[k - 1].tie):
            queue[k] = queue[k - 1]
            k -= 1
        place = queue[k]
        place.rank, place.tie, place.job, place.partition, place.procs, place.second = rank, tie, job, partition, procs, second
        place.length, place.woken = length, woken
        if k // PLACES_IN_BLOCK < i // PLACES_IN_BLOCK:
            changed = min(changed, k)
    if changed < state.waiting:
        _renew_blocks(state, queue_index, changed)


@kernel
def drop_started(state, rules, jobs, queue_index):
    """Remove the jobs that have started from the queue, and throttled jobs if the order changes with time."""
    queue, left, first, has_holes = queue_index.queue, 0, state.waiting, rules.mode != KEEP and not is_steady(rules)
    for i in range(state.waiting):
        if queue[i].procs == HOLE if has_holes else jobs[queue[i].job].start >= 0:
            first = min(first, left)
            continue
        if left < i:
            queue[left] = queue[i]
        left += 1
    if left < state.waiting:
        state.waiting, state.holes = left, 0
        _renew_blocks(state, queue_index, first)


@kernel
def place_of(state, rules, jobs, queue, index):
    """Return the place of a job in the queue."""
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


@kernel
def comes_before(state, rules, jobs, one, other):
    """Return whether a job comes before another in the queue."""
    own, others = order_rank(rules, state.now, jobs, one), order_rank(rules, state.now, jobs, other)
    return before(jobs[one].tier, own, jobs[one].arrival, jobs[other].tier, others, jobs[other].arrival)


@kernel
def before(tier, own, arrival, other_tier, other, other_arrival):
    """Return whether a job comes before another, by tier, rank and arrival."""
    if tier != other_tier:
        return tier > other_tier
    if own != other:
        return own < other
    return arrival < other_arrival


@called_kernel
def _renew_blocks(state, queue_index, first):
    """Recompute the blocks from the one of this place on."""
    for number in range(first // PLACES_IN_BLOCK, (state.waiting + PLACES_IN_BLOCK - 1) // PLACES_IN_BLOCK):
        renew_block(state, queue_index, number)


@kernel
def renew_block(state, queue_index, number):
    """Recompute a block, and whether it is live: whether it has a waiting job."""
    block = queue_index.blocks[number]
    block.least, block.partitions, block.woken, block.old = HOLE, 0, 0, 0
    for i in range(number * PLACES_IN_BLOCK, min((number + 1) * PLACES_IN_BLOCK, state.waiting)):
        _add_to_block(queue_index.queue[i], block)
    if block.least < HOLE:
        include(queue_index.live, number)
    else:
        exclude(queue_index.live, number)


@kernel
def _add_to_block(place, block):
    block.woken += 1 if place.woken else 0
    if place.procs != HOLE:
        block.least = min(block.least, place.procs)
        block.partitions |= 1 << min(place.partition, np.int64(62))
