"""A scheduling pass that recomputes all reservations: hybrids, conservative from scratch, selective reservations, multiple queues."""

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import pop_candidate, push_candidate
from walltime.engine.kernel.memory import BY_ARRIVAL, NEVER, Array, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind, start_job
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, first_gap, new_profile, occupy, profile_of_running
from walltime.engine.kernel.queue import backfill_rank, drop_started, sort_queue


class Fresh(NamedTuple):
    """The profile of a pass, and the length `bounds` of queues whose first jobs have reservations (int64 s; empty for other policies)."""

    profile: Profile
    bounds: Array


@kernel
def pass_with_fresh_reservations(state, rules, jobs, machine, queue, ordered, fresh):
    """Reserve for the first `depth` blocked jobs, or only for selected ones, and start every job that does not delay them.

    Returns an upper bound on the steps. Sources: feitelson98, Fig. 1 (unlimited depth; production schedulers have a limited one),
    Srinivasan et al. 2002 (selected by the expansion factor), Lawson and Smirni 2002 (the first job of each queue).
    """
    profile, bounds = fresh
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(profile, machine.running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    factor = rules.factor
    if rules.adapts:
        factor = state.slowdowns / (1000 * state.ended) if state.ended > 0 else 1.0
    closed = blocked = 0  # `closed`: a bit for each queue whose first job waits
    state.blocked, state.candidates = -1, 0
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
        if selected and _reserve(state, jobs, profile, job) == state.now:
            start_job(state, rules, jobs, machine, job)
            continue
        state.blocked = job
        if selected:
            blocked += 1
            closed |= bit
        elif own.procs <= state.free:
            rank = backfill_rank(rules, state.now, jobs, job) if rules.own_backfill_order else float(place)
            push_candidate(state, ordered.candidates, rank, own.arrival, job)
    while state.candidates > 0:
        job = pop_candidate(state, ordered.candidates)
        if _fits_now(state, profile, jobs[job]):
            occupy(profile, state.now, state.now + jobs[job].own_length, jobs[job].procs)
            start_behind(state, rules, jobs, machine, queue, job)
    drop_started(state, jobs, queue)
    return waiting * profile.counts.blocks * STEPS_IN_BLOCK


@kernel
def _reserve(state, jobs, profile, job):
    """Make the earliest reservation for a job, and return its start, s."""
    own = jobs[job]
    anchor = first_gap(profile, state.now, own.own_length, own.procs, np.int64(NEVER))
    occupy(profile, anchor, anchor + own.own_length, own.procs)
    if own.reserved_start < 0:
        own.reserved_start = anchor
    return anchor


@kernel
def _fits_now(state, profile, job):
    """Return whether enough processors for a job stay free for its planned length from now on."""
    if job.procs > state.free:
        return False
    return first_gap(profile, state.now, job.own_length, job.procs, state.now + 1) == state.now


PASS = Pass(
    ("fresh", "selective", "multiqueue"),
    pass_with_fresh_reservations,
    Fresh,
    lambda rules, passes, count: Fresh(new_profile(count), np.array(passes.bounds, np.int64)),
    (Loop("scratch", "reservations made in every pass", 56, 8),),
)
