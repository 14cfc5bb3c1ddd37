"""START HERE: the event loop. Everything that happens to a simulated machine happens in `run`.

The events are arrivals and terminations (P2 section 3.1), and under kept reservations the moment at which one is due. After
the events of an instant the policy makes a scheduling pass:

    fcfs, easy                       backfill.py   at most the head of the queue has a reservation
    hybrid, conservative-scratch     plan.py       reservations are made afresh at every event
    conservative                     keep.py       every job keeps its reservation; early ends compress the schedule

The passes look at the waiting jobs (queue.py), the running jobs (machine.py) and the free processors over future time
(profile.py); what all of them work on is declared in memory.py. The public entrance, with validation, is run.py;
reference.py does the same in plain Python, slowly and independently.
"""

from __future__ import annotations

from walltime.engine.backfill import pass_with_head_reservation
from walltime.engine.jit import kernel
from walltime.engine.keep import pass_with_kept_reservations
from walltime.engine.machine import end_expected_now, end_job, pop_event
from walltime.engine.memory import (
    ARRIVED,
    DONE,
    EVENTS,
    HEAD,
    NEVER,
    NEXT_DUE,
    NOW,
    PAUSED,
    PLAN,
    QUEUE_FIRST,
    QUEUE_LAST,
    STUCK,
)
from walltime.engine.plan import pass_with_fresh_reservations
from walltime.engine.queue import enqueue


@kernel
def run(jobs, rules, memory, result, budget):
    """Simulate until every job has started and ended, or until about `budget` queue places have been looked at.

    Returns DONE; PAUSED when the budget is used up, and another call goes on from there; STUCK, with jobs waiting that
    nothing will start, which no rule allows.
    """
    state = memory.state
    while budget > 0:
        now = _next_event(jobs, memory)
        if now == NEVER:
            return DONE if state[QUEUE_FIRST] == state[QUEUE_LAST] else STUCK
        state[NOW] = now
        if rules.sequential:
            _take_one_event(jobs, rules, memory, result)
        else:
            _take_all_events(jobs, rules, memory, result)
        budget -= 1 + _scheduling_pass(jobs, rules, memory, result)
    return PAUSED


@kernel
def _next_event(jobs, memory):
    """Time of the next arrival, termination or due reservation."""
    state = memory.state
    now = state[NEXT_DUE]
    if state[ARRIVED] < jobs.submit.size:
        now = min(now, jobs.submit[state[ARRIVED]])
    if state[EVENTS] > 0:
        now = min(now, memory.event_end[0])
    return now


@kernel
def _take_all_events(jobs, rules, memory, result):
    """Coincident events as a batch: all terminations of this instant, then all arrivals (SPEC Q-01)."""
    state = memory.state
    now = state[NOW]
    while state[EVENTS] > 0 and memory.event_end[0] == now:
        end_job(jobs, rules, memory, result, pop_event(memory))
    while state[ARRIVED] < jobs.submit.size and jobs.submit[state[ARRIVED]] == now:
        enqueue(memory, state[ARRIVED])
        state[ARRIVED] += 1


@kernel
def _take_one_event(jobs, rules, memory, result):
    """Coincident events one by one, arrivals before terminations, each followed by a pass of its own."""
    state = memory.state
    now = state[NOW]
    end_expected_now(jobs, rules, memory, result)
    if state[ARRIVED] < jobs.submit.size and jobs.submit[state[ARRIVED]] == now:
        enqueue(memory, state[ARRIVED])
        state[ARRIVED] += 1
    elif state[EVENTS] > 0 and memory.event_end[0] == now:
        job = pop_event(memory)
        if result.start[job] + jobs.believed[job] != now:  # else it is gone already
            end_job(jobs, rules, memory, result, job)


@kernel
def _scheduling_pass(jobs, rules, memory, result):
    """Start the jobs that the policy lets start now; returns how many queue places were looked at."""
    if rules.mode == HEAD:
        return pass_with_head_reservation(jobs, rules, memory, result)
    if rules.mode == PLAN:
        return pass_with_fresh_reservations(jobs, rules, memory, result)
    return pass_with_kept_reservations(jobs, rules, memory, result)
