"""Orders of the queue: the scores of waiting jobs, and who of them comes first."""

from __future__ import annotations

import math

from walltime.engine.callbacks import call_score
from walltime.engine.heap import drop_first, push
from walltime.engine.jit import kernel
from walltime.engine.memory import BY_ARRIVAL, BY_LENGTH, BY_WFP, HOLE


@kernel
def rank(order, parameter, now, job):
    """Rank of a waiting job, its negative score: the least goes first, ties by arrival. A score that is NaN counts as the lowest."""
    if order == BY_ARRIVAL:
        return float(job.arrival)
    if order == BY_LENGTH:
        return float(job.order_length)
    wait = now - job.submit
    if order == BY_WFP:
        ratio = wait / job.order_length
        power = 1.0
        for _ in range(parameter):
            power *= ratio
        return -(power * job.procs)
    score = call_score(parameter, wait, job.order_length, job.procs, job.submit)
    return math.inf if math.isnan(score) else -score


@kernel
def rank_all(state, rules, jobs, queue, ordered):
    """Rank all waiting jobs as of now, each at its place in the queue; a hole comes last.

    For the usual exponent of WFP this is a loop over a few numbers that lie side by side, which the compiler does several at a time.
    """
    first, last, now = state.queue_first, state.queue_last, state.now
    ranks, since, length, size = ordered.rank, ordered.since, ordered.length, ordered.size
    for place in range(max(state.ranked, first), last):
        job = jobs[queue[place].job]
        since[place], length[place] = job.submit, job.order_length
        size[place] = -math.inf if queue[place].procs == HOLE else job.procs
    state.ranked = last
    if rules.order == BY_WFP and rules.order_parameter == 3:
        for place in range(first, last):
            ratio = (now - since[place]) / length[place]
            ranks[place] = -(ratio * ratio * ratio * size[place])
    else:
        for place in range(first, last):
            ranks[place] = math.inf
            if queue[place].procs != HOLE:
                ranks[place] = rank(rules.order, rules.order_parameter, now, jobs[queue[place].job])


@kernel
def first_by_rank(state, ranks):
    """The place of the waiting job with the least rank; of equal ones the first wins, as the queue is in order of arrival.

    There is a job at the first place.
    """
    best = state.queue_first
    least = ranks[best]
    for place in range(best + 1, state.queue_last):
        if ranks[place] < least:
            best, least = place, ranks[place]
    return best


@kernel
def first_in_heap(state, jobs, heads):
    """The waiting job that comes first, -1 if there is none; those that have started are dropped."""
    while state.heads > 0 and jobs[heads[0].job].start >= 0:
        drop_first(heads, state.heads)
        state.heads -= 1
    return heads[0].job if state.heads > 0 else -1


@kernel
def enter_newcomers(state, rules, jobs, queue, heads):
    """Put the jobs that have not been looked at into the heap of heads; all of them where predictions may have changed."""
    first = state.looked_at
    if rules.predict_again and state.freed:
        state.heads = 0
        first = state.queue_first
    for place in range(first, state.queue_last):
        if queue[place].procs != HOLE:
            job = int(queue[place].job)
            push(heads, state.heads, rank(rules.order, rules.order_parameter, state.now, jobs[job]), jobs[job].arrival, job)
            state.heads += 1


@kernel
def place_of(state, jobs, queue, job):
    """Where a waiting job stands in the queue, which is in order of arrival."""
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
    """Close the gaps that started jobs left in the queue."""
    kept = state.queue_first
    for place in range(state.queue_first, state.queue_last):
        if jobs[queue[place].job].start < 0:
            queue[kept] = queue[place]
            kept += 1
    state.queue_last = kept


@kernel
def sort_queue(state, rules, jobs, queue, ranks):
    """Bring the queue into the policy's order as of now.

    Ranks change little from one pass to the next, so the jobs are nearly in order and insertion is the right sort.
    """
    for place in range(state.queue_first, state.queue_last):
        job, procs, length = queue[place].job, queue[place].procs, queue[place].length
        own, arrival = rank(rules.order, rules.order_parameter, state.now, jobs[job]), jobs[job].arrival
        k = place
        while k > state.queue_first and (ranks[k - 1] > own or (ranks[k - 1] == own and jobs[queue[k - 1].job].arrival > arrival)):
            queue[k] = queue[k - 1]
            ranks[k] = ranks[k - 1]
            k -= 1
        queue[k].job, queue[k].procs, queue[k].length = job, procs, length
        ranks[k] = own
