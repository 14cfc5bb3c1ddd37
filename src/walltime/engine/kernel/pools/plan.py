"""The plan of a machine of several pools: what is free of each over future time, as a step function.

A job takes its processors from the pools of its partition, in their order, as many from each as stay free for all the time that it is
planned for; so its place is known by its begin and what it takes of each pool. Of the second resource likewise.
"""

from __future__ import annotations

from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.profile import NEVER

__all__ = ["end_of_hole", "first_hole", "forget_past", "occupy", "occupy_until", "plan_of_running", "share", "step_before", "take"]


@kernel
def plan_of_running(state, machine, plan):
    """Make the plan anew: what is free now, the expected ends of the running jobs, and the outages that are known."""
    time, free, running, given = plan.time, plan.free, machine.running, machine.given
    count = len(machine.pools)
    time[0] = state.now
    for p in range(count):
        free[0, p, 0], free[0, p, 1] = machine.pools[p].free_procs, machine.pools[p].free_second
    last = 0
    for i in range(state.running):
        end = max(running[i].expected, state.now + 1)
        if end > time[last]:
            last += 1
            time[last] = end
            for p in range(count):
                free[last, p, 0], free[last, p, 1] = free[last - 1, p, 0], free[last - 1, p, 1]
        for p in range(count):
            free[last, p, 0] += given[running[i].job, p, 0]
            free[last, p, 1] += given[running[i].job, p, 1]
    state.steps = last + 1
    for i in range(len(machine.outages)):
        outage = machine.outages[i]
        if outage.phase == 1:
            _change(state, plan, outage.begin, outage.end, outage.pool, -outage.procs, -outage.second)
        elif outage.phase == 2:
            _change(state, plan, outage.end, NEVER, outage.pool, outage.procs, outage.second)


@called_kernel
def forget_past(state, plan):
    """Let the plan begin now, and join the steps that do not differ."""
    time, free = plan.time, plan.free
    first = 0
    while first + 1 < state.steps and time[first + 1] <= state.now:
        first += 1
    kept = 0
    for i in range(first, state.steps):
        differs = i == first
        for p in range(free.shape[1]):
            differs = differs or free[i, p, 0] != free[kept - 1, p, 0] or free[i, p, 1] != free[kept - 1, p, 1]
        if differs:
            time[kept] = time[i]
            for p in range(free.shape[1]):
                free[kept, p, 0], free[kept, p, 1] = free[i, p, 0], free[i, p, 1]
            kept += 1
    time[0] = state.now
    state.steps = kept


@kernel
def step_before(state, plan, time):
    """The last step that begins before a time; -1 for none."""
    low, high = 0, state.steps
    while low < high:
        middle = (low + high) // 2
        if plan.time[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@called_kernel
def _step_at(state, plan, time):
    """The step that begins at a time, made if need be; the number of steps if the time is NEVER."""
    low = step_before(state, plan, time) + 1
    if time == NEVER or (low < state.steps and plan.time[low] == time):
        return low
    for i in range(state.steps, low, -1):
        plan.time[i] = plan.time[i - 1]
        for p in range(plan.free.shape[1]):
            plan.free[i, p, 0], plan.free[i, p, 1] = plan.free[i - 1, p, 0], plan.free[i - 1, p, 1]
    plan.time[low] = time
    for p in range(plan.free.shape[1]):
        plan.free[low, p, 0], plan.free[low, p, 1] = plan.free[low - 1, p, 0], plan.free[low - 1, p, 1]
    state.steps += 1
    return low


@kernel
def _change(state, plan, begin, end, pool, procs, second):
    """Add to what is free of a pool in [begin, end)."""
    if begin >= end:
        return
    first = _step_at(state, plan, begin)
    last = _step_at(state, plan, end)
    for i in range(first, last):
        plan.free[i, pool, 0] += procs
        plan.free[i, pool, 1] += second


@called_kernel
def first_hole(state, pools, pools_of, plan, job, earliest):
    """The earliest time from the step at `earliest` on at which a job fits for its own length; NEVER if there is none.

    Afterwards `plan.least` has what is free there of each pool all along.
    """
    begin = max(step_before(state, plan, earliest + 1), 0)
    while begin < state.steps:
        if not _enough_at(pools, pools_of, job, plan.free, begin):
            begin += 1
            continue
        step = end_of_hole(state, pools, pools_of, plan, job, begin)
        if step < 0:
            return plan.time[begin]
        begin = begin + 1 if _enough_at(pools, pools_of, job, plan.free, step) else step + 1
    return NEVER


@called_kernel
def end_of_hole(state, pools, pools_of, plan, job, begin):
    """The first step in which not enough is left for a job that begins with this step; -1 if there is enough for its own length.

    Afterwards `plan.least` has what is free of each pool all along.
    """
    time, free, least = plan.time, plan.free, plan.least
    first, last = pools_of.first[job.partition], pools_of.first[job.partition + 1]
    for k in range(first, last):
        least[pools_of.items[k], 0] = least[pools_of.items[k], 1] = NEVER
    end = time[begin] + job.own_length if time[begin] < NEVER - job.own_length else NEVER
    step = begin
    while step < state.steps and time[step] < end:
        procs, second = job.procs, job.second
        for k in range(first, last):
            p = pools_of.items[k]
            least[p, 0] = min(least[p, 0], max(free[step, p, 0], 0))  # below 0 while an outage takes what is in use
            least[p, 1] = min(least[p, 1], max(free[step, p, 1], 0))
            if not pools[p].closed:
                procs -= least[p, 0]
                second -= least[p, 1]
        if procs > 0 or second > 0:
            return step
        step += 1
    return -1


@kernel
def _enough_at(pools, pools_of, job, free, step):
    """Whether what is free in a step would be enough, if it lasted."""
    procs, second = job.procs, job.second
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        p = pools_of.items[k]
        if not pools[p].closed:
            procs -= max(free[step, p, 0], 0)
            second -= max(free[step, p, 1], 0)
    return procs <= 0 and second <= 0


@kernel
def share(pools, pools_of, given, job, index, amounts):
    """Give a job what it needs out of the amounts of the pools of its partition, in their order."""
    procs, second = job.procs, job.second
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        p = pools_of.items[k]
        given[index, p, 0] = given[index, p, 1] = 0
        if not pools[p].closed:
            given[index, p, 0], given[index, p, 1] = min(procs, amounts[p, 0]), min(second, amounts[p, 1])
            procs -= given[index, p, 0]
            second -= given[index, p, 1]


@kernel
def take(state, machine, plan, job, index, begin):
    """Give a job its place from `begin` on, out of what `first_hole` has just found."""
    share(machine.pools, machine.pools_of, machine.given, job, index, plan.least)
    occupy(state, machine.given, plan, job, index, begin, 1)


@kernel
def occupy(state, given, plan, job, index, begin, sign):
    """Take a job's place out of the plan (1), or give it back (-1)."""
    occupy_until(state, given, plan, index, begin, begin + job.own_length, sign)


@called_kernel
def occupy_until(state, given, plan, index, begin, end, sign):
    """The same for the part of a job's place in [begin, end)."""
    first = _step_at(state, plan, begin)
    last = _step_at(state, plan, end)
    for p in range(plan.free.shape[1]):
        procs, second = sign * given[index, p, 0], sign * given[index, p, 1]
        if procs != 0 or second != 0:
            for i in range(first, last):
                plan.free[i, p, 0] -= procs
                plan.free[i, p, 1] -= second
