"""Ranks of waiting jobs in an order that changes only with the past usage of users, groups and queues in a sliding window.

Each waiting job keeps its rank, and each block of places its lowest rank. Before a pass, a job is ranked again only if the past usage of
its user, group or queue has changed since the last pass: a job started or ended, or an earlier start or end left the window.
"""

import math

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.history import change_at, history_of, read_history
from walltime.engine.kernel.memory import HOLE, RANKED_BLOCK
from walltime.engine.kernel.queue import order_rank
from walltime.engine.kernel.words import number_at, set_number, set_word, word_at


@kernel
def ranks_are_old(state, rules):
    """Return whether events may have happened since the ranks were last updated."""
    return state.ranked != state.queue_last or history_of(rules.order_history, 0).seen != state.now


@called_kernel
def renew_ranks(state, rules, jobs, queue, ranks, bounds):
    """Rank new arrivals and the jobs whose history has changed, or all jobs if the queue was moved (`state.ranked` is 0)."""
    read_history(rules.order_history, state.now)
    own = history_of(rules.order_history, 0)
    if own.changes > 0:
        if _differ(state, rules, jobs, own):
            _rank_again(state, rules, jobs, own, queue, ranks, bounds)
        for i in range(own.changes):
            set_word(own.marks, change_at(own.changed, i).slot, 0)
        own.changes = 0
    first = max(state.ranked, state.queue_first)
    for place in range(first, state.queue_last):
        block = place // RANKED_BLOCK
        if place % RANKED_BLOCK == 0 or (place == first and state.ranked == 0):
            bounds[block] = math.inf
        ranks[place] = math.nan
        if queue[place].procs != HOLE:
            ranks[place] = _own_rank(state, rules, jobs, own, np.int64(queue[place].job))
            bounds[block] = min(bounds[block], ranks[place])
    state.ranked = state.queue_last


@kernel
def _differ(state, rules, jobs, own):
    """Return whether ranks may have changed; if all jobs of a slot have equal ranks, unmark the slots whose rank has not changed."""
    if own.alike == 0:
        return True
    differ = False
    for i in range(own.changes):
        change = change_at(own.changed, i)
        rank = order_rank(rules, state.now, jobs, change.job)
        if rank == number_at(own.values, change.slot):
            set_word(own.marks, change.slot, 0)
        else:
            set_number(own.values, change.slot, rank)
            differ = True
    return differ


@kernel
def _own_rank(state, rules, jobs, own, job):
    """Return the rank of a job; if all jobs of a slot have equal ranks, the rank is computed once per slot."""
    if own.alike == 0:
        return order_rank(rules, state.now, jobs, job)
    slot = word_at(own.slots, job)  # equal ranks imply a single key
    if math.isnan(number_at(own.values, slot)):
        set_number(own.values, slot, order_rank(rules, state.now, jobs, job))
    return number_at(own.values, slot)


@kernel
def _rank_again(state, rules, jobs, own, queue, ranks, bounds):
    """Rank the jobs of the marked slots."""
    for place in range(state.queue_first, min(state.ranked, state.queue_last)):
        if queue[place].procs == HOLE:
            continue
        job, marked = np.int64(queue[place].job), False
        for key in range(own.keys):
            marked |= word_at(own.marks, word_at(own.slots, job * own.keys + key)) != 0
        if marked:
            before, block = ranks[place], place // RANKED_BLOCK
            ranks[place] = _own_rank(state, rules, jobs, own, job)
            if ranks[place] < bounds[block]:
                bounds[block] = ranks[place]
            elif before == bounds[block]:
                _bound(state, ranks, bounds, block)


@kernel
def _bound(state, ranks, bounds, block):
    least = math.inf
    for place in range(max(block * RANKED_BLOCK, state.queue_first), min((block + 1) * RANKED_BLOCK, state.ranked)):
        if ranks[place] < least:
            least = ranks[place]
    bounds[block] = least


@kernel
def drop_rank(state, ranks, bounds, place):
    """Delete the rank of a job that starts, and update the lowest rank of its block."""
    before, block = ranks[place], place // RANKED_BLOCK
    ranks[place] = math.nan
    if before == bounds[block]:
        _bound(state, ranks, bounds, block)


@kernel
def first_of_ranks(state, ranks, bounds):
    """Return the place of the job with the lowest rank; ties go to the earliest arrival. The queue must not be empty."""
    first, last = state.queue_first // RANKED_BLOCK, (state.queue_last - 1) // RANKED_BLOCK
    least = bounds[first]
    for block in range(first + 1, last + 1):
        least = min(least, bounds[block])
    for block in range(first, last + 1):
        if bounds[block] == least:
            for place in range(max(block * RANKED_BLOCK, state.queue_first), min((block + 1) * RANKED_BLOCK, state.queue_last)):
                if ranks[place] == least:
                    return place
    return state.queue_first
