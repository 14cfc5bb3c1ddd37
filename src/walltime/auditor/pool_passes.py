"""What a policy starts at an instant on a machine of pools, in compiled code: a plan of what is free of each pool, and the passes over it.

The rules are those of docs/reference/promises.md; nothing is shared with the engines. Times in s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.limits import count_start, within_limits
from walltime.compiled.jit import called_kernel, entry, kernel

Array = np.ndarray
NEVER = np.iinfo(np.int64).max // 4

_FIELDS = "procs second partition own run expected reservation reserved arrival later shut"
POOL_JOB = np.dtype([(name, np.int64) for name in _FIELDS.split()], align=True)
"""A job. `own`: the length that is planned while it waits; `run`: what it is expected to run once it runs, until `expected`.
`reservation`, `reserved`: its present and its first reservation, -1 for none. `later`: 1 if it is left for the backfill order. `shut`: 1 if
a window of the site forbids it to start now."""
_STATE = "now waiting running steps started again early void due depth backfills in_order"
POOL_STATE = np.dtype([(name, np.int64) for name in _STATE.split()], align=True)
"""What changes from pass to pass, and the policy: how many jobs of a pool reserve, whether others pass them, and in which order."""


class Site(NamedTuple):
    """The machine.

    `pools`: of each partition in their order, -1 after the last; `free`: of each pool now, processors and second resource; `outages`: pool,
    processors, second resource, begin, end, known from; `most`, `used`: each limit and what counts towards it; `limits`: of each job, a
    piece that begins at `first`; `marks`: reservations of each pool, whether somebody is blocked there, whether it is closed.
    """

    pools: Array
    free: Array
    outages: Array
    most: Array
    used: Array
    first: Array
    limits: Array
    marks: Array


class Plan(NamedTuple):
    """What is expected to be free of each pool from each time on; and of a place that has been found, the least of each pool."""

    time: Array
    free: Array
    least: Array


class Lines(NamedTuple):
    """Job numbers: who waits, in queue order and in another (of backfilling, or of arrival); who runs, by expected end; who starts."""

    queue: Array
    other: Array
    running: Array
    started: Array


@called_kernel
def step_at(state: Any, plan: Any, time: Any) -> Any:
    """The step of the plan that begins at a time, made if there is none; the number of steps for NEVER."""
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
    """More or less is free of a pool in [begin, end)."""
    first = step_at(state, plan, begin)
    last = step_at(state, plan, end)
    for i in range(first, last):
        plan.free[i, pool, 0] += procs
        plan.free[i, pool, 1] += second


@called_kernel
def make_plan(state: Any, jobs: Any, site: Any, plan: Any, lines: Any, given: Any) -> Any:
    """What is free now, then what comes back when those that run are expected to end, and the outages that are known."""
    pools = site.free.shape[0]
    plan.time[0], state.steps = state.now, 1
    for p in range(pools):
        plan.free[0, p, 0], plan.free[0, p, 1] = site.free[p, 0], site.free[p, 1]
    for i in range(state.running):
        job = lines.running[i]
        k = step_at(state, plan, max(jobs[job].expected, state.now + 1))
        for p in range(pools):
            plan.free[k, p, 0] += given[job, p, 0]
            plan.free[k, p, 1] += given[job, p, 1]
    for i in range(len(site.outages)):
        pool, procs, second, begin, end, known = (
            site.outages[i, 0],
            site.outages[i, 1],
            site.outages[i, 2],
            site.outages[i, 3],
            min(site.outages[i, 4], NEVER),
            site.outages[i, 5],
        )
        if begin <= state.now < end:
            change(state, plan, end, NEVER, pool, procs, second)
        elif known <= state.now < begin:
            change(state, plan, begin, end, pool, -procs, -second)


@kernel
def may_start(jobs: Any, site: Any, job: Any) -> Any:
    """Return whether neither a window nor a limit keeps a job from starting now."""
    return jobs[job].shut == 0 and within_limits(jobs, site, job)


@called_kernel
def find_place(state: Any, jobs: Any, site: Any, plan: Any, job: Any, latest: Any) -> Any:
    """The first time up to `latest` from which on a job has enough all along, or NEVER; `plan.least` has the least of each pool."""
    one, begin = jobs[job], 0
    while begin < state.steps and plan.time[begin] <= latest:
        until = plan.time[begin] + one.own
        for k in range(site.pools.shape[1]):
            p = site.pools[one.partition, k]
            if p >= 0:
                plan.least[p, 0] = plan.least[p, 1] = NEVER if site.marks[p, 2] == 0 else 0
        i, enough = begin, True
        while enough and i < state.steps and (i == begin or plan.time[i] < until):
            procs, second, procs_then, second_then = one.procs, one.second, one.procs, one.second
            for k in range(site.pools.shape[1]):
                p = site.pools[one.partition, k]
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
        # Where there is too little at that step whatever came before, no place may contain it.
        begin = i if procs_then > 0 or second_then > 0 else begin + 1
    return NEVER


@called_kernel
def put_in_place(state: Any, jobs: Any, site: Any, plan: Any, given: Any, job: Any, begin: Any) -> Any:
    """A job gets the place that was just found: of each pool of its partition in turn what stays free there, until it has enough."""
    procs, second = jobs[job].procs, jobs[job].second
    for p in range(site.free.shape[0]):
        given[job, p, 0] = given[job, p, 1] = 0
    for k in range(site.pools.shape[1]):
        p = site.pools[jobs[job].partition, k]
        if p >= 0:
            given[job, p, 0], given[job, p, 1] = min(procs, plan.least[p, 0]), min(second, plan.least[p, 1])
            procs -= given[job, p, 0]
            second -= given[job, p, 1]
    occupy(state, jobs, plan, given, job, begin, 1)


@called_kernel
def occupy(state: Any, jobs: Any, plan: Any, given: Any, job: Any, begin: Any, sign: Any) -> Any:
    """Take a job's place out of the plan, or give it back (-1)."""
    for p in range(plan.free.shape[1]):
        if given[job, p, 0] > 0 or given[job, p, 1] > 0:
            change(state, plan, begin, begin + jobs[job].own, p, -sign * given[job, p, 0], -sign * given[job, p, 1])


@kernel
def begin_now(state: Any, jobs: Any, site: Any, lines: Any, given: Any, job: Any) -> Any:
    """A job starts."""
    for p in range(site.free.shape[0]):
        site.free[p, 0] -= given[job, p, 0]
        site.free[p, 1] -= given[job, p, 1]
    count_start(jobs, site, job)
    jobs[job].reservation = -1
    lines.started[state.started] = job
    state.started += 1


@kernel
def clear_marks(site: Any) -> Any:
    """Nobody has a reservation yet, nobody is blocked, no pool is closed."""
    for p in range(site.marks.shape[0]):
        site.marks[p, 0] = site.marks[p, 1] = site.marks[p, 2] = 0


@kernel
def free_in_all(plan: Any) -> Any:
    """Processors that are free now, in all pools."""
    free = 0
    for p in range(plan.free.shape[1]):
        free += max(plan.free[0, p, 0], 0)
    return free


@entry
def decide_afresh(state: Any, jobs: Any, site: Any, plan: Any, lines: Any, given: Any) -> Any:
    """One pass that makes all reservations anew; `lines.started` has who starts, in order.

    Where at most the head of each pool has a reservation, and a job starts that is expected to run for another time than it was planned
    for, the pass ends and must be made again: `state.again`.
    """
    make_plan(state, jobs, site, plan, lines, given)
    clear_marks(site)
    state.started = state.again = 0
    free = free_in_all(plan)
    for i in range(state.waiting):
        job = lines.queue[i]
        jobs[job].later = 0
        if not may_start(jobs, site, job):
            continue
        reserves, passed = True, False
        for k in range(site.pools.shape[1]):
            p = site.pools[jobs[job].partition, k]
            if p >= 0:
                reserves = reserves and site.marks[p, 0] < state.depth
                passed = passed or site.marks[p, 1] > 0
        begin = NEVER
        if reserves:
            begin = find_place(state, jobs, site, plan, job, NEVER - 1)
        elif state.backfills == 1 and state.in_order == 0 and passed:
            jobs[job].later = 1
        elif jobs[job].procs <= free:
            begin = find_place(state, jobs, site, plan, job, state.now)
        if begin < NEVER:
            if reserves and jobs[job].reserved < 0 and (state.depth > 1 or begin > state.now):
                jobs[job].reserved = begin
            put_in_place(state, jobs, site, plan, given, job, begin)
            if begin == state.now:
                begin_now(state, jobs, site, lines, given, job)
                if state.depth <= 1 and jobs[job].run != jobs[job].own:
                    state.again = 1
                    return
                free = free_in_all(plan)
                continue
        for k in range(site.pools.shape[1]):
            p = site.pools[jobs[job].partition, k]
            if p >= 0:
                site.marks[p, 0] += 1 if reserves else 0
                site.marks[p, 1] = 1
                site.marks[p, 2] = 1 - state.backfills
    for i in range(state.waiting if state.backfills == 1 and state.in_order == 0 else 0):
        job = lines.other[i]
        if jobs[job].later == 0 or jobs[job].procs > free or not may_start(jobs, site, job):
            continue
        if find_place(state, jobs, site, plan, job, state.now) == state.now:
            put_in_place(state, jobs, site, plan, given, job, state.now)
            begin_now(state, jobs, site, lines, given, job)
            if state.depth <= 1 and jobs[job].run != jobs[job].own:
                state.again = 1
                return
            free = free_in_all(plan)


@entry
def decide_kept(state: Any, jobs: Any, site: Any, plan: Any, lines: Any, given: Any) -> Any:
    """One pass of conservative backfilling with kept reservations (mualem01, section 2.1); `state.due` is the next of them.

    Whoever is over a limit has no reservation. After what was not planned (`state.void`), and while a job runs that should have ended, all
    are made anew in queue order.
    """
    make_plan(state, jobs, site, plan, lines, given)
    clear_marks(site)
    state.started = state.again = 0
    overdue = state.running > 0 and jobs[lines.running[0]].expected <= state.now
    afresh = overdue or state.void == 1
    for i in range(state.waiting):
        job = lines.queue[i]
        if jobs[job].reservation >= 0:
            if afresh or not may_start(jobs, site, job):
                jobs[job].reservation = -1
                state.early = 1
            else:
                occupy(state, jobs, plan, given, job, jobs[job].reservation, 1)
    if state.early == 1 and not afresh:
        for i in range(state.waiting):
            job = lines.queue[i]
            if jobs[job].reservation >= 0:
                occupy(state, jobs, plan, given, job, jobs[job].reservation, -1)
                reserve(state, jobs, site, plan, given, job)
    for i in range(state.waiting):
        job = lines.queue[i] if afresh else lines.other[i]
        if jobs[job].reservation < 0 and may_start(jobs, site, job):
            reserve(state, jobs, site, plan, given, job)
    state.early, state.void, state.due = 0, 1 if overdue else 0, NEVER
    for i in range(state.waiting):
        job = lines.other[i]
        if jobs[job].reservation == state.now:
            if may_start(jobs, site, job):
                begin_now(state, jobs, site, lines, given, job)
                if jobs[job].run > jobs[job].own:
                    state.void = 1
            else:
                state.again = 1
        elif jobs[job].reservation >= 0 and not overdue:
            state.due = min(state.due, jobs[job].reservation)


@kernel
def reserve(state: Any, jobs: Any, site: Any, plan: Any, given: Any, job: Any) -> Any:
    """A job gets the earliest place, if there is one."""
    begin = find_place(state, jobs, site, plan, job, NEVER - 1)
    jobs[job].reservation = -1
    if begin < NEVER:
        put_in_place(state, jobs, site, plan, given, job, begin)
        jobs[job].reservation = begin
        if jobs[job].reserved < 0:
            jobs[job].reserved = begin
