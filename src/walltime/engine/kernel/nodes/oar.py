"""The event loop for OAR's scheduling: one serial server, whose passes plan all jobs again on individual nodes.

The rules, which reference/oar.py implements in plain Python; real time is in ms, starts and ends are in s:

* A submission, an end, and the launch of jobs that a pass has started each cause an update of node states, called a step, and then a pass.
  The step handles the events before it begins. The pass also sees events up to the moment when it reads the clock, but these cause another
  step and pass.
* Jobs start at the second that the pass has read, plus `tick`, and never before the starts of an earlier pass.
* The plan is a list of slots, each with a set of free nodes. A running job holds its nodes for its requested time and the security time.
  With `bug`, running jobs are inserted with a pointer: a job that ends no later than the slot at the pointer, unless that is the first
  slot, is taken out of the first slot only. Any other job moves the pointer to the slot in which it ends.
* Waiting jobs are planned in order, at the beginning of the first slot from which enough nodes stay free for the job. Jobs planned for the
  current time start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.bits import size_of
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import BACKFILLED, DONE, IMMEDIATE, ITEM, NEVER, PAUSED, REACHED, RESERVED, STUCK, record, records
from walltime.engine.kernel.pools.memory import Lists, Records, list_of
from walltime.engine.kernel.running import release
from walltime.engine.kernel.slots import SLOT, copy_set, first_slot, keep_first, take, take_from

Array = np.ndarray

OAR_JOB = record_dtype("submit runtime planned nodes partition noticed phase start kind reserved_start pending after think")
"""A job; times in s, except `noticed` and `phase`, which are as in `problem.OarSettings`; `nodes`: number of nodes that it needs."""

OAR_RULES = record_dtype("security bug step clock idle busy start launch end period tick")
"""The settings: the fields of `policy.oar.Latencies`, ms, except `tick`, s; `security`: the security time, s; `bug`: whether the plan has
the bug of 2016."""

OAR_STATE = record_dtype("now time again begun no_room at_first events waiting running started slots starting until awaited")
"""Values that change at every event.

* `now`: the time of the last pass, s; `time`: the time up to which the server has worked, ms
* `again`: whether something has happened since the last step
* `events`, `waiting`, `running`, `slots`, `starting`: numbers of entries in use
* `no_room`: the number, from 1, of an initially running job that does not fit, or 0
* `until`, `awaited`: as in memory.STATE; `until` is compared with the times of passes"""

SUBMISSION, END, LAUNCH = 0, 1, 2
SCRATCH, ALL = 0, 1
"""Rows of `sets`: scratch memory, and all nodes; the rows behind these are the partitions."""


class OarPlan(NamedTuple):
    """The plan.

    * `slots`: records of SLOT, the first slot in row 0; `free`: the free nodes in each slot, int64 words
    * `starting`: the jobs that start in this pass
    """

    slots: Records
    free: Array
    starting: Array


class OarTraffic(NamedTuple):
    """Jobs that wait, run or end.

    * `at_first`: the initially running jobs; `events`: a heap of events, whose ties are the kinds of events
    * `queue`: the waiting jobs; `running`: the running jobs, in order of start; `followers`: which jobs follow which
    """

    at_first: Array
    events: Records
    queue: Array
    running: Array
    followers: Lists


class OarMemory(NamedTuple):
    """All data of one simulation; `had`: the nodes of each job, int64 words."""

    state: Records
    rules: Records
    jobs: Records
    sets: Array
    had: Array
    plan: OarPlan
    traffic: OarTraffic


def new_oar_memory(rules: Records, jobs: Records, sets: Array, followers: Lists) -> OarMemory:
    """Return memory before the first event."""
    count, words = len(jobs), sets.shape[1]
    state = record(OAR_STATE, now=-NEVER, time=-NEVER, until=NEVER)
    plan = OarPlan(records(SLOT, count + 2), np.zeros((count + 2, words), np.int64), np.zeros(count, np.int64))
    places = [np.zeros(count, np.int64) for _ in range(3)]
    traffic = OarTraffic(places[0], records(ITEM, 2 * count), places[1], places[2], followers)
    return OarMemory(state, rules, jobs, sets, np.zeros((count, words), np.int64), plan, traffic)


def run_oar(state, rules, jobs, sets, had, plan, traffic, budget):
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; return the codes of `run_cluster`."""
    if not state.begun:
        _place_first(state, rules, jobs, sets, had, traffic)
        state.begun = 1
    if state.no_room > 0:
        return STUCK
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        if not state.again:
            when = NEVER
            if state.events > 0:
                when = traffic.events[0].rank
            if state.waiting > 0 and rules.period > 0:
                when = min(when, state.time + rules.period)
            if when == NEVER and state.started == len(jobs):
                return DONE
            if when == NEVER:
                return STUCK if state.until == NEVER else REACHED
            if _reads_later(state, rules, max(state.time, when)):
                return REACHED
            state.time = max(state.time, when)
        elif _reads_later(state, rules, state.time):
            return REACHED
        _process_events(state, jobs, traffic, state.time)
        state.time += rules.step
        state.again = _process_events(state, jobs, traffic, state.time + rules.clock)
        state.now = max((state.time + rules.clock) // 1000, state.now) + rules.tick
        if state.waiting == 0:
            state.time += rules.idle
            budget -= 1
        else:
            budget -= state.waiting
            _pass(state, rules, jobs, sets, had, plan, traffic)
            budget -= state.slots * (1 + state.waiting)
            state.time += rules.busy + rules.start * state.starting
            for i in range(state.starting):
                job = plan.starting[i]
                _run(state, rules, jobs, traffic, job, state.time + rules.launch)
                _push(state, traffic, state.time + rules.launch, LAUNCH, job)
    return PAUSED


@kernel
def _reads_later(state, rules, begin):
    """Return whether the pass after a step that begins at this time (ms) reads a time after `state.until` from the clock."""
    return max((begin + rules.step + rules.clock) // 1000, state.now) + rules.tick > state.until


@kernel
def _place_first(state, rules, jobs, sets, had, traffic):
    """Give the initially running jobs the first free nodes, in order of their starts."""
    for k in range(state.at_first):
        index = traffic.at_first[k]
        copy_set(sets[SCRATCH], sets[ALL + 1 + jobs[index].partition])
        for i in range(state.running):
            for w in range(sets.shape[1]):
                sets[SCRATCH, w] &= ~had[traffic.running[i], w]
        if size_of(sets[SCRATCH]) < jobs[index].nodes:
            state.no_room = index + 1
            return
        keep_first(sets[SCRATCH], jobs[index].nodes)
        copy_set(had[index], sets[SCRATCH])
        _run(state, rules, jobs, traffic, index, -NEVER)


@kernel
def _push(state, traffic, time, what, job):
    push(traffic.events, state.events, time, what, job)
    state.events += 1


@kernel
def _process_events(state, jobs, traffic, until):
    """Process the events until a time; return whether there were any."""
    happened = 0
    while state.events > 0 and traffic.events[0].rank <= until:
        what, job = traffic.events[0].tie, pop(traffic.events, state.events)
        state.events -= 1
        happened = 1
        if what == SUBMISSION:
            place = state.waiting
            while place > 0 and _is_later(jobs[traffic.queue[place - 1]].submit, traffic.queue[place - 1], jobs[job].submit, job):
                traffic.queue[place] = traffic.queue[place - 1]
                place -= 1
            traffic.queue[place] = job
            state.waiting += 1
        elif what == END:
            _end(state, jobs, traffic, job)
    return happened


@kernel
def _is_later(time, job, other_time, other):
    """Return whether a job comes after another, by a time and then by number."""
    return time > other_time or (time == other_time and job > other)


@kernel
def _end(state, jobs, traffic, index):
    """End a job, and submit the jobs that wait for no other job."""
    place = 0
    while traffic.running[place] != index:
        place += 1
    state.running -= 1
    for i in range(place, state.running):
        traffic.running[i] = traffic.running[i + 1]
    end, followers = jobs[index].start + jobs[index].runtime, traffic.followers
    for follower in list_of(followers, index):
        if release(jobs[follower], index, end):
            _push(state, traffic, 1000 * jobs[follower].submit + jobs[follower].noticed, SUBMISSION, follower)


@kernel
def _run(state, rules, jobs, traffic, index, launched):
    """Run a job on its nodes; its end is noticed at `launched` (ms) at the earliest, when its launch is complete."""
    job, place = jobs[index], state.running
    while place > 0 and _is_later(jobs[traffic.running[place - 1]].start, traffic.running[place - 1], job.start, index):
        traffic.running[place] = traffic.running[place - 1]
        place -= 1
    traffic.running[place] = index
    state.running += 1
    state.started += 1
    _push(state, traffic, max(1000 * (job.start + job.runtime) + job.phase + rules.end, launched), END, index)


@called_kernel
def _pass(state, rules, jobs, sets, had, plan, traffic):
    """Plan the jobs again, up to the last one that could start now or has never been planned.

    Jobs planned for the current time are added to `plan.starting`.
    """
    queue, slots = traffic.queue, plan.slots
    slots[0].begin, slots[0].end, slots[0].next = state.now, NEVER, -1
    copy_set(plan.free[0], sets[ALL])
    state.slots, pointer = 1, 0
    for i in range(state.running):
        job = traffic.running[i]
        last = max(jobs[job].start + jobs[job].planned + rules.security - 1, state.now)
        if rules.bug and pointer != 0 and last <= slots[pointer].end:
            take(state, slots, plan.free, 0, last, had[job])
            continue
        while last > slots[pointer].end:
            pointer = slots[pointer].next
        take_from(state, slots, plan.free, 0, last, had[job])
    free, until = size_of(plan.free[0]), state.waiting
    while until > 0 and jobs[queue[until - 1]].reserved_start >= 0 and jobs[queue[until - 1]].nodes > free:
        until -= 1
    state.starting = left = 0
    for place in range(state.waiting):
        index = queue[place]
        job = jobs[index]
        begin = NEVER
        if place < until:
            own, length = sets[ALL + 1 + job.partition], job.planned + rules.security
            slot = first_slot(slots, plan.free, sets[SCRATCH], own, job.nodes, length)
            begin = slots[slot].begin
            keep_first(sets[SCRATCH], job.nodes)
            take_from(state, slots, plan.free, slot, begin + length - 1, sets[SCRATCH])
        if begin == state.now:
            job.kind = BACKFILLED if left > 0 else IMMEDIATE if job.reserved_start < 0 else RESERVED
            job.start = begin
            copy_set(had[index], sets[SCRATCH])
            plan.starting[state.starting] = index
            state.starting += 1
            continue
        if job.reserved_start < 0:
            job.reserved_start = begin
        queue[left] = index
        left += 1
    state.waiting = left
