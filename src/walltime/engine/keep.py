"""One scheduling pass that keeps every job's reservation and compresses the schedule: conservative backfilling."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.machine import kind_behind, overdue, start_job
from walltime.engine.memory import (
    BLOCKS,
    BROKEN,
    BY_ARRIVAL,
    EARLY,
    NEVER,
    NEXT_DUE,
    NOW,
    PLANNED,
    QUEUE_FIRST,
    QUEUE_LAST,
    STEPS_IN_BLOCK,
)
from walltime.engine.openings import begin_compression, nothing_opened
from walltime.engine.profile import first_hole, forget_past, occupy, profile_of_running
from walltime.engine.queue import sort_jobs
from walltime.engine.sizes import size_class


@kernel
def pass_with_kept_reservations(jobs, rules, memory, result):
    """Compress if a job ended early, give the newcomers their reservations, and start whoever's time has come.

    Source: P2 section 2.1 (SPEC A-04, A-05). Returns how many steps it took at most.

    While a running job is overdue nobody knows when its processors will be free, and no promise can be kept: all
    reservations are then made afresh at every arrival and termination (SPEC Q-28), as in the variant from scratch. They are
    made afresh once where a prediction was wrong: when that of a running job is corrected, when that of a waiting one has
    changed, and after the start of a job that is expected to run for longer than its place was planned.
    """
    state = memory.state
    is_overdue = overdue(memory)
    afresh = is_overdue or state[BROKEN]
    only_newcomers = state[EARLY] == 0 and not afresh and state[NEXT_DUE] > state[NOW]
    steps = state[QUEUE_LAST] - state[QUEUE_FIRST]
    waiting, first_without = memory.queue, state[PLANNED]
    if rules.order != BY_ARRIVAL and (afresh or state[EARLY]):
        _sort_candidates(jobs, rules, memory, state[QUEUE_LAST] if afresh else state[PLANNED])
        waiting = memory.candidates
    if afresh:
        steps *= STEPS_IN_BLOCK * state[BLOCKS]
        profile_of_running(jobs, memory)
        nothing_opened(memory.openings)
        first_without = 0
    else:
        forget_past(memory)
        if state[EARLY]:
            steps *= STEPS_IN_BLOCK + state[BLOCKS]
            _give_back(jobs, memory, result)
            _compress(jobs, memory, waiting)
            waiting = memory.queue
    _reserve(jobs, memory, result, waiting, first_without, state[QUEUE_LAST])
    state[EARLY] = 0
    state[BROKEN] = is_overdue
    _start_due(jobs, rules, memory, result, only_newcomers)
    if is_overdue:
        state[NEXT_DUE] = NEVER
    return steps


@kernel
def _sort_candidates(jobs, rules, memory, last):
    """Copy queue[:last] to the candidates, in the policy's order; the queue itself stays in order of arrival, from place 0."""
    for i in range(last):
        memory.candidates[i] = memory.queue[i]
    sort_jobs(jobs, memory, rules.order, rules.order_parameter, memory.candidates, memory.candidate_score, 0, last)


@kernel
def _give_back(jobs, memory, result):
    """Free the rest of the places of the jobs that ended early."""
    now = memory.state[NOW]
    for i in range(memory.state[EARLY]):
        job = memory.early_job[i]
        occupy(memory, now, result.start[job] + jobs.run_length[job], -jobs.procs[job])


@kernel
def _compress(jobs, memory, waiting):
    """Move each reservation, in queue order, to the earliest place that it can have now; none moves back (SPEC A-05).

    Only jobs of sizes for which processors have been given back before their reservation can move (openings.py).
    """
    begin_compression(memory.openings)
    for i in range(memory.state[PLANNED]):
        job = waiting[i]
        procs, old = jobs.procs[job], memory.reservation[job]
        number = size_class(procs)
        if memory.openings.begin[number] < old:
            believed = jobs.own_length[job]
            new = first_hole(memory, believed, procs, old, memory.openings.end[number])
            if new < old:
                occupy(memory, new, min(old, new + believed), procs)
                occupy(memory, max(old, new + believed), old + believed, -procs)
                memory.reservation[job] = new


@kernel
def _reserve(jobs, memory, result, waiting, first, last):
    """Give the jobs waiting[first:last], one after the other, the earliest places that the profile has."""
    for i in range(first, last):
        job = waiting[i]
        believed, procs = jobs.own_length[job], jobs.procs[job]
        anchor = first_hole(memory, believed, procs, NEVER, NEVER)
        occupy(memory, anchor, anchor + believed, procs)
        memory.reservation[job] = anchor
        if result.promised[job] < 0:
            result.promised[job] = anchor


@kernel
def _hold(predicting, jobs, memory, job):
    """Hold the processors of a job that starts for as long as it is expected to run, which may not be the length of its place.

    A shorter one leaves a hole behind it. A longer one takes what has been promised to others, so that no promise holds.
    """
    if predicting is None:
        return
    now, length, planned = memory.state[NOW], jobs.run_length[job], jobs.own_length[job]
    if length < planned:
        occupy(memory, now + length, now + planned, -jobs.procs[job])
    elif length > planned:
        memory.state[BROKEN] = 1


@kernel
def _start_due(jobs, rules, memory, result, only_newcomers):
    """Start the jobs whose reservation is now, and find the next one that will be due."""
    state, queue = memory.state, memory.queue
    now, first, last = state[NOW], state[QUEUE_FIRST], state[QUEUE_LAST]
    kept = state[PLANNED] if only_newcomers else first
    next_due = state[NEXT_DUE] if only_newcomers else NEVER
    for i in range(kept, last):
        job = queue[i]
        if memory.reservation[job] == now:
            start_job(jobs, memory, result, job, kind_behind(memory, job, kept - first))
            _hold(rules.predicting, jobs, memory, job)
        else:
            next_due = min(next_due, memory.reservation[job])
            queue[kept] = job
            kept += 1
    state[QUEUE_LAST] = kept
    state[PLANNED] = kept
    state[NEXT_DUE] = next_due
