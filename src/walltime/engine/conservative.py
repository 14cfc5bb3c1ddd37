"""One scheduling pass that keeps every job's reservation and compresses the schedule: conservative backfilling."""

from __future__ import annotations

import numpy as np

from walltime.engine.index import size_class
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.machine import overdue, start_job
from walltime.engine.memory import BY_ARRIVAL, NEVER
from walltime.engine.openings import begin_compression, give_back_until, nothing_opened
from walltime.engine.profile import forget_past, hole_from, leave, profile_of_running, reserve, step_at, take_until
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
    head, steps, blocks = kept.profile
    is_overdue = overdue(state, running)
    afresh = is_overdue or state.broken
    only_newcomers = state.early == 0 and not afresh and state.next_due > state.now
    work = state.queue_last - state.queue_first
    in_order = rules.order == BY_ARRIVAL
    if not in_order and (afresh or state.early):
        sort_waiting(state, rules, jobs, queue, ordered, state.queue_last if afresh else state.looked_at)
    if afresh:
        profile_of_running(head, steps, blocks, running, state.running, state.now, state.free)
        work *= head.used
        nothing_opened(kept.openings)
        for i in range(state.queue_last):
            _reserve(jobs, head, steps, blocks, kept.places, np.int64(queue[i].job) if in_order else ordered.sorted[i])
    else:
        forget_past(head, steps, blocks, state.now)
        if state.early:
            work *= 10
            _give_back(state, jobs, head, steps, blocks, kept)
            begin_compression(kept.openings)
            for i in range(state.looked_at):
                _compress(jobs, head, steps, blocks, kept, np.int64(queue[i].job) if in_order else ordered.sorted[i])
        for i in range(state.looked_at, state.queue_last):
            _reserve(jobs, head, steps, blocks, kept.places, np.int64(queue[i].job))
    state.early = 0
    state.broken = is_overdue
    _start_due(state, rules, jobs, running, events, notes, queue, head, steps, blocks, kept, predicting, only_newcomers)
    if is_overdue:
        state.next_due = NEVER
    return work


@called_kernel
def _give_back(state, jobs, head, steps, blocks, kept):
    """Free the rest of the places of the jobs that ended early."""
    for i in range(state.early):
        job = jobs[kept.early_job[i]]
        end = step_at(head, steps, blocks, head.first, job.start + job.run_length)
        give_back_until(steps, blocks, kept.openings, head.first, end, job.procs)
        leave(head, steps, blocks, end)


@called_kernel
def _compress(jobs, head, steps, blocks, kept, job):
    """Move the reservation of a job to the earliest place that it can have now; it does not move back (SPEC A-05).

    Only jobs of sizes for which processors have been given back before their reservation can move (openings.py).
    """
    place = kept.places[job]
    opening = kept.openings[place.size_class]
    if opening.begin >= place.start:
        return
    length, procs = jobs[job].own_length, jobs[job].procs
    block = blocks[0].next
    while blocks[blocks[block].next].time <= opening.begin:
        block = blocks[block].next
    begin = hole_from(steps, blocks, block, procs, length, place.start, min(place.start, opening.end))
    if begin < 0 or begin == place.begin:
        return
    old_begin, old_end = place.begin, place.end
    time = steps[begin].time
    if time + length >= place.start:
        take_until(head, steps, blocks, begin, place.start, procs)
        end = step_at(head, steps, blocks, old_begin, time + length)
        give_back_until(steps, blocks, kept.openings, end, old_end, procs)
    else:
        end = take_until(head, steps, blocks, begin, time + length, procs)
        give_back_until(steps, blocks, kept.openings, old_begin, old_end, procs)
    steps[begin].edges += 1
    steps[end].edges += 1
    leave(head, steps, blocks, old_begin)
    leave(head, steps, blocks, old_end)
    place.start, place.begin, place.end = time, begin, end


@called_kernel
def _reserve(jobs, head, steps, blocks, places, job):
    """Give a job the earliest place that the profile has."""
    length, procs, place = jobs[job].own_length, jobs[job].procs, places[job]
    begin = hole_from(steps, blocks, blocks[0].next, procs, length, np.int64(NEVER), np.int64(NEVER))
    place.start, place.begin, place.size_class = steps[begin].time, begin, size_class(procs)
    place.end = reserve(head, steps, blocks, begin, length, procs)
    if jobs[job].promised < 0:
        jobs[job].promised = place.start


@kernel
def _hold(state, jobs, head, steps, blocks, kept, job):
    """Hold the processors of a job that starts for as long as it is expected to run, which may not be the length of its place.

    A shorter one leaves a hole behind it. A longer one takes what has been reserved for others, so that no reservation holds.
    """
    length, planned = jobs[job].run_length, jobs[job].own_length
    if length < planned:
        old_end = kept.places[job].end
        end = step_at(head, steps, blocks, head.first, state.now + length)
        give_back_until(steps, blocks, kept.openings, end, old_end, jobs[job].procs)
        steps[end].edges += 1
        leave(head, steps, blocks, old_end)
    elif length > planned:
        state.broken = 1


@kernel
def _start_due(state, rules, jobs, running, events, notes, queue, head, steps, blocks, kept, predicting, only_newcomers):
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
        if kept.places[job].start == state.now:
            start_job(state, rules, jobs, running, events, notes, predicting, job)
            if predicting is not None:
                _hold(state, jobs, head, steps, blocks, kept, job)
        else:
            next_due = min(next_due, kept.places[job].start)
            queue[left] = queue[i]
            left += 1
            state.blocked = job
    state.queue_last = state.looked_at = left
    state.next_due = next_due
