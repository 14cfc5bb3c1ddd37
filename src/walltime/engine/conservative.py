"""One scheduling pass that keeps every job's reservation and compresses the schedule: conservative backfilling."""

from __future__ import annotations

import numpy as np

from walltime.engine.jit import kernel
from walltime.engine.machine import overdue, start_job
from walltime.engine.memory import BY_ARRIVAL, NEVER
from walltime.engine.profile import (
    STEPS_IN_BLOCK,
    begin_compression,
    first_hole,
    forget_past,
    nothing_opened,
    occupy,
    profile_of_running,
    size_class,
)
from walltime.engine.queue import sort_waiting


@kernel
def pass_with_kept_reservations(state, rules, jobs, running, events, notes, queue, ordered, kept, predicting):
    """Compress if a job ended early, give the newcomers their reservations, and start whoever's time has come.

    Source: P2 section 2.1 (SPEC A-04, A-05). Returns how many steps it took at most.

    While a running job is overdue nobody knows when its processors will be free, and no reservation can be kept: all
    are then made afresh at every arrival and termination (SPEC Q-28), as in the variant from scratch. They are
    made afresh once where a prediction was wrong: when that of a running job is corrected, when that of a waiting one has
    changed, and after the start of a job that is expected to run for longer than its place was planned.
    """
    profile = kept.profile
    is_overdue = overdue(state, running)
    afresh = is_overdue or state.broken
    only_newcomers = state.early == 0 and not afresh and state.next_due > state.now
    work = state.queue_last - state.queue_first
    in_order = rules.order == BY_ARRIVAL
    if not in_order and (afresh or state.early):
        sort_waiting(state, rules, jobs, queue, ordered, state.queue_last if afresh else state.looked_at)
    if afresh:
        profile_of_running(profile, running, state.running, state.now, state.free)
        work *= STEPS_IN_BLOCK * profile.counts.blocks
        nothing_opened(profile.openings)
        for i in range(state.queue_last):
            _reserve(state, jobs, profile, kept.reservation, np.int64(queue[i].job) if in_order else ordered.sorted[i])
    else:
        forget_past(profile, state.now)
        if state.early:
            work *= STEPS_IN_BLOCK + profile.counts.blocks
            for i in range(state.early):  # free the rest of the places of the jobs that ended early
                job = jobs[kept.early_job[i]]
                occupy(profile, state.now, job.start + job.run_length, -job.procs)
            begin_compression(profile.openings)
            for i in range(state.looked_at):
                _compress(state, jobs, profile, kept.reservation, np.int64(queue[i].job) if in_order else ordered.sorted[i])
        for i in range(state.looked_at, state.queue_last):
            _reserve(state, jobs, profile, kept.reservation, np.int64(queue[i].job))
    state.early = 0
    state.broken = is_overdue
    _start_due(state, rules, jobs, running, events, notes, queue, kept, predicting, only_newcomers)
    if is_overdue:
        state.next_due = NEVER
    return work


@kernel
def _compress(state, jobs, profile, reservation, job):
    """Move the reservation of a job to the earliest place that it can have now; it does not move back (SPEC A-05).

    Only jobs of sizes for which processors have been given back before their reservation can move (profile.py).
    """
    procs, old = jobs[job].procs, reservation[job]
    opening = profile.openings[size_class(procs)]
    if opening.begin < old:
        length = jobs[job].own_length
        new = first_hole(profile, state.now, length, procs, old, opening.end)
        if new < old:
            occupy(profile, new, min(old, new + length), procs)
            occupy(profile, max(old, new + length), old + length, -procs)
            reservation[job] = new


@kernel
def _reserve(state, jobs, profile, reservation, job):
    """Give a job the earliest place that the profile has."""
    own = jobs[job]
    anchor = first_hole(profile, state.now, own.own_length, own.procs, np.int64(NEVER), np.int64(NEVER))
    occupy(profile, anchor, anchor + own.own_length, own.procs)
    reservation[job] = anchor
    if own.promised < 0:
        own.promised = anchor


@kernel
def _hold(state, profile, job):
    """Hold the processors of a job that starts for as long as it is expected to run, which may not be the length of its place.

    A shorter one leaves a hole behind it. A longer one takes what has been reserved for others, so that no reservation holds.
    """
    if job.run_length < job.own_length:
        occupy(profile, state.now + job.run_length, state.now + job.own_length, -job.procs)
    elif job.run_length > job.own_length:
        state.broken = 1


@kernel
def _start_due(state, rules, jobs, running, events, notes, queue, kept, predicting, only_newcomers):
    """Start the jobs whose reservation is now, and find the next one that will be due."""
    first, last = state.queue_first, state.queue_last
    left, next_due = first, NEVER
    state.blocked = -1
    if only_newcomers:
        left, next_due = state.looked_at, state.next_due
        if left > first:
            state.blocked = queue[first].job
    for i in range(left, last):
        job = np.int64(queue[i].job)
        if kept.reservation[job] == state.now:
            start_job(state, rules, jobs, running, events, notes, predicting, job)
            if predicting is not None:
                _hold(state, kept.profile, jobs[job])
        else:
            next_due = min(next_due, kept.reservation[job])
            queue[left] = queue[i]
            left += 1
            state.blocked = job
    state.queue_last = state.looked_at = left
    state.next_due = next_due
