"""Queue orders: the scores of waiting jobs, and which of them comes first."""

import math
import sys

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.callbacks import call_score
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.history import starving_after
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_LENGTH, BY_WFP, HOLE, NEVER, RANKED_BLOCK

LARGEST = sys.float_info.max
RANK_ERROR = 1e-6
"""Relative and absolute tolerance by which a rank may be lower than its bound: more than the rounding of logarithms."""


@kernel
def rank(order, parameter, starvation, limit, now, jobs, index):
    """Return the rank of a waiting job, its negative score: the lowest comes first, ties by arrival; NaN counts as the lowest score.

    A job that has waited longer than `starvation` and its limit (history.py) comes before all that have not.
    """
    if order != BY_ARRIVAL and now - jobs[index].submit > starving_after(limit, starvation, now):
        return -math.inf
    return unbounded_rank(order, parameter, starvation != NEVER or limit != 0, now, jobs, index)


@kernel
def unbounded_rank(order, parameter, bounded, now, jobs, index):
    """Return the rank of a job as if it did not starve; it is finite if the order is `bounded`, so that starving jobs come first."""
    job = jobs[index]
    if order == BY_ARRIVAL:
        return float(job.arrival)
    if order == BY_LENGTH:
        return float(job.order_length)
    if order == BY_WFP:
        ratio = (now - job.submit) / job.order_length
        power = ratio
        for _ in range(parameter - 1):
            power *= ratio
        own = -(power * job.procs)
    else:
        score = call_score(parameter, index, now, job.order_length, job.procs, job.submit)
        own = math.inf if math.isnan(score) else -score
    return max(own, -LARGEST) if bounded else own


@kernel
def order_rank(rules, now, jobs, job):
    """Return the rank of a waiting job in the order of the queue."""
    return rank(rules.order, rules.order_parameter, rules.order_starvation, rules.order_limit, now, jobs, job)


@kernel
def unstarved_rank(rules, now, jobs, job):
    """Return the rank of a job in the order of the queue, if no job starves or the starving job is found separately."""
    bounded = rules.order_starvation != NEVER or rules.order_limit != 0
    return unbounded_rank(rules.order, rules.order_parameter, bounded, now, jobs, job)


@kernel
def backfill_rank(rules, now, jobs, job):
    """Return the rank of a waiting job in the order of backfilling."""
    return rank(rules.backfill_order, rules.backfill_parameter, rules.backfill_starvation, rules.backfill_limit, now, jobs, job)


@kernel
def first_by_rank(state, rules, jobs, queue, ordered):
    """Return the place of the first waiting job as of now, in an order that changes with time; the queue must not be empty.

    Ties go to the first place, as the queue is in order of arrival. Where scores only grow, as WFP's do, a block of places whose
    best score at a later time, `horizon`, is lower than the best score now can be skipped until then.
    """
    starving = place_of_starving(state, rules, jobs, queue)
    if starving >= 0:
        return starving
    first, last = state.queue_first // RANKED_BLOCK, (state.queue_last - 1) // RANKED_BLOCK
    _enter_places(state, rules, jobs, queue, ordered, first, last)
    foremost = first
    for block in range(first + 1, last + 1):
        if ordered.bound[block] < ordered.bound[foremost]:
            foremost = block
    best = _first_in_block(state, rules, jobs, queue, ordered, foremost, state.now)
    for block in range(first, last + 1):
        if block != foremost and (best < 0 or ordered.bound[block] <= ordered.rank[best]):
            place = _first_in_block(state, rules, jobs, queue, ordered, block, state.now)
            if place >= 0:
                if best < 0 or ordered.rank[place] < ordered.rank[best] or (place < best and ordered.rank[place] == ordered.rank[best]):
                    best = place
    return best


@kernel
def _enter_places(state, rules, jobs, queue, ordered, first, last):
    """Store the data for the newcomers' ranks, and bound the ranks in their blocks, or in all blocks once the horizon is reached."""
    for place in range(max(state.ranked, state.queue_first), state.queue_last):
        job = jobs[queue[place].job]
        ordered.since[place], ordered.length[place] = job.submit, job.order_length
        ordered.size[place] = math.nan if queue[place].procs == HOLE else job.procs
    changed = max(first, state.ranked // RANKED_BLOCK)
    state.ranked = state.queue_last
    if first == last:
        state.horizon = 0  # one block is always looked at
        return
    if state.now >= state.horizon:
        waited = state.now - jobs[queue[state.queue_first].job].submit
        state.horizon = state.now + waited // 16 + 1
        changed = first
    for block in range(changed, last + 1):
        bound_block(state, rules, jobs, queue, ordered, block)


@kernel
def bound_block(state, rules, jobs, queue, ordered, block):
    """Find the lowest rank that a job in this block can have until the horizon; it is -inf if scores may fall."""
    if state.horizon == 0:
        return
    ordered.bound[block] = -math.inf
    if rules.order_grows:
        place = _first_in_block(state, rules, jobs, queue, ordered, block, state.horizon)
        ordered.bound[block] = ordered.rank[place] - RANK_ERROR * (1.0 + abs(ordered.rank[place])) if place >= 0 else math.inf


@kernel
def _first_in_block(state, rules, jobs, queue, ordered, block, now):
    """Return the place of the lowest rank in a block at a time, -1 if all places are holes; the usual order is vectorized."""
    begin, end = max(block * RANKED_BLOCK, state.queue_first), min((block + 1) * RANKED_BLOCK, state.queue_last)
    ranks, since, length, size = ordered.rank, ordered.since, ordered.length, ordered.size
    if rules.order == BY_WFP and rules.order_parameter == 3:
        for place in range(begin, end):
            ratio = (now - since[place]) / length[place]
            ranks[place] = -(ratio * ratio * ratio * size[place])
    else:
        for place in range(begin, end):
            ranks[place] = math.nan
            if queue[place].procs != HOLE:
                job = np.int64(queue[place].job)
                ranks[place] = unstarved_rank(rules, now, jobs, job)
    best, least = -1, math.inf
    for place in range(begin, end):
        if ranks[place] < least or (best < 0 and not math.isnan(ranks[place])):
            best, least = place, ranks[place]
    return best


@kernel
def first_in_window(state, rules, jobs, queue):
    """Return the place of the first job in the window, as of now; the queue must not be empty."""
    best, least, seen, place = -1, math.inf, 0, state.queue_first
    while place < state.queue_last and seen < rules.window:
        if queue[place].procs != HOLE:
            own = order_rank(rules, state.now, jobs, np.int64(queue[place].job))
            if best < 0 or own < least:
                best, least = place, own
            seen += 1
        place += 1
    return best


@kernel
def place_of_starving(state, rules, jobs, queue):
    """Return the place of the oldest waiting job if it starves, else -1; if the oldest job does not starve, no job does."""
    if rules.order_starvation == NEVER and rules.order_limit == 0:
        return -1
    place = state.queue_first
    while queue[place].procs == HOLE:
        place += 1
    after = starving_after(rules.order_limit, rules.order_starvation, state.now)
    return place if state.now - jobs[queue[place].job].submit > after else -1


@kernel
def first_in_heap(state, rules, jobs, queue, heads):
    """Return the first waiting job, which must exist, and drop the items of started jobs before it."""
    starving = place_of_starving(state, rules, jobs, queue)
    if starving >= 0:
        return np.int64(queue[starving].job)
    while state.heads > 0 and jobs[heads[0].job].start >= 0:
        pop(heads, state.heads)
        state.heads -= 1
    return heads[0].job


@kernel
def enter_newcomers(state, rules, jobs, queue, heads):
    """Add the new jobs to the heap of heads, or all jobs if predictions may have changed."""
    first = state.looked_at
    if rules.predict_again and state.freed:
        state.heads = 0
        first = state.queue_first
    for place in range(first, state.queue_last):
        if queue[place].procs != HOLE:
            job = np.int64(queue[place].job)
            own = unstarved_rank(rules, state.now, jobs, job)
            push(heads, state.heads, own, jobs[job].arrival, job)
            state.heads += 1


@kernel
def place_of(state, jobs, queue, job):
    """Return the place of a waiting job in the queue, which is in order of arrival."""
    low, high = state.queue_first, state.queue_last - 1
    while low < high:
        middle = (low + high) // 2
        if jobs[queue[middle].job].arrival < jobs[job].arrival:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def drop_started(state, jobs, queue):
    """Remove the jobs that have started from the queue."""
    kept = state.queue_first
    for place in range(state.queue_first, state.queue_last):
        if jobs[queue[place].job].start < 0:
            queue[kept] = queue[place]
            kept += 1
    state.queue_last = kept


@kernel
def sort_queue(state, rules, jobs, queue, ranks):
    """Sort the queue by the policy's order as of now; by insertion, as ranks change little from pass to pass."""
    for place in range(state.queue_first, state.queue_last):
        job, procs, length = np.int64(queue[place].job), queue[place].procs, queue[place].length
        own = order_rank(rules, state.now, jobs, job)
        arrival = jobs[job].arrival
        k = place
        while k > state.queue_first and (ranks[k - 1] > own or (ranks[k - 1] == own and jobs[queue[k - 1].job].arrival > arrival)):
            queue[k] = queue[k - 1]
            ranks[k] = ranks[k - 1]
            k -= 1
        queue[k].job, queue[k].procs, queue[k].length = job, procs, length
        ranks[k] = own


@kernel
def sort_waiting(state, rules, jobs, queue, ordered, last):
    """Sort the jobs in queue[:last] by the policy's order as of now into `ordered.sorted`, by insertion; the queue itself is unchanged."""
    order, ranks = ordered.sorted, ordered.rank
    count = 0
    for i in range(state.sorted):
        if jobs[order[i]].start < 0:
            order[count] = order[i]
            count += 1
    first = last
    while first > state.queue_first and jobs[queue[first - 1].job].arrival >= state.sorted_arrivals:
        first -= 1
    for place in range(first, last):
        order[count] = queue[place].job
        count += 1
    if last > state.queue_first:
        state.sorted_arrivals = max(state.sorted_arrivals, jobs[queue[last - 1].job].arrival + 1)
    state.sorted = count
    for i in range(count):
        job = order[i]
        own = order_rank(rules, state.now, jobs, job)
        arrival = jobs[job].arrival
        k = i
        while k > 0 and (ranks[k - 1] > own or (ranks[k - 1] == own and jobs[order[k - 1]].arrival > arrival)):
            order[k] = order[k - 1]
            ranks[k] = ranks[k - 1]
            k -= 1
        order[k] = job
        ranks[k] = own
