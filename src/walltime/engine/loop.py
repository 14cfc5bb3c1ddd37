"""START HERE: the event loop. Everything that happens to a simulated machine happens in `run`.

The events are arrivals and terminations (P2 section 3.1), the moment at which the prediction of a running job expires, and under
kept reservations the moment at which one is due. After the events of an instant the policy makes a scheduling pass:

    fcfs, easy                       backfill.py   at most the head of the queue has a reservation
    hybrid, conservative-scratch     plan.py       reservations are made afresh at every event
    conservative                     keep.py       every job keeps its reservation; early ends compress the schedule

The passes look at the waiting jobs (queue.py; index.py where they are very many), the running jobs (machine.py) and the free
processors over future time (profile.py; blocks.py where it is long; openings.py for what may move); what all of them work on is
declared in memory.py. Runtimes are predicted in predict.py and regression.py, from what history.py declares, and corrected in
expiry.py. The
public entrance, with validation, is run.py; reference.py does the same in plain Python, slowly and independently. Beside the
loop: estimates drawn in the kernel (draw.py), averages (averages.py), what backfilling did to others (dynamics.py), and
predictions without scheduling (replay.py).
"""

from __future__ import annotations

from walltime.engine.backfill import pass_with_head_reservation
from walltime.engine.expiry import correct_expired, next_expiry, predict_arrivals
from walltime.engine.jit import kernel
from walltime.engine.keep import pass_with_kept_reservations
from walltime.engine.machine import end_expected_now, end_next
from walltime.engine.memory import (
    DONE,
    EVENTS,
    HEAD,
    NEVER,
    NEXT_ARRIVAL,
    NEXT_DUE,
    NOW,
    PAUSED,
    PLAN,
    QUEUE_FIRST,
    QUEUE_LAST,
    STUCK,
)
from walltime.engine.plan import pass_with_fresh_reservations
from walltime.engine.queue import take_arrival


@kernel
def run(jobs, rules, memory, result, budget):
    """The loop where no runtime is predicted."""
    return _run(jobs, rules, memory, result, budget)


@kernel
def run_predicting(jobs, rules, memory, result, budget):
    """The loop with predictions, compiled by itself, so that they cost nothing elsewhere."""
    return _run(jobs, rules, memory, result, budget)


@kernel
def _run(jobs, rules, memory, result, budget):
    """Simulate until every job has started and ended, or until about `budget` steps over the queue or the profile have been taken.

    Returns DONE; PAUSED when the budget is used up, and another call goes on from there; STUCK, with jobs waiting that
    nothing will start, which no rule allows.
    """
    state = memory.state
    while budget > 0:
        now = _next_event(jobs, rules, memory)
        if now == NEVER:
            return DONE if state[QUEUE_FIRST] == state[QUEUE_LAST] else STUCK
        state[NOW] = now
        arrived = state[QUEUE_LAST]
        if rules.sequential:
            _take_one_event(jobs, rules, memory, result)
        else:
            _take_all_events(jobs, rules, memory, result)
        predict_arrivals(rules.predicting, jobs, rules, memory, arrived)
        budget -= 1 + _scheduling_pass(jobs, rules, memory, result)
    return PAUSED


@kernel
def _next_event(jobs, rules, memory):
    """Time of the next arrival, termination, due reservation, or expiry of a prediction."""
    state = memory.state
    now = min(state[NEXT_DUE], state[NEXT_ARRIVAL])
    if state[EVENTS] > 0:
        now = min(now, memory.event_end[0])
    return min(now, next_expiry(rules.predicting, jobs, rules, memory))


@kernel
def _take_all_events(jobs, rules, memory, result):
    """Coincident events as a batch: all terminations of this instant, expired predictions, then all arrivals (SPEC Q-01)."""
    state = memory.state
    now = state[NOW]
    while state[EVENTS] > 0 and memory.event_end[0] == now:
        end_next(jobs, rules, memory, result)
    correct_expired(rules.predicting, jobs, rules, memory, result)
    while state[NEXT_ARRIVAL] == now:
        take_arrival(jobs, memory)


@kernel
def _take_one_event(jobs, rules, memory, result):
    """Coincident events one by one, arrivals before terminations, each followed by a pass of its own.

    Predictions that expire at this instant are corrected before the first of them; if there is no other event, they are it.
    """
    state = memory.state
    now = state[NOW]
    end_expected_now(jobs, rules, memory, result)
    correct_expired(rules.predicting, jobs, rules, memory, result)
    if state[NEXT_ARRIVAL] == now:
        take_arrival(jobs, memory)
    elif state[EVENTS] > 0 and memory.event_end[0] == now:
        end_next(jobs, rules, memory, result)


@kernel
def _scheduling_pass(jobs, rules, memory, result):
    """Start the jobs that the policy lets start now; returns how many steps that took."""
    if rules.mode == HEAD:
        return pass_with_head_reservation(jobs, rules, memory, result)
    if rules.mode == PLAN:
        return pass_with_fresh_reservations(jobs, rules, memory, result)
    return pass_with_kept_reservations(jobs, rules, memory, result)
