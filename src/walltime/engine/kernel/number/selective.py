"""One scheduling pass with reservations for some of the waiting jobs, recomputed: selective reservations, and multiple queues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import BY_ARRIVAL, Array, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind
from walltime.engine.kernel.number.scratch import backfill, reserve
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, new_profile, profile_of_running
from walltime.engine.kernel.queue import drop_started, sort_queue


class Selection(NamedTuple):
    """The profile of a pass; the `bounds` of the queues (int64, s) whose first jobs have reservations, none for an expansion factor."""

    profile: Profile
    bounds: Array


@kernel
def pass_with_selected_reservations(state, rules, jobs, machine, queue, ordered, selection):
    """Give the selected jobs reservations, in queue order, and start every job that does not delay these.

    Sources: Srinivasan et al. 2002 (selected by the expansion factor), Lawson and Smirni 2002 (the first of each queue). Returns an
    upper bound of the steps taken.
    """
    profile = selection.profile
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    profile_of_running(profile, machine.running, state.running, state.now, state.free)
    waiting = state.queue_last - state.queue_first
    factor = rules.factor
    if rules.adapts:
        factor = state.slowdowns / (1000 * state.ended) if state.ended > 0 else 1.0
    closed = 0  # a bit for each queue whose first job waits
    others = 0
    for place in range(state.queue_first, state.queue_last):
        job = np.int64(queue[place].job)
        own = jobs[job]
        if selection.bounds.size == 0:
            selected = (state.now - own.submit + own.own_length) / own.own_length > factor
            bit = 0
        else:
            bit = 1 << _queue_of(selection.bounds, own.own_length)
            selected = closed & bit == 0
        if not selected:
            ordered.candidates[others].place = place
            others += 1
        elif reserve(state, jobs, profile, job) == state.now:
            start_behind(state, rules, jobs, machine, queue, job)
        else:
            closed |= bit
    backfill(state, rules, jobs, machine, queue, ordered.candidates, profile, others)
    drop_started(state, jobs, queue)
    return waiting * profile.counts.blocks * STEPS_IN_BLOCK


@kernel
def _queue_of(bounds, length):
    """The number of the queue of a job of this length."""
    number = 0
    while number < bounds.size and length >= bounds[number]:
        number += 1
    return number


PASS = Pass(
    ("selective", "multiqueue"),
    pass_with_selected_reservations,
    Selection,
    lambda rules, passes, count: Selection(new_profile(count), np.array(passes.bounds, np.int64)),
    (Loop("selective", "reservations for selected jobs", 59, 8),),
)
