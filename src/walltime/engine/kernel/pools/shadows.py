"""Reservations of EASY on several pools while no outage is known: no two of them have a pool in common, and what is free only grows.

So no plan is needed. A blocked job starts when enough of the running jobs are expected to have ended, its shadow time, and each pool knows
when its reservation begins and what this leaves free then, as EASY's extra processors on one number of processors.
"""

from __future__ import annotations

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import NEVER


@kernel
def are_shadows_enough(state, rules):
    """Whether reservations need no plan."""
    return rules.depth == 1 and state.outages == 0 and rules.believe_own == rules.believe_running


@kernel
def reserve_shadow(state, jobs, machine, index):
    """Give a blocked job the earliest place that it can have; returns when it begins, NEVER if it can have none."""
    running, given, pools, items = machine.running, machine.given, machine.pools, machine.pools_of.items
    job = jobs[index]
    first, last = machine.pools_of.first[job.partition], machine.pools_of.first[job.partition + 1]
    procs, second = job.procs, job.second
    for k in range(first, last):
        pool = pools[items[k]]
        pool.left_procs, pool.left_second = pool.free_procs, pool.free_second
        procs -= pool.free_procs
        second -= pool.free_second
    begin, i = state.now, 0
    while i < state.running:
        expected = max(running[i].expected, state.now + 1)  # one that is overdue ends in a second
        if procs <= 0 and second <= 0 and expected > begin:
            break
        begin = expected
        for k in range(first, last):
            p = items[k]
            pools[p].left_procs += given[running[i].job, p, 0]
            pools[p].left_second += given[running[i].job, p, 1]
            procs -= given[running[i].job, p, 0]
            second -= given[running[i].job, p, 1]
        i += 1
    if procs > 0 or second > 0:
        begin = NEVER
    procs, second = job.procs, job.second
    for k in range(first, last):
        pool = pools[items[k]]
        pool.begin = begin
        own_procs, own_second = min(procs, pool.left_procs), min(second, pool.left_second)
        pool.left_procs -= own_procs
        pool.left_second -= own_second
        procs -= own_procs
        second -= own_second
    if job.reserved_start < 0 and state.now < begin < NEVER:
        job.reserved_start = begin
    return begin


@kernel
def fits_beside(state, pools, pools_of, least, job):
    """Whether a job that fits now delays none of the reservations; `least` then has what is free of each of its pools all along."""
    procs, second, end = job.procs, job.second, state.now + job.own_length
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        p = pools_of.items[k]
        pool = pools[p]
        least[p, 0], least[p, 1] = pool.free_procs, pool.free_second
        if pool.begin < end:
            least[p, 0], least[p, 1] = min(pool.free_procs, pool.left_procs), min(pool.free_second, pool.left_second)
        procs -= least[p, 0]
        second -= least[p, 1]
    return procs <= 0 and second <= 0


@kernel
def take_from_shadows(state, pools, pools_of, given, job, index):
    """A job that starts and runs on when a reservation begins leaves less then."""
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        pool = pools[pools_of.items[k]]
        if pool.begin < state.now + job.own_length:
            pool.left_procs -= given[index, pools_of.items[k], 0]
            pool.left_second -= given[index, pools_of.items[k], 1]
