"""One scheduling pass that recomputes all reservations: hybrid backfilling, and conservative from scratch."""

from __future__ import annotations

import numpy as np

from walltime.engine.kernel.jit import kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, NEVER
from walltime.engine.kernel.number.machine import start_job
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, first_hole, occupy, profile_of_running
from walltime.engine.kernel.queue import drop_started, rank, sort_queue


@kernel
def pass_with_fresh_reservations(state, rules, jobs, running, events, notes, queue, ordered, fresh, predicting):
    """Give the first `depth` blocked jobs reservations, in queue order, and start every job that does not delay these.

    Source: feitelson98, Fig. 1 (unlimited depth); a limited depth is that of production schedulers. Returns an upper bound of the
    steps taken.
    """
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(fresh, running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    state.blocked = -1
    blocked = 0
    i = state.queue_first
    while i < state.queue_last and blocked < rules.depth:
        job = np.int64(queue[i].job)
        anchor = first_hole(fresh, state.now, jobs[job].own_length, jobs[job].procs, np.int64(NEVER))
        occupy(fresh, anchor, anchor + jobs[job].own_length, jobs[job].procs)
        if jobs[job].reserved_start < 0:
            jobs[job].reserved_start = anchor
        if anchor == state.now:
            start_job(state, rules, jobs, running, events, notes, predicting, job)
        else:
            blocked += 1
            state.blocked = job
        i += 1
    _backfill(state, rules, jobs, running, events, notes, queue, ordered, fresh, predicting, i)
    drop_started(state, jobs, queue)
    return waiting * fresh.counts.blocks * STEPS_IN_BLOCK


@kernel
def _backfill(state, rules, jobs, running, events, notes, queue, ordered, fresh, predicting, first):
    """Start the jobs from queue place `first` on that do not delay the reservations, in the backfill order.

    Jobs that do not fit initially will not fit later in this pass, so it is enough to sort those that do.
    """
    in_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    in_order = in_order and rules.backfill_starvation == rules.order_starvation
    candidates, count = ordered.candidates, 0
    for place in range(first, state.queue_last):
        job = np.int64(queue[place].job)
        if fits_now(state, fresh, jobs[job]):
            if in_order:
                occupy(fresh, state.now, state.now + jobs[job].own_length, jobs[job].procs)
                start_job(state, rules, jobs, running, events, notes, predicting, job)
            else:
                candidates[count].rank = rank(
                    rules.backfill_order, rules.backfill_parameter, rules.backfill_starvation, state.now, jobs, job
                )
                candidates[count].place = job
                count += 1
    while count > 0:
        best = 0
        for i in range(1, count):
            own, least = candidates[i].rank, candidates[best].rank
            if own < least or (own == least and jobs[candidates[i].place].arrival < jobs[candidates[best].place].arrival):
                best = i
        job = candidates[best].place
        count -= 1
        candidates[best].rank, candidates[best].place = candidates[count].rank, candidates[count].place
        if fits_now(state, fresh, jobs[job]):
            occupy(fresh, state.now, state.now + jobs[job].own_length, jobs[job].procs)
            start_job(state, rules, jobs, running, events, notes, predicting, job)


@kernel
def fits_now(state, fresh, job):
    """Whether enough processors for a job stay free for its own length from now on."""
    if job.procs > state.free:
        return False
    return first_hole(fresh, state.now, job.own_length, job.procs, state.now + 1) == state.now
