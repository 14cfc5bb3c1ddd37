"""A scheduling pass of plan-based scheduling: simulated annealing searches for the best order of the queue."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER, Array, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, first_gap, new_profile, occupy, profile_of_running
from walltime.engine.kernel.queue import drop_started

MULTIPLIER, MODULUS = 48_271, 2**31 - 1
"""Constants of the random number generator of Park and Miller, CACM 1988 and 1993; its products are below 2**47."""
SWAPS, COOLING = 6, 0.9
"""Number of swaps at each temperature, and the factor from one temperature to the next."""
ORDERS = 5
"""Number of initial orders that are compared before the search."""


class Annealing(NamedTuple):
    """The search for a plan; arrays are int64.

    * `best`: the best order of the queue so far; `trial`: the order that is being tried
    * `begin`: the planned start of each job, by index, s
    * `random`: the state of the random number generator, one entry
    """

    profile: Profile
    best: Array
    trial: Array
    begin: Array
    random: Array


@kernel
def pass_by_annealing(state, rules, jobs, machine, queue, _ordered, search):
    """Search for the order whose plan has the lowest waits, and start its jobs that are due; return an upper bound on the steps taken.

    Source: Kopanski and Rzadca 2021; see `walltime.policy.PlanBased`.
    """
    waiting = state.queue_last - state.queue_first
    count = min(waiting, rules.ahead)
    least, most = math.inf, -math.inf
    for number in range(ORDERS):
        for i in range(count):
            search.trial[i] = queue[state.queue_first + i].job
        _sort(jobs, search.trial, count, number)
        cost = _cost(state, rules, jobs, machine, search, count)
        most = max(most, cost)
        if cost < least:
            least = cost
            _copy(search.trial, search.best, count)
    if search.random[0] == 0:
        search.random[0] = rules.random
    _anneal(state, rules, jobs, machine, search, count, least, most)
    _copy(search.best, search.trial, count)
    _cost(state, rules, jobs, machine, search, count)
    for place in range(state.queue_first + count, state.queue_last):
        _plan(state, jobs, search, np.int64(queue[place].job))
    for place in range(state.queue_first, state.queue_last):
        job = np.int64(queue[place].job)
        if jobs[job].reserved_start < 0:
            jobs[job].reserved_start = search.begin[job]
        if search.begin[job] == state.now:
            start_behind(state, rules, jobs, machine, queue, job)
    drop_started(state, jobs, queue)
    return (waiting + count * (rules.iterations + ORDERS)) * search.profile.counts.blocks * STEPS_IN_BLOCK


@called_kernel
def _anneal(state, rules, jobs, machine, search, count, least, most):
    """Try swaps, starting from the best order, which costs `least`; `most`: the cost of the worst initial order."""
    _copy(search.best, search.trial, count)
    temperature = most - least if most > least else 0.1 * least
    if count == 0 or temperature == 0.0:
        return
    before = least
    for swap in range(rules.iterations):
        one, other = math.floor(_uniform(search.random) * count), math.floor(_uniform(search.random) * count)
        search.trial[one], search.trial[other] = search.trial[other], search.trial[one]
        cost = _cost(state, rules, jobs, machine, search, count)
        if cost < before or _uniform(search.random) < math.exp((before - cost) / temperature):
            before = cost
            if cost < least:
                least = cost
                _copy(search.trial, search.best, count)
        else:
            search.trial[one], search.trial[other] = search.trial[other], search.trial[one]
        if swap % SWAPS == SWAPS - 1:
            temperature *= COOLING


@kernel
def _copy(source, target, count):
    for i in range(count):
        target[i] = source[i]


@kernel
def _uniform(random):
    """Return the next random number, above 0 and below 1."""
    random[0] = random[0] * MULTIPLIER % MODULUS
    return random[0] / MODULUS


@called_kernel
def _sort(jobs, line, count, number):
    """Sort jobs that are in order of arrival: orders 1 and 2 are by processors, 3 and 4 by length; even numbers put the largest first."""
    if number == 0:
        return
    for i in range(1, count):
        job, k = line[i], i
        while k > 0 and _key(jobs[job], number) < _key(jobs[line[k - 1]], number):
            line[k] = line[k - 1]
            k -= 1
        line[k] = job


@kernel
def _key(job, number):
    size = job.procs if number < 3 else job.own_length
    return -size if number % 2 == 0 else size


@called_kernel
def _cost(state, rules, jobs, machine, search, count):
    """Plan the jobs of the trial order one after the other, and return the sum of a power of their waits, s."""
    profile_of_running(search.profile, machine.running, state.running, state.now, state.free)
    total = 0.0
    for i in range(count):
        job = search.trial[i]
        wait = float(_plan(state, jobs, search, job) - jobs[job].submit)
        total += wait * wait if rules.power == 2 else wait
    return total


@kernel
def _plan(state, jobs, search, job):
    """Plan a job at the earliest time at which it fits next to the jobs that are already planned; return its start, s."""
    own = jobs[job]
    begin = first_gap(search.profile, state.now, own.own_length, own.procs, np.int64(NEVER))
    occupy(search.profile, begin, begin + own.own_length, own.procs)
    search.begin[job] = begin
    return begin


PASS = Pass(
    ("plan",),
    pass_by_annealing,
    Annealing,
    lambda rules, passes, count: Annealing(new_profile(count), *(np.zeros(most, np.int64) for most in (*[count] * 3, 1))),
    (Loop("plan", "plan-based scheduling", 55, 7),),
)
