"""One scheduling pass that recomputes all reservations: hybrid backfilling, and conservative from scratch."""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, NEVER, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind, start_job
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, first_hole, new_profile, occupy, profile_of_running
from walltime.engine.kernel.queue import backfill_rank, drop_started, sort_queue


@kernel
def pass_with_fresh_reservations(state, rules, jobs, machine, queue, ordered, fresh):
    """Give the first `depth` blocked jobs reservations, in queue order, and start every job that does not delay these.

    Source: feitelson98, Fig. 1 (unlimited depth); a limited depth is that of production schedulers. Returns an upper bound of the
    steps taken.
    """
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(fresh, machine.running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    state.blocked = -1
    blocked = 0
    i = state.queue_first
    while i < state.queue_last and blocked < rules.depth:
        job = np.int64(queue[i].job)
        if reserve(state, jobs, fresh, job) == state.now:
            start_job(state, rules, jobs, machine, job)
        else:
            blocked += 1
            state.blocked = job
        i += 1
    count = 0
    while i < state.queue_last:
        if queue[i].procs <= state.free:
            ordered.candidates[count].place = i
            count += 1
        i += 1
    backfill(state, rules, jobs, machine, queue, ordered.candidates, fresh, count)
    drop_started(state, jobs, queue)
    return waiting * fresh.counts.blocks * STEPS_IN_BLOCK


@kernel
def reserve(state, jobs, profile, job):
    """Give a job the earliest place that there is; returns when it begins."""
    own = jobs[job]
    anchor = first_hole(profile, state.now, own.own_length, own.procs, np.int64(NEVER))
    occupy(profile, anchor, anchor + own.own_length, own.procs)
    if own.reserved_start < 0:
        own.reserved_start = anchor
    return anchor


@kernel
def backfill(state, rules, jobs, machine, queue, candidates, profile, count):
    """Start those of the first candidates that delay no reservation, in the backfill order; their places are in queue order.

    Jobs that do not fit initially will not fit later in this pass, so it is enough to sort those that do.
    """
    in_order, left = rules.own_backfill_order == 0, 0
    for i in range(count):
        place = candidates[i].place
        job = np.int64(queue[place].job)
        if fits_now(state, profile, jobs[job]):
            if in_order:
                _start_beside(state, rules, jobs, machine, queue, profile, job)
            else:
                candidates[left].rank, candidates[left].place = backfill_rank(rules, state.now, jobs, job), job
                left += 1
    while left > 0:
        best = 0
        for i in range(1, left):
            own, least = candidates[i].rank, candidates[best].rank
            if own < least or (own == least and jobs[candidates[i].place].arrival < jobs[candidates[best].place].arrival):
                best = i
        job = candidates[best].place
        left -= 1
        candidates[best].rank, candidates[best].place = candidates[left].rank, candidates[left].place
        if fits_now(state, profile, jobs[job]):
            _start_beside(state, rules, jobs, machine, queue, profile, job)


@kernel
def _start_beside(state, rules, jobs, machine, queue, profile, job):
    """Start a job that has no reservation."""
    occupy(profile, state.now, state.now + jobs[job].own_length, jobs[job].procs)
    start_behind(state, rules, jobs, machine, queue, job)


@kernel
def fits_now(state, fresh, job):
    """Whether enough processors for a job stay free for its own length from now on."""
    if job.procs > state.free:
        return False
    return first_hole(fresh, state.now, job.own_length, job.procs, state.now + 1) == state.now


PASS = Pass(
    ("fresh",),
    pass_with_fresh_reservations,
    Profile,
    lambda rules, passes, count: new_profile(count),
    (Loop("scratch", "reservations made afresh", 57, 8),),
)
