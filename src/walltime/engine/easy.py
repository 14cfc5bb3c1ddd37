"""One scheduling pass with a reservation for at most the head of the queue: FCFS and EASY.

The queue is in order of arrival, whatever the policy's order; queue.py tells who comes first in another one.
"""

from __future__ import annotations

from walltime.engine.heap import drop_first, push
from walltime.engine.index import index_places, keep_index, leave_hole, may_backfill, next_candidate
from walltime.engine.jit import kernel
from walltime.engine.machine import kind_behind, start_job
from walltime.engine.memory import BACKFILLED, BY_ARRIVAL, HOLE, NEVER
from walltime.engine.queue import enter_newcomers, first_in_order, place_of, rank


@kernel
def pass_with_head_reservation(state, rules, jobs, running, events, notes, queue, index, ordered, predicting):
    """Start the jobs at the head that fit; then let others jump ahead that do not delay the new head.

    Source: P2 section 2.2 (SPEC A-02, A-03). Returns how many steps it took at most.

    A job that is backfilled by its own length and then expected to run for longer may move the shadow time back. Extra nodes below zero
    tell that; then the shadow time is found again, and all candidates get another look.
    """
    if ordered is not None:
        if rules.order != BY_ARRIVAL and not rules.order_reads_time:
            enter_newcomers(state, rules, jobs, queue, ordered.heads)
    if state.freed == 0 and _same_head(state, rules, jobs, queue, ordered):
        # Nothing was freed, so the head is still blocked, and so is everyone who was blocked behind it: only the
        # newcomers need a look. An overdue running job would move the shadow time; then everybody is looked at.
        first = state.looked_at
        if not rules.backfill:
            return _done(state, 0)
        if state.shadow > state.now:
            seen = state.queue_last - first
            indexed, state.indexed = state.indexed, 0  # as the newcomers are not in the index yet
            _backfill(state, rules, jobs, running, events, notes, queue, index, ordered, predicting, first)
            state.indexed = indexed
            if state.indexed:
                index_places(state, queue, index, first)
                state.looked_at = state.queue_last
            if state.extra >= 0:
                return _done(state, seen)

    keep_index(state, rules, queue, index)
    blocked = _start_heads(state, rules, jobs, running, events, notes, queue, index, ordered, predicting)
    state.blocked = blocked
    steps = state.queue_last - state.queue_first
    if blocked < 0 or not rules.backfill:
        return _done(state, steps)
    while True:
        if rules.depth == 0:
            state.shadow, state.extra = NEVER, 0  # nobody is to be delayed
        else:
            _reserve_for_head(state, jobs, running, blocked)
        _backfill(state, rules, jobs, running, events, notes, queue, index, ordered, predicting, state.queue_first)
        if state.extra >= 0:
            break
    return _done(state, steps)


@kernel
def _same_head(state, rules, jobs, queue, ordered):
    """Whether the job that was blocked at the head of the queue in the last pass is there still."""
    if state.blocked < 0:
        return False
    if ordered is not None:
        if rules.order != BY_ARRIVAL:
            return not rules.order_reads_time and first_in_order(state, rules, jobs, queue, ordered.heads) == state.blocked
    return True


@kernel
def _start_heads(state, rules, jobs, running, events, notes, queue, index, ordered, predicting):
    """Start jobs from the head of the queue while they fit; returns the first that does not, -1 if nobody is left."""
    while True:
        while state.queue_first < state.queue_last and queue[state.queue_first].procs == HOLE:
            state.queue_first += 1
            state.holes -= 1
        if state.queue_first == state.queue_last:
            return -1
        place = state.queue_first
        job = queue[place].job
        if ordered is not None:
            if rules.order != BY_ARRIVAL:
                job = first_in_order(state, rules, jobs, queue, ordered.heads)
                place = place_of(state, jobs, queue, job)
        if jobs[job].procs > state.free:
            return job
        leave_hole(state, queue, index, place)
        start_job(state, rules, jobs, running, events, notes, predicting, job, kind_behind(state, jobs[job], 0))


@kernel
def _reserve_for_head(state, jobs, running, head):
    """Find the shadow time and the extra nodes: when the head will fit, and what it will leave over."""
    own = jobs[head]
    if state.head == head and state.shadow > state.now and state.extra >= 0:
        _draw_shadow_nearer(state, running)
    else:
        _find_shadow(state, running, own.procs)
        state.head = head
    if own.promised < 0:
        own.promised = state.shadow


@kernel
def _find_shadow(state, running, wanted):
    """Walk the running jobs by expected end until so many processors are free.

    All running jobs whose expected end is the shadow time count, not only the first that suffice (SPEC Q-06). An overdue
    job is expected to end now (SPEC Q-05).
    """
    available, shadow = state.free, state.now
    i = 0
    while available < wanted or (i < state.running and running[i].expected <= shadow):
        available += running[i].procs
        shadow = max(shadow, running[i].expected)
        i += 1
    state.shadow = shadow
    state.extra = available - wanted
    state.before_shadow = i


@kernel
def _draw_shadow_nearer(state, running):
    """Bring the shadow time of the same head up to date: backfilled jobs have not moved it, jobs that ended early may have.

    Starts and ends keep the extra nodes and `before_shadow` true (machine.py); extra nodes below zero tell that a job has started
    which the queue order put before this head, or which is expected to run past the shadow time. So it is enough to walk back
    from the shadow time for as long as the head fits without the jobs that end there; mostly that is no step at all.
    """
    while state.shadow > state.now:
        earlier = state.before_shadow
        at_shadow = 0
        while earlier > 0 and running[earlier - 1].expected == state.shadow:
            earlier -= 1
            at_shadow += running[earlier].procs
        if at_shadow > state.extra:
            return
        state.shadow = max(state.now, running[earlier - 1].expected)  # the head does not fit now, so somebody runs until then
        state.extra -= at_shadow
        state.before_shadow = earlier


@kernel
def _backfill(state, rules, jobs, running, events, notes, queue, index, ordered, predicting, first):
    """Start the jobs from queue place `first` on that may jump ahead, in the backfill order.

    What may start now only becomes less while others start, so in another order than that of arrival it is enough to put those in
    order that may start at first.
    """
    if ordered is not None:
        if rules.backfill_order != BY_ARRIVAL or rules.order_threshold > 0.0:
            _backfill_in_order(state, rules, jobs, running, events, notes, queue, index, ordered.candidates, predicting, first)
            return
    place = next_candidate(state, queue, index, first)
    while place < state.queue_last:
        leave_hole(state, queue, index, place)
        start_job(state, rules, jobs, running, events, notes, predicting, queue[place].job, BACKFILLED)
        place = next_candidate(state, queue, index, place + 1)


@kernel
def _backfill_in_order(state, rules, jobs, running, events, notes, queue, index, candidates, predicting, first):
    """Backfill by rank. A candidate whose score is too low to start in the place of the blocked head is none (SPEC A-12)."""
    now, count = state.now, 0
    most = 0.0
    if rules.order_threshold > 0.0:
        most = rules.order_threshold * rank(rules.order, rules.order_parameter, now, jobs[state.blocked])
    place = next_candidate(state, queue, index, first)
    while place < state.queue_last:
        job = queue[place].job
        if rules.order_threshold == 0.0 or rank(rules.order, rules.order_parameter, now, jobs[job]) <= most:
            push(candidates, count, rank(rules.backfill_order, rules.backfill_parameter, now, jobs[job]), jobs[job].arrival, job)
            count += 1
        place = next_candidate(state, queue, index, place + 1)
    while count > 0:
        job = candidates[0].job
        drop_first(candidates, count)
        count -= 1
        if may_backfill(state, jobs[job]):
            leave_hole(state, queue, index, place_of(state, jobs, queue, job))
            start_job(state, rules, jobs, running, events, notes, predicting, job, BACKFILLED)


@kernel
def _done(state, seen):
    state.looked_at = state.queue_last
    state.freed = 0
    return seen
