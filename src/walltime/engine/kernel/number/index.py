"""An index over a long waiting queue, to find the next job that may be backfilled.

The queue is divided into blocks of 64 places, and these into groups of 64 blocks. Each block and each group stores, for each size class,
the shortest length among its waiting jobs up to that class, so that one comparison decides whether a search may skip it. A queue of 100,000
jobs then costs only a few times as much as a queue of 10. A job that starts leaves a *hole*, a place without a job.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import push_candidate
from walltime.engine.kernel.memory import BLOCK, BY_ARRIVAL, GROUP, HOLE, NEVER, Index, Records
from walltime.engine.kernel.profile import size_class
from walltime.engine.kernel.queue import backfill_rank, order_rank

LONG = 1024
"""Number of places above which a queue is indexed; a shorter queue is faster to search place by place."""
SHORT = 256
"""Number of places below which the index is dropped."""


class IndexedQueue(NamedTuple):
    """The queue in order of arrival, and an index of it."""

    queue: Records
    queue_index: Index


@kernel
def keep_index(state, rules, line):
    """Build the index once the queue is long, add new arrivals to it, and drop it once the queue is short; without it, close many holes."""
    places = state.queue_last - state.queue_first
    if state.indexed:
        if places >= rules.short_queue:
            index_places(state, line, state.looked_at)
            return
        state.indexed = 0
    if places > rules.long_queue:
        close_holes(state, line.queue)
        index_places(state, line, state.queue_first)
        state.indexed = 1
    elif 4 * state.holes > places + 16:
        close_holes(state, line.queue)


@kernel
def close_holes(state, queue):
    """Close the holes in a queue without an index, and move it to place 0."""
    kept = 0
    for place in range(state.queue_first, state.queue_last):
        if place == state.looked_at:
            state.looked_at = kept
        if queue[place].procs != HOLE:
            queue[kept] = queue[place]
            kept += 1
    if state.looked_at == state.queue_last:
        state.looked_at = kept
    state.queue_first = 0
    state.queue_last = kept
    state.holes = state.ranked = state.horizon = 0


@kernel
def index_places(state, line, first):
    """Add the jobs in the queue from this place on to the index."""
    queue, index = line
    classes = state.classes
    for place in range(first, state.queue_last):
        block, group = place // BLOCK, place // GROUP
        if place % BLOCK == 0:
            index.block[block * classes : (block + 1) * classes] = NEVER
        if place % GROUP == 0:
            index.group[group * classes : (group + 1) * classes] = NEVER
        entry = queue[place]
        if entry.procs != HOLE:
            for number in range(size_class(np.int64(entry.procs)), classes):
                at = block * classes + number
                index.block[at] = min(index.block[at], entry.length)
                at = group * classes + number
                index.group[at] = min(index.group[at], entry.length)


@kernel
def leave_hole(state, line, place):
    """Remove a job that starts from the queue, leaving a hole."""
    queue, index = line
    procs, length = queue[place].procs, queue[place].length
    queue[place].procs = HOLE
    state.holes += 1
    if not state.indexed:
        return
    block, group = place // BLOCK, place // GROUP
    classes = state.classes
    own = size_class(np.int64(procs))
    if _was_shortest(index.block, block * classes + own, (block + 1) * classes, length):
        _look_through_block(state, queue, index.block, block)
        if _was_shortest(index.group, group * classes + own, (group + 1) * classes, length):
            last = min((group + 1) * BLOCK, (state.queue_last - 1) // BLOCK + 1)
            for number in range(own, classes):
                least = NEVER
                for member in range(group * BLOCK, last):
                    least = min(least, index.block[member * classes + number])
                index.group[group * classes + number] = least


@kernel
def _was_shortest(shortest, first, last, length):
    """Return whether one of these shortest lengths equals a job's length."""
    found = False
    for i in range(first, last):
        found |= shortest[i] == length
    return found


@kernel
def _look_through_block(state, queue, shortest, block):
    """Recompute the shortest lengths of a block: first for each size class alone, then up to each class."""
    first = block * state.classes
    shortest[first : first + state.classes] = NEVER
    for place in range(block * BLOCK, min((block + 1) * BLOCK, state.queue_last)):
        entry = queue[place]
        if entry.procs != HOLE:
            at = first + size_class(np.int64(entry.procs))
            shortest[at] = min(shortest[at], entry.length)
    for i in range(first + 1, first + state.classes):
        shortest[i] = min(shortest[i], shortest[i - 1])


@kernel
def may_backfill(state, entry):
    """Return whether a waiting job fits now and does not delay the head: it ends by the shadow time, or needs only extra processors.

    No job may be backfilled after the shadow time has been postponed, as indicated by extra processors below zero. Source: mualem01,
    section 2.2, step 2b.
    """
    if entry.procs > state.free or state.extra < 0:
        return False
    return entry.length <= state.shadow - state.now or entry.procs <= state.extra


@kernel
def next_candidate(state, line, place):
    """Return the first place, at or after `place`, whose job may be backfilled now (see `may_backfill`); `queue_last` for none."""
    queue, index = line
    last, free, room = state.queue_last, state.free, state.shadow - state.now
    spare = min(free, state.extra)
    if free == 0 or spare < 0:
        return last
    if not state.indexed:
        while place < last:
            entry = queue[place]
            if entry.procs <= free and (entry.length <= room or entry.procs <= spare):
                return place
            place += 1
        return last
    fitting = size_class(free)
    extra = size_class(spare) if spare > 0 else -1
    while place < last:
        if place % GROUP == 0 and not _promising(index.group, place // GROUP * state.classes, fitting, room, extra):
            place += GROUP
        elif place % BLOCK == 0 and not _promising(index.block, place // BLOCK * state.classes, fitting, room, extra):
            place += BLOCK
        else:
            entry = queue[place]
            if entry.procs <= free and (entry.length <= room or entry.procs <= spare):
                return place
            place += 1
    return last


@kernel
def collect_candidates(state, rules, jobs, line, candidates, first):
    """Collect the places from `first` on of the jobs that may be backfilled alone, as a heap by their backfill ranks.

    A job whose score is too low to start in place of the blocked head is not a candidate (threshold of `walltime.policy.Wfp`).
    """
    now, most = state.now, 0.0
    state.candidates = 0
    if rules.order_threshold > 0.0:
        most = rules.order_threshold * order_rank(rules, now, jobs, state.blocked)
    place = next_candidate(state, line, first)
    while place < state.queue_last:
        job = np.int64(line.queue[place].job)
        if rules.order_threshold == 0.0 or order_rank(rules, now, jobs, job) <= most:
            rank = backfill_rank(rules, now, jobs, job) if rules.backfill_order != BY_ARRIVAL else 0.0
            push_candidate(state, candidates, rank, place, place)
        place = next_candidate(state, line, place + 1)


@kernel
def _promising(shortest, first, fitting, room, extra):
    """Return whether the block or group whose classes begin here may contain a job that may be backfilled."""
    if shortest[first + fitting] <= room:
        return True
    return extra >= 0 and shortest[first + extra] < NEVER
