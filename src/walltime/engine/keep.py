"""One scheduling pass that keeps every job's reservation and compresses the schedule: conservative backfilling."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.machine import kind_behind, overdue, start_job
from walltime.engine.memory import (
    BROKEN,
    BY_ARRIVAL,
    EARLY,
    NEVER,
    NEXT_DUE,
    NOW,
    PLANNED,
    PROFILE_FIRST,
    PROFILE_LAST,
    QUEUE_FIRST,
    QUEUE_LAST,
)
from walltime.engine.profile import anchor_point, earlier_anchor_point, forget_past, occupy, profile_of_running
from walltime.engine.queue import sort_jobs


@kernel
def pass_with_kept_reservations(jobs, rules, memory, result):
    """Compress if a job ended early, give the newcomers their reservations, and start whoever's time has come.

    Source: P2 section 2.1 (SPEC A-04, A-05). Returns how many steps it took at most.

    While a running job is overdue nobody knows when its processors will be free, and no promise can be kept: all
    reservations are then made afresh at every arrival and termination (SPEC Q-28), as in the variant from scratch.
    """
    state, queue = memory.state, memory.queue
    is_overdue = overdue(memory)
    steps = state[QUEUE_LAST] - state[QUEUE_FIRST]
    if is_overdue or state[BROKEN] or state[EARLY]:
        steps *= state[PROFILE_LAST] - state[PROFILE_FIRST]
    if is_overdue or state[BROKEN]:
        profile_of_running(jobs, memory)
        count = _list_in_order(jobs, rules, memory, state[QUEUE_FIRST], state[QUEUE_LAST])
        _reserve(jobs, memory, result, memory.candidates, 0, count)
    else:
        forget_past(memory)
        if state[EARLY]:
            _compress(jobs, rules, memory)
        _reserve(jobs, memory, result, queue, state[PLANNED], state[QUEUE_LAST])
    state[EARLY] = 0
    state[BROKEN] = is_overdue

    now, first, last = state[NOW], state[QUEUE_FIRST], state[QUEUE_LAST]
    kept, next_due = first, NEVER
    for i in range(first, last):
        job = queue[i]
        if memory.reservation[job] == now:
            start_job(jobs, memory, result, job, kind_behind(memory, job, kept - first))
        else:
            next_due = min(next_due, memory.reservation[job])
            queue[kept] = job
            kept += 1
    state[QUEUE_LAST] = kept
    state[PLANNED] = kept
    state[NEXT_DUE] = NEVER if is_overdue else next_due
    return steps


@kernel
def _compress(jobs, rules, memory):
    """Move each reservation, in queue order, to the earliest place that it can have now; none moves back (SPEC A-05)."""
    state = memory.state
    for i in range(_list_in_order(jobs, rules, memory, state[QUEUE_FIRST], state[PLANNED])):
        job = memory.candidates[i]
        believed, procs = jobs.believed[job], jobs.procs[job]
        old = memory.reservation[job]
        new = earlier_anchor_point(memory, old, believed, procs)
        if new < old:
            occupy(memory, old, old + believed, -procs)
            occupy(memory, new, new + believed, procs)
            memory.reservation[job] = new


@kernel
def _reserve(jobs, memory, result, waiting, first, last):
    """Give the jobs waiting[first:last], one after the other, the earliest places that the profile has."""
    for i in range(first, last):
        job = waiting[i]
        believed, procs = jobs.believed[job], jobs.procs[job]
        anchor = anchor_point(memory, believed, procs)
        occupy(memory, anchor, anchor + believed, procs)
        memory.reservation[job] = anchor
        if result.promised[job] < 0:
            result.promised[job] = anchor


@kernel
def _list_in_order(jobs, rules, memory, first, last):
    """Copy queue[first:last] to the candidates, in the policy's order; the queue itself stays in order of arrival."""
    count = last - first
    for i in range(count):
        memory.candidates[i] = memory.queue[first + i]
    if rules.order != BY_ARRIVAL:
        sort_jobs(jobs, memory, rules.order, rules.order_parameter, memory.candidates, memory.candidate_score, 0, count)
    return count
