"""A scheduling pass that keeps every job's reservation and compresses the schedule: conservative backfilling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, KEEP, NEVER, NO_PLAN, Array, Loop, Pass
from walltime.engine.kernel.number.candidates import join, note_latest, release_until, survey
from walltime.engine.kernel.number.machine import start_job
from walltime.engine.kernel.plan import (
    BORDER,
    CHUNK,
    GONE,
    LOOKS,
    NONE,
    ReservationPlan,
    first_gap,
    forget_past,
    leave,
    new_plan,
    plan_of_running,
    step_back_at,
    take_until,
)
from walltime.engine.kernel.queue import sort_waiting
from walltime.engine.kernel.running import overdue


class KeptPlan(NamedTuple):
    """The plan, and the place in the queue of each job (int64), for orders other than first come, first served."""

    plan: ReservationPlan
    place: Array


@kernel
def pass_with_kept_reservations(state, rules, jobs, machine, queue, ordered, kept):
    """Compress if a job ended early, reserve for newcomers, and start the jobs that are due; return an upper bound on the steps taken.

    While a running job is overdue, the release of its processors cannot be planned and no reservation can be kept, so all are recomputed at
    every arrival and termination, as in the variant from scratch. They are recomputed once if a prediction was wrong: when a running job's
    prediction is corrected, when a waiting job's prediction has changed, and after the start of a job that is expected to run longer than
    planned. Source: mualem01, section 2.1.
    """
    plan = kept.plan
    slots, steps, waiting, traits = plan
    is_overdue = overdue(state, machine.running)
    from_scratch = is_overdue or state.broken
    only_newcomers = state.early == 0 and not from_scratch and state.next_due > state.now
    work = state.queue_last
    in_order = rules.order == BY_ARRIVAL or state.broken == NO_PLAN
    if not in_order and (from_scratch or state.early):
        sort_waiting(state, rules, jobs, queue, ordered, state.queue_last if from_scratch else state.looked_at)
        for i in range(state.queue_last):
            kept.place[queue[i].job] = i
    looked_at = state.looked_at
    if from_scratch:
        plan_of_running(slots, steps, machine.running, state.running, state.now, state.free)
        work *= slots.used
        traits.shelves[:], slots.looks = NONE, LOOKS  # no bounds until the next compression, as times have another scale
        looked_at = 0
    else:
        forget_past(slots, steps, state.now)
        if state.early:
            work *= 10
            survey(plan, looked_at, state.now)
            _release_early(state, jobs, plan, machine.early)
            for i in range(np.uint64(looked_at)):  # unsigned, because Numba checks every access with an index that may be negative
                place = i if in_order else np.uint64(kept.place[ordered.sorted[i]])
                own = waiting[place]
                if own.low < NEVER or steps[steps[own.begin].previous].free >= own.procs:
                    _compress(looked_at, plan, place)
    for i in range(looked_at, state.queue_last):
        _reserve(jobs, queue, plan, kept.place[ordered.sorted[i]] if from_scratch and not in_order else i)
    state.early = 0
    state.broken = is_overdue
    _start_due(state, rules, jobs, machine, queue, plan, only_newcomers)
    if is_overdue:
        state.next_due = NEVER
    return work


@called_kernel
def _release_early(state, jobs, plan, early):
    """Release the rest of the reserved times of the jobs that ended early."""
    slots, steps, _, _ = plan
    for i in range(state.early):
        job = jobs[early[i]]
        end = take_until(slots, steps, slots.first, job.start + job.run_length, 0)
        release_until(plan, state.looked_at, slots.first, end, job.procs)
        leave(slots, steps, end)


@kernel
def _compress(count, plan, i):
    """Move a job's reservation to its earliest possible start, which is never later than before (mualem01, section 2.1)."""
    slots, steps, waiting, _ = plan
    old_begin, procs, start = waiting[i].begin, waiting[i].procs, waiting[i].start
    if waiting[i].low == NEVER:
        begin = old_begin
        while steps[steps[begin].previous].free >= procs:
            begin = steps[begin].previous
    else:
        begin = waiting[i].low_step
        if steps[begin].time == GONE:
            begin = slots.first
        while steps[begin].time > waiting[i].low and begin != slots.first:
            begin = steps[begin].previous
        waiting[i].low = NEVER
        begin = first_gap(steps, begin, procs, waiting[i].length, start)
        if begin == BORDER:
            note_latest(plan, i)
            return
    old_end = waiting[i].end
    time = steps[begin].time
    end_time = time + waiting[i].length
    if end_time >= start:
        take_until(slots, steps, begin, start, procs)
        first = end = step_back_at(slots, steps, old_end, end_time)
    else:
        end = take_until(slots, steps, begin, end_time, procs)
        first = old_begin
    steps[begin].edges += 1
    steps[end].edges += 1
    waiting[i].start, waiting[i].begin, waiting[i].end = time, begin, end
    note_latest(plan, i)
    release_until(plan, count, first, old_end, procs)
    leave(slots, steps, old_begin)
    leave(slots, steps, old_end)


@called_kernel
def _reserve(jobs, queue, plan, i):
    """Make the earliest reservation for a job that fits into the plan."""
    slots, steps, waiting, _ = plan
    job = np.int64(queue[i].job)
    procs, length = jobs[job].procs, jobs[job].own_length
    begin = first_gap(steps, slots.first, procs, length, NEVER)
    time = steps[begin].time
    end = take_until(slots, steps, begin, time + length, procs)
    steps[begin].edges += 1
    steps[end].edges += 1
    waiting[i].procs, waiting[i].length, waiting[i].start, waiting[i].low = procs, length, time, NEVER
    waiting[i].begin, waiting[i].end = begin, end
    join(plan, i)
    if jobs[job].reserved_start < 0:
        jobs[job].reserved_start = time


@kernel
def _hold(state, jobs, plan, i, job):
    """Keep a starting job's processors for its expected runtime: release the rest of its reservation, or mark later ones as broken."""
    slots, steps, waiting, _ = plan
    length, planned = jobs[job].run_length, jobs[job].own_length
    if length < planned:
        old_end = waiting[i].end
        end = take_until(slots, steps, slots.first, state.now + length, 0)
        release_until(plan, state.queue_last, end, old_end, jobs[job].procs)
        steps[end].edges += 1
        leave(slots, steps, old_end)
    elif length > planned:
        state.broken = 1


@kernel
def _start_due(state, rules, jobs, machine, queue, plan, only_newcomers):
    """Start the jobs whose reservation is now, and find the next one that will be due."""
    _, _, waiting, traits = plan
    last = np.uint64(state.queue_last)
    left, next_due = np.uint64(0), NEVER
    if only_newcomers:
        left, next_due = np.uint64(state.looked_at), state.next_due
    while left < last and waiting[left].start != state.now:  # usually no job is due
        next_due = min(next_due, waiting[left].start)
        left += np.uint64(1)
    state.blocked = queue[0].job if left > 0 else -1
    for i in range(left, last):
        job = np.int64(queue[i].job)
        if waiting[i].start == state.now:
            start_job(state, rules, jobs, machine, job)
            if rules.predicts:
                _hold(state, jobs, plan, i, job)
        else:
            next_due = min(next_due, waiting[i].start)
            if left < i:
                queue[left] = queue[i]
                waiting[left] = waiting[i]
                traits.procs[left], traits.length[left], traits.latest[left] = traits.procs[i], traits.length[i], traits.latest[i]
                traits.chunk_latest[left // np.uint64(CHUNK)] = max(traits.chunk_latest[left // np.uint64(CHUNK)], traits.latest[i])
            left += np.uint64(1)
            state.blocked = job
    for i in range(left, last):
        traits.latest[i] = 0
    state.queue_last = state.looked_at = left
    state.next_due = next_due


PASS = Pass(
    ("kept",),
    pass_with_kept_reservations,
    KeptPlan,
    lambda rules, passes, count: KeptPlan(new_plan(count), np.zeros(0 if rules.order == BY_ARRIVAL else count, np.int64)),
    (Loop("conservative", "conservative backfilling", 69, 8),),
    KEEP,
)
