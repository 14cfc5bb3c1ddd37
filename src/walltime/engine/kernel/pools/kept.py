"""Conservative backfilling on a machine of several pools: every job keeps its reservation, and early ends compress the schedule.

As number/conservative.py on one number of processors (mualem01, section 2.1), and besides:

* A job over one of its limits has no reservation; that it loses the one it had is as if a job had ended early.
* A change of capacity that was not planned breaks all reservations, as an overdue job does: they are made anew in queue order.
"""

from __future__ import annotations

from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.pools.passes import drop_started, next_candidate, start_in_place, within_limits
from walltime.engine.kernel.pools.plan import first_hole, occupy, take


@called_kernel
def pass_with_kept_places(
    state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, plan, kept, predicting
):
    """Compress if capacity came back early, give the newcomers their reservations, and start whoever's time has come."""
    is_overdue = state.running > 0 and running[0].expected <= state.now
    afresh = is_overdue or state.broken
    for i in range(state.waiting):
        index = queue[i].job
        if kept[index] >= 0 and (afresh or not within_limits(jobs, limits, limits_of, index)):
            kept[index] = -1
            state.early = 1
        if kept[index] >= 0:
            occupy(state, plan, given, index, kept[index], jobs[index].own_length, 1)
    if state.early and not afresh:
        for i in range(state.waiting):
            index = queue[i].job
            if kept[index] >= 0:
                occupy(state, plan, given, index, kept[index], jobs[index].own_length, -1)
                kept[index] = first_hole(state, plan, pools, pools_of, jobs[index], NEVER - 1)
                take(state, plan, pools, pools_of, jobs, given, index, kept[index])
    state.candidates = 0
    for i in range(state.waiting):
        index = queue[i].job
        if kept[index] < 0 and within_limits(jobs, limits, limits_of, index):
            candidates[state.candidates].rank = float(i if afresh else 0)
            candidates[state.candidates].tie, candidates[state.candidates].job = jobs[index].arrival, index
            state.candidates += 1
    while state.candidates > 0:
        _reserve(state, jobs, pools, pools_of, given, plan, kept, next_candidate(state, candidates))
    state.early = 0
    state.broken = 1 if is_overdue else 0
    _start_due(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, kept, predicting)
    drop_started(state, jobs, queue)
    state.next_due = NEVER
    for i in range(state.waiting):
        if kept[queue[i].job] >= 0 and not is_overdue:
            state.next_due = min(state.next_due, kept[queue[i].job])


@kernel
def _reserve(state, jobs, pools, pools_of, given, plan, kept, index):
    """Give a job the earliest place that the plan has, if there is one."""
    begin = first_hole(state, plan, pools, pools_of, jobs[index], NEVER - 1)
    if begin < NEVER:
        take(state, plan, pools, pools_of, jobs, given, index, begin)
        kept[index] = begin
        if jobs[index].reserved_start < 0:
            jobs[index].reserved_start = begin


@kernel
def _start_due(state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, kept, predicting):
    """Start the jobs whose reservation is now, in order of arrival; those that a limit stops meanwhile lose it in another pass."""
    for i in range(state.waiting):
        index = queue[i].job
        if kept[index] == state.now:
            candidates[state.candidates].rank, candidates[state.candidates].tie = 0.0, jobs[index].arrival
            candidates[state.candidates].job = index
            state.candidates += 1
    while state.candidates > 0:
        index = next_candidate(state, candidates)
        if within_limits(jobs, limits, limits_of, index):
            behind = _waits_ahead(state, jobs, pools_of, queue, kept, index)
            start_in_place(state, rules, jobs, pools, limits, limits_of, events, running, given, predicting, index, behind)
        else:
            state.again = 1


@kernel
def _waits_ahead(state, jobs, pools_of, queue, kept, index):
    """Whether a job that arrived before this one waits with a reservation, and shares a pool with it."""
    for i in range(state.waiting):
        other = queue[i].job
        if kept[other] >= 0 and jobs[other].start < 0 and jobs[other].arrival < jobs[index].arrival:
            if _share_a_pool(pools_of, jobs[other].partition, jobs[index].partition):
                return True
    return False


@kernel
def _share_a_pool(pools_of, one, other):
    """Whether two partitions have a pool in common."""
    for i in range(pools_of.first[one], pools_of.first[one + 1]):
        for k in range(pools_of.first[other], pools_of.first[other + 1]):
            if pools_of.items[i] == pools_of.items[k]:
                return True
    return False
