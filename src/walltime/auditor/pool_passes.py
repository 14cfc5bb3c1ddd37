"""A policy's passes at one instant on a machine with several pools: a plan of each pool's free processors, and jobs placed in it; compiled.

docs/reference/promises.md has the rules; the engines share nothing with this module. Times in s.
"""

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, entry, kernel
from walltime.compiled.records import record_dtype

Array = np.ndarray
NEVER = np.iinfo(np.int64).max // 4

POOL_JOB = record_dtype("procs second partition own run expected reservation reserved arrival later shut")
"""A job. `own`: its planned length while it waits; `run`: its expected runtime once it runs, until `expected`. `reservation`, `reserved`:
the starts of its current and its first reservation, -1 for none. `later`: 1 if it is left for the backfill order. `shut`: 1 if a window of
the site forbids its start now."""
POOL_STATE = record_dtype("now waiting running steps started again early void due depth backfills in_order")
"""The state that changes from pass to pass, and the policy: the number of reservations per pool (`depth`), whether it backfills, and
whether it does so in queue order."""


class Pools(NamedTuple):
    """A machine of several pools, and the limits on its jobs; int64.

    * `order`: the pools of each partition in order, -1 after the last; `free`: processors and second resource of each pool now
    * `outages`: pool, processors, second resource, beginning, end, and the time from which the outage is known
    * `most`, `used`: for each limit, the amounts that it allows, and that are in use; job k has the limits `limits[first[k] : first[k +
      1]]`
    * `marks`: for each pool, the number of reservations, whether a job is blocked, and whether the pool is closed
    """

    order: Array
    free: Array
    outages: Array
    most: Array
    used: Array
    first: Array
    limits: Array
    marks: Array


class PoolPlan(NamedTuple):
    """The free processors and second resource of each pool from each time on; `least`: their minimum over the gap just found."""

    time: Array
    free: Array
    least: Array


class PoolLists(NamedTuple):
    """Jobs: waiting in queue order; waiting in backfill order or by arrival; running by expected end; started in this pass."""

    queue: Array
    other: Array
    running: Array
    started: Array


@called_kernel
def step_at(state: Any, plan: Any, time: Any) -> Any:
    """Return the index of the step that begins at a time, inserting it if it is missing; the number of steps for NEVER."""
    if time >= NEVER:
        return state.steps
    k = state.steps
    while k > 0 and plan.time[k - 1] > time:
        k -= 1
    if k > 0 and plan.time[k - 1] == time:
        return k - 1
    for i in range(state.steps, k, -1):
        plan.time[i] = plan.time[i - 1]
        for p in range(plan.free.shape[1]):
            plan.free[i, p, 0], plan.free[i, p, 1] = plan.free[i - 1, p, 0], plan.free[i - 1, p, 1]
    plan.time[k] = time
    for p in range(plan.free.shape[1]):
        plan.free[k, p, 0], plan.free[k, p, 1] = plan.free[k - 1, p, 0], plan.free[k - 1, p, 1]
    state.steps += 1
    return k


@kernel
def change(state: Any, plan: Any, begin: Any, end: Any, pool: Any, procs: Any, second: Any) -> Any:
    """Change the free amounts of a pool in [begin, end)."""
    first = step_at(state, plan, begin)
    last = step_at(state, plan, end)
    for i in range(first, last):
        plan.free[i, pool, 0] += procs
        plan.free[i, pool, 1] += second


@called_kernel
def make_plan(state: Any, jobs: Any, pools: Any, plan: Any, lists: Any, given: Any) -> Any:
    """Make the plan from the currently free amounts, the expected ends of running jobs, and the currently known outages."""
    plan.time[0], state.steps = state.now, 1
    for p in range(pools.free.shape[0]):
        plan.free[0, p, 0], plan.free[0, p, 1] = pools.free[p, 0], pools.free[p, 1]
    for i in range(state.running):
        job = lists.running[i]
        k = step_at(state, plan, max(jobs[job].expected, state.now + 1))
        for p in range(pools.free.shape[0]):
            plan.free[k, p, 0] += given[job, p, 0]
            plan.free[k, p, 1] += given[job, p, 1]
    for i in range(len(pools.outages)):
        pool, procs, second = pools.outages[i, 0], pools.outages[i, 1], pools.outages[i, 2]
        begin, end, known = pools.outages[i, 3], min(pools.outages[i, 4], NEVER), pools.outages[i, 5]
        if begin <= state.now < end:
            change(state, plan, end, NEVER, pool, procs, second)
        elif known <= state.now < begin:
            change(state, plan, begin, end, pool, -procs, -second)


@kernel
def may_start(jobs: Any, pools: Any, job: Any) -> Any:
    """Return whether windows and limits allow a job to start now."""
    if jobs[job].shut == 1:
        return False
    for k in range(pools.first[job], pools.first[job + 1]):
        limit = pools.limits[k]
        if pools.used[limit, 0] + 1 > pools.most[limit, 0] or pools.used[limit, 1] + jobs[job].procs > pools.most[limit, 1]:
            return False
        if pools.used[limit, 2] + jobs[job].second > pools.most[limit, 2]:
            return False
    return True


@called_kernel
def find_place(state: Any, jobs: Any, pools: Any, plan: Any, job: Any, latest: Any) -> Any:
    """Return the earliest time up to `latest` from which a job has enough for its planned length, else NEVER; set `plan.least`."""
    one, begin = jobs[job], 0
    while begin < state.steps and plan.time[begin] <= latest:
        until = plan.time[begin] + one.own
        for k in range(pools.order.shape[1]):
            p = pools.order[one.partition, k]
            if p >= 0:
                plan.least[p, 0] = plan.least[p, 1] = NEVER if pools.marks[p, 2] == 0 else 0
        i, enough = begin, True
        while enough and i < state.steps and (i == begin or plan.time[i] < until):
            procs, second, procs_then, second_then = one.procs, one.second, one.procs, one.second
            for k in range(pools.order.shape[1]):
                p = pools.order[one.partition, k]
                if p >= 0:
                    plan.least[p, 0] = min(plan.least[p, 0], max(plan.free[i, p, 0], 0))
                    plan.least[p, 1] = min(plan.least[p, 1], max(plan.free[i, p, 1], 0))
                    procs -= plan.least[p, 0]
                    second -= plan.least[p, 1]
                    procs_then -= max(plan.free[i, p, 0], 0)
                    second_then -= max(plan.free[i, p, 1], 0)
            enough = procs <= 0 and second <= 0
            i += 1
        if enough:
            return plan.time[begin]
        # If that step alone has too little, no gap may contain it.
        begin = i if procs_then > 0 or second_then > 0 else begin + 1
    return NEVER


@called_kernel
def put_in_place(state: Any, jobs: Any, pools: Any, plan: Any, given: Any, job: Any, begin: Any) -> Any:
    """Give a job the gap just found: take the free amounts of each pool of its partition in turn, until it has enough."""
    procs, second = jobs[job].procs, jobs[job].second
    for p in range(pools.free.shape[0]):
        given[job, p, 0] = given[job, p, 1] = 0
    for k in range(pools.order.shape[1]):
        p = pools.order[jobs[job].partition, k]
        if p >= 0:
            given[job, p, 0], given[job, p, 1] = min(procs, plan.least[p, 0]), min(second, plan.least[p, 1])
            procs -= given[job, p, 0]
            second -= given[job, p, 1]
    occupy(state, jobs, plan, given, job, begin, 1)


@called_kernel
def occupy(state: Any, jobs: Any, plan: Any, given: Any, job: Any, begin: Any, sign: Any) -> Any:
    """Take a job's reservation out of the plan (1), or release it (-1)."""
    for p in range(plan.free.shape[1]):
        if given[job, p, 0] > 0 or given[job, p, 1] > 0:
            change(state, plan, begin, begin + jobs[job].own, p, -sign * given[job, p, 0], -sign * given[job, p, 1])


@kernel
def begin_now(state: Any, jobs: Any, pools: Any, lists: Any, given: Any, job: Any) -> Any:
    """Start a job; end the pass if at most the heads have reservations and the job is expected to run longer or shorter than planned."""
    for p in range(pools.free.shape[0]):
        pools.free[p, 0] -= given[job, p, 0]
        pools.free[p, 1] -= given[job, p, 1]
    for k in range(pools.first[job], pools.first[job + 1]):
        limit = pools.limits[k]
        pools.used[limit, 0] += 1
        pools.used[limit, 1] += jobs[job].procs
        pools.used[limit, 2] += jobs[job].second
    jobs[job].reservation = -1
    lists.started[state.started] = job
    state.started += 1
    if state.depth <= 1 and jobs[job].run != jobs[job].own:
        state.again = 1


@kernel
def free_in_all(plan: Any) -> Any:
    """Return the processors that are free now in all pools together."""
    free = 0
    for p in range(plan.free.shape[1]):
        free += max(plan.free[0, p, 0], 0)
    return free


@entry
def make_new_plan(state: Any, jobs: Any, pools: Any, plan: Any, lists: Any, given: Any) -> Any:
    """Run a pass that makes all reservations again; `lists.started` gets the jobs that start, in order.

    If only the head of each pool has a reservation, the pass ends after the start of a job whose expected runtime differs from its planned
    length, and must be repeated (`state.again`).
    """
    make_plan(state, jobs, pools, plan, lists, given)
    pools.marks[:] = 0
    state.started = state.again = 0
    free = free_in_all(plan)
    for i in range(state.waiting):
        job = lists.queue[i]
        jobs[job].later = 0
        if not may_start(jobs, pools, job):
            continue
        reserves, passed = True, False
        for k in range(pools.order.shape[1]):
            p = pools.order[jobs[job].partition, k]
            if p >= 0:
                reserves = reserves and pools.marks[p, 0] < state.depth
                passed = passed or pools.marks[p, 1] > 0
        begin = NEVER
        if reserves:
            begin = find_place(state, jobs, pools, plan, job, NEVER - 1)
        elif state.backfills == 1 and state.in_order == 0 and passed:
            jobs[job].later = 1
        elif jobs[job].procs <= free:
            begin = find_place(state, jobs, pools, plan, job, state.now)
        if begin < NEVER:
            if reserves and jobs[job].reserved < 0 and (state.depth > 1 or begin > state.now):
                jobs[job].reserved = begin
            put_in_place(state, jobs, pools, plan, given, job, begin)
            if begin == state.now:
                begin_now(state, jobs, pools, lists, given, job)
                if state.again == 1:
                    return
                free = free_in_all(plan)
                continue
        for k in range(pools.order.shape[1]):
            p = pools.order[jobs[job].partition, k]
            if p >= 0:
                pools.marks[p, 0] += 1 if reserves else 0
                pools.marks[p, 1] = 1
                pools.marks[p, 2] = 1 - state.backfills
    for i in range(state.waiting if state.backfills == 1 and state.in_order == 0 else 0):
        job = lists.other[i]
        if jobs[job].later == 0 or jobs[job].procs > free or not may_start(jobs, pools, job):
            continue
        if find_place(state, jobs, pools, plan, job, state.now) == state.now:
            put_in_place(state, jobs, pools, plan, given, job, state.now)
            begin_now(state, jobs, pools, lists, given, job)
            if state.again == 1:
                return
            free = free_in_all(plan)


@entry
def update_plan(state: Any, jobs: Any, pools: Any, plan: Any, lists: Any, given: Any) -> Any:
    """Run a pass of conservative backfilling with kept reservations (mualem01, section 2.1); `state.due`: the next reserved start.

    Jobs over a limit have no reservation. After an unplanned change (`state.void`), and while a running job is overdue, all reservations
    are made again in queue order.
    """
    make_plan(state, jobs, pools, plan, lists, given)
    pools.marks[:] = 0
    state.started = state.again = 0
    overdue = state.running > 0 and jobs[lists.running[0]].expected <= state.now
    from_scratch = overdue or state.void == 1
    for i in range(state.waiting):
        job = lists.queue[i]
        if jobs[job].reservation >= 0:
            if from_scratch or not may_start(jobs, pools, job):
                jobs[job].reservation = -1
                state.early = 1
            else:
                occupy(state, jobs, plan, given, job, jobs[job].reservation, 1)
    if state.early == 1 and not from_scratch:
        for i in range(state.waiting):
            job = lists.queue[i]
            if jobs[job].reservation >= 0:
                occupy(state, jobs, plan, given, job, jobs[job].reservation, -1)
                reserve(state, jobs, pools, plan, given, job)
    for i in range(state.waiting):
        job = lists.queue[i] if from_scratch else lists.other[i]
        if jobs[job].reservation < 0 and may_start(jobs, pools, job):
            reserve(state, jobs, pools, plan, given, job)
    state.early, state.void, state.due = 0, 1 if overdue else 0, NEVER
    for i in range(state.waiting):
        job = lists.other[i]
        if jobs[job].reservation == state.now:
            if may_start(jobs, pools, job):
                begin_now(state, jobs, pools, lists, given, job)
                if jobs[job].run > jobs[job].own:
                    state.void = 1
            else:
                state.again = 1
        elif jobs[job].reservation >= 0 and not overdue:
            state.due = min(state.due, jobs[job].reservation)


@kernel
def reserve(state: Any, jobs: Any, pools: Any, plan: Any, given: Any, job: Any) -> Any:
    """Make the earliest reservation for a job, if one fits."""
    begin = find_place(state, jobs, pools, plan, job, NEVER - 1)
    jobs[job].reservation = -1
    if begin < NEVER:
        put_in_place(state, jobs, pools, plan, given, job, begin)
        jobs[job].reservation = begin
        if jobs[job].reserved < 0:
            jobs[job].reserved = begin
