"""A scheduling pass with a reservation for at most the head of the queue: FCFS and EASY.

The queue is in order of arrival under every policy; queue.py determines the first job in the policy's order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import pop_candidate
from walltime.engine.kernel.memory import BLOCK, BY_ARRIVAL, GROUP, HEAD, HOLE, NEVER, RANKED_BLOCK, Index, Loop, Pass, Records
from walltime.engine.kernel.number.index import (
    IndexedQueue,
    collect_candidates,
    index_places,
    keep_index,
    leave_hole,
    may_backfill,
    next_candidate,
)
from walltime.engine.kernel.number.lookahead import Window, choose_together, new_window
from walltime.engine.kernel.number.machine import start_job
from walltime.engine.kernel.number.ranks import drop_rank, first_of_ranks, ranks_are_old, renew_ranks
from walltime.engine.kernel.queue import bound_block, enter_newcomers, first_by_rank, first_in_heap, first_in_window, place_of
from walltime.engine.kernel.running import find_shadow


class Head(NamedTuple):
    """Data of passes with a reservation for at most the head: the index of the queue, and the `window` if jobs are considered together."""

    queue_index: Index
    window: Window | None


@kernel
def pass_with_head_reservation(state, rules, jobs, machine, queue, ordered, head):
    """Start the jobs at the head that fit, then backfill jobs that do not delay the new head; return an upper bound on the steps taken.

    A job that is backfilled by its own length and then expected to run longer may postpone the shadow time. Extra processors below zero
    indicate that; then the shadow time is recomputed, and all candidates are considered again.

    Source: mualem01, section 2.2; feitelson98, section 1 (FCFS).
    """
    line = IndexedQueue(queue, head.queue_index)
    if ordered is not None:
        if rules.order != BY_ARRIVAL and not rules.order_reads_time and rules.window == 0:
            enter_newcomers(state, rules, jobs, queue, ordered.heads)
    if state.freed == 0 and _same_head(state, rules, jobs, queue, ordered):
        # No processors were freed, so the head and the jobs behind it are still blocked, and only the newcomers are considered. But once
        # the shadow time has been reached, a running job is overdue, and all jobs are considered.
        first = state.looked_at
        if not rules.backfill:
            state.looked_at = state.queue_last
            return 0
        if state.shadow > state.now:
            seen = state.queue_last - first
            indexed, state.indexed = state.indexed, 0  # as the newcomers are not in the index yet
            _backfill(state, rules, jobs, machine, line, ordered, head.window, first)
            state.indexed = indexed
            if state.indexed:
                index_places(state, line, first)
            state.looked_at = state.queue_last
            if state.extra >= 0:
                return seen

    keep_index(state, rules, line)
    state.looked_at = state.queue_last
    state.freed = 0
    _start_heads(state, rules, jobs, machine, line, ordered)
    while state.blocked >= 0 and rules.backfill:
        if rules.depth == 0:
            state.shadow, state.extra = NEVER, 0  # there is no reservation to be delayed
        else:
            _reserve_for_head(state, rules, jobs, machine.running, ordered)
        _backfill(state, rules, jobs, machine, line, ordered, head.window, state.queue_first)
        if state.extra >= 0:
            break
    return state.queue_last - state.queue_first


@kernel
def _same_head(state, rules, jobs, queue, ordered):
    """Return whether the job that was blocked at the head of the queue in the last pass is still there."""
    if state.blocked < 0:
        return False
    if ordered is not None:
        if rules.order_threshold > 0.0 or rules.window > 0:
            return False  # a job too far behind the head to start may catch up, and others may come into the window
        if rules.order_reads_time:
            return queue[_first_now(state, rules, jobs, queue, ordered)].job == state.blocked
        if rules.order != BY_ARRIVAL:
            return first_in_heap(state, rules, jobs, queue, ordered.heads) == state.blocked
    return True


@kernel
def _first_now(state, rules, jobs, queue, ordered):
    """Return the place of the first waiting job, in an order that changes with time."""
    if rules.order_history != 0:
        if ranks_are_old(state, rules):
            renew_ranks(state, rules, jobs, queue, ordered.rank, ordered.bound)
        return first_of_ranks(state, ordered.rank, ordered.bound)
    return first_by_rank(state, rules, jobs, queue, ordered)


@kernel
def _start_heads(state, rules, jobs, machine, line, ordered):
    """Start jobs from the head of the queue as long as they fit; the first one that does not is blocked."""
    state.blocked = -1
    while True:
        while state.queue_first < state.queue_last and line.queue[state.queue_first].procs == HOLE:
            state.queue_first += 1
            state.holes -= 1
        if state.queue_first == state.queue_last:
            return
        place = state.queue_first
        if ordered is not None:
            if rules.window > 0:  # carastan17
                place = first_in_window(state, rules, jobs, line.queue)
            elif rules.order_reads_time:
                place = _first_now(state, rules, jobs, line.queue, ordered)
            elif rules.order != BY_ARRIVAL:
                place = place_of(state, jobs, line.queue, first_in_heap(state, rules, jobs, line.queue, ordered.heads))
        job = np.int64(line.queue[place].job)
        if jobs[job].procs > state.free:
            state.blocked = job
            return
        if rules.head_runtime_factor > 1:
            jobs[job].run_length *= rules.head_runtime_factor
        _start(state, rules, jobs, machine, line, ordered, place)


@kernel
def _start(state, rules, jobs, machine, line, ordered, place):
    leave_hole(state, line, place)
    if ordered is not None:
        if rules.order_history != 0:
            drop_rank(state, ordered.rank, ordered.bound, place)
        elif rules.order_reads_time and place < state.ranked:
            ordered.size[place] = math.nan
            bound_block(state, rules, jobs, line.queue, ordered, place // RANKED_BLOCK)
    start_job(state, rules, jobs, machine, np.int64(line.queue[place].job))


@kernel
def _reserve_for_head(state, rules, jobs, running, ordered):
    """Find the shadow time, at which the blocked head will fit, and the extra processors that it will not need."""
    own = jobs[state.blocked]
    if ordered is not None:
        if rules.omega > 0.0:
            _reserve_later(state, rules, running, own)
            return
    if state.head == state.blocked and state.shadow > state.now and state.extra >= 0:
        _draw_shadow_nearer(state, running)
    else:
        state.shadow, state.extra, state.before_shadow = find_shadow(running, state.running, state.now, state.free, own.procs)
        state.head = state.blocked
    if own.reserved_start < 0:
        own.reserved_start = state.shadow


@kernel
def _reserve_later(state, rules, running, own):
    """Delay the shadow time, in relaxed backfilling, by the slack of the head, which depends on its expected wait."""
    state.shadow, state.extra, state.before_shadow = find_shadow(running, state.running, state.now, state.free, own.procs)
    if own.reserved_start < 0:
        own.reserved_start = state.shadow
    # not `head`, which a corrected prediction resets
    state.earliest = min(state.earliest, state.shadow) if state.earliest_of == state.blocked else state.shadow
    state.head = state.earliest_of = state.blocked
    state.shadow = max(state.shadow, state.earliest + np.int64(math.floor(rules.omega * (own.reserved_start - own.submit))))
    i = state.before_shadow
    while i < state.running and running[i].expected <= state.shadow:
        state.extra += running[i].procs
        i += 1
    state.before_shadow = i


@kernel
def _draw_shadow_nearer(state, running):
    """Update the shadow time of an unchanged head: make it earlier as long as the head fits without the jobs that end at it.

    Usually it does not move at all.
    """
    while state.shadow > state.now:
        earlier = state.before_shadow
        at_shadow = 0
        while earlier > 0 and running[earlier - 1].expected == state.shadow:
            earlier -= 1
            at_shadow += running[earlier].procs
        if at_shadow > state.extra:
            return
        state.shadow = max(state.now, running[earlier - 1].expected)  # the head does not fit now, so some job runs until then
        state.extra -= at_shadow
        state.before_shadow = earlier


@kernel
def _backfill(state, rules, jobs, machine, line, ordered, window, first):
    """Backfill jobs from queue place `first` on, in backfill order.

    Each start leaves fewer jobs that fit, so one sort is enough.
    """
    if window is not None:
        count = np.int64(1)
        while count > 0:
            count = choose_together(state, rules, jobs, line, ordered.candidates, window, first)
            for k in range(count):
                _start(state, rules, jobs, machine, line, ordered, window.place[k])
        return
    if ordered is not None:
        if rules.backfill_order != BY_ARRIVAL or rules.order_threshold > 0.0:
            _backfill_in_order(state, rules, jobs, machine, line, ordered, first)
            return
    place = next_candidate(state, line, first)
    while place < state.queue_last and _may_overtake(state, rules, jobs):
        _start(state, rules, jobs, machine, line, ordered, place)
        place = next_candidate(state, line, place + 1)


@kernel
def _may_overtake(state, rules, jobs):
    """Return whether one more job may start before the blocked head, which has been overtaken most often among the waiting jobs.

    With a bound on overtaking, the queue is in order of arrival. All jobs before the head have started, so any other started job overtook
    it.
    """
    return state.started - jobs[state.blocked].arrival < rules.overtakes


@kernel
def _backfill_in_order(state, rules, jobs, machine, line, ordered, first):
    """Backfill by rank: start each candidate that may still start."""
    collect_candidates(state, rules, jobs, line, ordered.candidates, first)
    while state.candidates > 0 and _may_overtake(state, rules, jobs):
        place = pop_candidate(state, ordered.candidates)
        if may_backfill(state, line.queue[place]):
            _start(state, rules, jobs, machine, line, ordered, place)


def _new_head(rules: Records, _passes: Any, count: int) -> Head:
    classes = int(rules.procs).bit_length()
    indexed = (count + GROUP) * classes if rules.backfill else 0
    index = Index(np.empty(indexed // BLOCK, np.int64), np.empty(indexed // GROUP + classes, np.int64))
    return Head(index, new_window(rules) if rules.ahead else None)


_LOOPS = (
    Loop("easy", "FCFS and EASY", 48, 6, (("order", BY_ARRIVAL), ("backfill_order", BY_ARRIVAL))),
    Loop("easy-ordered", "FCFS and EASY with an ordered queue", 83, 11),
    Loop("lookahead", "backfilling that looks ahead", 87, 11, (("ahead", 1),)),
)
PASS = Pass(
    ("head", "relaxed", "lookahead"),
    pass_with_head_reservation,
    Head,
    _new_head,
    _LOOPS,
    HEAD,
    lambda memory: 2 if memory.reservations.window is not None else int(memory.ordered is not None),
)
