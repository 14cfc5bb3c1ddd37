"""One scheduling pass with reservations for some of the waiting jobs, recomputed: selective reservations, and multiple queues."""

from __future__ import annotations

import numpy as np

from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, BY_FACTOR, NEVER
from walltime.engine.kernel.number.machine import start_job
from walltime.engine.kernel.number.scratch import fits_now
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, first_hole, occupy, profile_of_running
from walltime.engine.kernel.queue import drop_started, rank, sort_queue


@kernel
def pass_with_selected_reservations(state, rules, jobs, running, events, notes, queue, ordered, fresh, selection, predicting):
    """Give the selected jobs reservations, in queue order, and start every job that does not delay these.

    Sources: Srinivasan et al. 2002 (selected by the expansion factor), Lawson and Smirni 2002 (the first of each queue). Returns an
    upper bound of the steps taken.
    """
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(fresh, running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    factor = rules.factor
    if rules.adapts:
        factor = state.slowdowns / (1000 * state.ended) if state.ended > 0 else 1.0
    closed = 0  # a bit for each queue whose first job waits
    for place in range(state.queue_first, state.queue_last):
        job = np.int64(queue[place].job)
        own = jobs[job]
        if rules.selects == BY_FACTOR:
            selected = (state.now - own.submit + own.own_length) / own.own_length > factor
            bit = 0
        else:
            bit = 1 << _queue_of(selection.bounds, own.own_length)
            selected = closed & bit == 0
        selection.reserved[place] = selected
        if not selected:
            continue
        anchor = first_hole(fresh, state.now, own.own_length, own.procs, np.int64(NEVER))
        occupy(fresh, anchor, anchor + own.own_length, own.procs)
        if own.reserved_start < 0:
            own.reserved_start = anchor
        if anchor == state.now:
            _start(state, rules, jobs, running, events, notes, queue, predicting, place)
        else:
            closed |= bit
    _start_beside(state, rules, jobs, running, events, notes, queue, ordered, fresh, selection, predicting)
    drop_started(state, jobs, queue)
    return waiting * fresh.counts.blocks * STEPS_IN_BLOCK


@kernel
def _queue_of(bounds, length):
    """The number of the queue of a job of this length."""
    number = 0
    while number < bounds.size and length >= bounds[number]:
        number += 1
    return number


@called_kernel
def _start(state, rules, jobs, running, events, notes, queue, predicting, place):
    """Start a job now; it is backfilled if one before it in the queue waits."""
    state.blocked = -1
    for i in range(state.queue_first, place):
        if jobs[queue[i].job].start < 0:
            state.blocked = queue[i].job
            break
    start_job(state, rules, jobs, running, events, notes, predicting, np.int64(queue[place].job))


@kernel
def _start_beside(state, rules, jobs, running, events, notes, queue, ordered, fresh, selection, predicting):
    """Start the jobs without a reservation that delay none, in the backfill order; who does not fit at first will not fit later."""
    in_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    in_order = in_order and rules.backfill_starvation == rules.order_starvation
    candidates, count = ordered.candidates, 0
    for place in range(state.queue_first, state.queue_last):
        job = np.int64(queue[place].job)
        if not selection.reserved[place] and fits_now(state, fresh, jobs[job]):
            own = float(place)
            if not in_order:
                own = rank(rules.backfill_order, rules.backfill_parameter, rules.backfill_starvation, state.now, jobs, job)
            candidates[count].rank, candidates[count].place = own, place
            count += 1
    while count > 0:
        best = 0
        for i in range(1, count):
            own, least = candidates[i].rank, candidates[best].rank
            if own < least or (own == least and _arrival(jobs, queue, candidates[i].place) < _arrival(jobs, queue, candidates[best].place)):
                best = i
        place = candidates[best].place
        count -= 1
        candidates[best].rank, candidates[best].place = candidates[count].rank, candidates[count].place
        own_job = jobs[queue[place].job]
        if fits_now(state, fresh, own_job):
            occupy(fresh, state.now, state.now + own_job.own_length, own_job.procs)
            _start(state, rules, jobs, running, events, notes, queue, predicting, place)


@kernel
def _arrival(jobs, queue, place):
    """When the job at this place of the queue arrived."""
    return jobs[queue[place].job].arrival
