"""A scheduling pass that recomputes all reservations: hybrids, conservative from scratch, selective reservations, multiple queues."""

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, NEVER, Array, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind, start_job
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, first_hole, new_profile, occupy, profile_of_running
from walltime.engine.kernel.queue import backfill_rank, drop_started, sort_queue


class Fresh(NamedTuple):
    """The profile of a pass; the `bounds` of the queues (int64, s) whose first jobs have reservations, none for other policies."""

    profile: Profile
    bounds: Array


@kernel
def pass_with_fresh_reservations(state, rules, jobs, machine, queue, ordered, fresh):
    """Give the first `depth` blocked jobs, or only selected ones, reservations, and start every job that does not delay them.

    Returns an upper bound of the steps. Sources: feitelson98, Fig. 1 (unlimited depth; a limited one is that of production schedulers),
    Srinivasan et al. 2002 (selected by the expansion factor), Lawson and Smirni 2002 (the first of each queue).
    """
    profile, bounds = fresh
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(profile, machine.running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    factor = rules.factor
    if rules.adapts:
        factor = state.slowdowns / (1000 * state.ended) if state.ended > 0 else 1.0
    closed = blocked = count = 0  # `closed`: a bit for each queue whose first job waits
    state.blocked = -1
    for place in range(state.queue_first, state.queue_last):
        job, bit = np.int64(queue[place].job), 0
        own = jobs[job]
        selected = blocked < rules.depth
        if bounds.size > 0:
            number = 0
            while number < bounds.size and own.own_length >= bounds[number]:
                number += 1
            bit = 1 << number
            selected &= closed & bit == 0
        elif factor > 0.0:
            selected &= (state.now - own.submit + own.own_length) / own.own_length > factor
        if selected and reserve(state, jobs, profile, job) == state.now:
            start_job(state, rules, jobs, machine, job)
            continue
        state.blocked = job
        if selected:
            blocked += 1
            closed |= bit
        elif own.procs <= state.free:
            ordered.candidates[count].place = place
            count += 1
    backfill(state, rules, jobs, machine, queue, ordered.candidates, profile, count)
    drop_started(state, jobs, queue)
    return waiting * profile.counts.blocks * STEPS_IN_BLOCK


@kernel
def reserve(state, jobs, profile, job):
    """Give a job the earliest place that there is, and return its begin."""
    own = jobs[job]
    anchor = first_hole(profile, state.now, own.own_length, own.procs, np.int64(NEVER))
    occupy(profile, anchor, anchor + own.own_length, own.procs)
    if own.reserved_start < 0:
        own.reserved_start = anchor
    return anchor


@kernel
def backfill(state, rules, jobs, machine, queue, candidates, profile, count):
    """Start the jobs among the first `count` candidates that delay no reservation, in the backfill order; their places are in queue order.

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
def fits_now(state, profile, job):
    """Return whether enough processors for a job stay free for its own length from now on."""
    if job.procs > state.free:
        return False
    return first_hole(profile, state.now, job.own_length, job.procs, state.now + 1) == state.now


PASS = Pass(
    ("fresh", "selective", "multiqueue"),
    pass_with_fresh_reservations,
    Fresh,
    lambda rules, passes, count: Fresh(new_profile(count), np.array(passes.bounds, np.int64)),
    (Loop("scratch", "reservations made in every pass", 56, 8),),
)
