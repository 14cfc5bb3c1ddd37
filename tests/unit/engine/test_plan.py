"""The plan of conservative backfilling against a list with one entry per second, and its steps against what they promise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.strategies import examples
from walltime.engine.kernel import plan
from walltime.engine.kernel.memory import RUN, records
from walltime.engine.kernel.plan import BORDER, GONE, ReservationPlan, new_plan
from walltime.engine.kernel.profile import NEVER

pytestmark = pytest.mark.slow  # compiles functions of its own

MACHINE = 6
HORIZON = 600
"""Seconds of the list; what the examples below plan ends before."""
compiled = numba.njit(_nrt=False, error_model="numpy")
"""Kernels have no wrapper for Python, so each one under test is called from a function that has."""


@compiled
def make(slots, steps, running, count, now, free):
    plan.plan_of_running(slots, steps, running, count, now, free)


@compiled
def first_gap(slots, steps, procs, length, reserved):
    return plan.first_gap(steps, slots.first, procs, length, reserved)


@compiled
def take(slots, steps, begin, length, procs):
    """Reserve a place; returns the steps with which it begins and ends."""
    end = plan.take_until(slots, steps, begin, steps[begin].time + length, procs)
    steps[begin].edges += 1
    steps[end].edges += 1
    return begin, end


@compiled
def release(slots, steps, begin, end, procs, started):
    """Give a place back from a step on; if its job has started, the step with which it began has gone with the past."""
    step = begin
    while step != end:
        steps[step].free += procs
        step = steps[step].next
    if not started:
        plan.leave(slots, steps, begin)
    plan.leave(slots, steps, end)


@compiled
def split(slots, steps, time):
    """A step that begins at a time, held by an edge; returns it."""
    step = plan.take_until(slots, steps, slots.first, time, 0)
    steps[step].edges += 1
    return step


@compiled
def join(slots, steps, step):
    plan.leave(slots, steps, step)


@compiled
def forget_past(slots, steps, now):
    plan.forget_past(slots, steps, now)


@dataclass
class Model:
    """A plan, the list that it must equal, and the places in it: the steps that begin and end them, when, and their processors."""

    plan: ReservationPlan
    free: np.ndarray
    now: int = 0
    places: list[tuple[int, int, int, int, int]] = field(default_factory=list)


def new(running: list[tuple[int, int]], jobs: int) -> Model:
    """The plan of running jobs, each (expected end, processors) in order of their ends."""
    ends = records(RUN, len(running) + 1)
    free = np.full(HORIZON, MACHINE)
    for i, (end, procs) in enumerate(running):
        ends[i].expected, ends[i].procs = end, procs
        free[: max(end, 1)] -= procs
    made = new_plan(jobs)
    make(made.slots, made.steps, ends, len(running), 0, int(free[0]))
    return Model(made, free)


def steps_of(made: ReservationPlan) -> list[tuple[int, int]]:
    """Times and free processors, along the links; what links back must agree."""
    found, step, before = [], made.slots.first, BORDER
    while step != BORDER:
        assert made.steps[step].previous == before
        assert made.steps[step].second == made.steps[made.steps[step].next].next
        found.append((int(made.steps[step].time), int(made.steps[step].free)))
        before, step = step, made.steps[step].next
    return found


def assert_is(model: Model) -> None:
    """The steps say of every second from now on what the list says; a slot is in a step or spare, and only so many are used."""
    steps = steps_of(model.plan)
    times = [time for time, _ in steps]
    assert times == sorted(set(times))
    assert times[0] == model.now
    at = np.searchsorted(times, np.arange(model.now, HORIZON), side="right") - 1
    assert np.array([free for _, free in steps])[at].tolist() == model.free[model.now :].tolist()
    spare, slot = 0, model.plan.slots.spare
    while slot != BORDER:
        assert model.plan.steps[slot].time == GONE
        spare, slot = spare + 1, model.plan.steps[slot].next
    assert 1 + len(steps) + spare == model.plan.slots.used
    for begin, end, start, stop, _ in model.places:
        assert start < model.now or model.plan.steps[begin].time == start, "a place stays where it is"
        assert model.plan.steps[end].time == stop


def first_fit(model: Model, length: int, procs: int) -> int:
    return next(t for t in range(model.now, HORIZON) if (model.free[t : t + length] >= procs).all())


running = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 2)), max_size=3).map(sorted)
action = st.one_of(
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("release"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("look"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("split"), st.integers(0, 40), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 8), st.just(0)),
)


@examples(400)
@given(running=running, actions=st.lists(action, max_size=40))
def test_plan__equals_a_list_of_seconds(running, actions):
    model = new(running, jobs=len(actions) + 3)
    slots, steps = model.plan.slots, model.plan.steps
    assert_is(model)
    for what, a, b in actions:
        if what == "reserve":
            expected = first_fit(model, a, b)
            found = first_gap(slots, steps, b, a, NEVER)
            assert steps[found].time == expected
            begin, end = take(slots, steps, found, a, b)
            model.free[expected : expected + a] -= b
            model.places.append((begin, end, expected, expected + a, b))
        elif what == "release" and model.places:  # an early end, or a job that moves
            begin, end, start, stop, procs = model.places.pop(a % len(model.places))
            started = start < model.now
            release(slots, steps, slots.first if started else begin, end, procs, started)
            model.free[max(start, model.now) : stop] += procs
        elif what == "look" and model.places:  # for an earlier place, whose end may lie in the job's own
            _, _, start, stop, procs = model.places[a % len(model.places)]
            if start > model.now:
                model.free[start:stop] += procs
                expected = first_fit(model, stop - start, procs)
                model.free[start:stop] -= procs
                found = first_gap(slots, steps, procs, stop - start, start)
                assert (steps[found].time if found != BORDER else start) == expected
        elif what == "split":
            step = split(slots, steps, model.now + a)
            assert steps[step].time == model.now + a
            assert_is(model)
            join(slots, steps, step)
        elif what == "wait":
            until = min([model.now + a, *(stop - 1 for _, _, _, stop, _ in model.places if stop > model.now)])
            model.now = max(model.now, until)
            forget_past(slots, steps, model.now)
        assert_is(model)


def test_slots__are_used_again():
    # A hundred places, one after the other, take no more slots than one.
    model = new([], jobs=2)
    slots, steps = model.plan.slots, model.plan.steps
    for _ in range(100):
        begin, end = take(slots, steps, first_gap(slots, steps, 2, 5, NEVER), 5, 2)
        assert len(steps_of(model.plan)) == 2
        release(slots, steps, begin, end, 2, False)
    assert steps_of(model.plan) == [(0, MACHINE)]
    assert slots.used <= 3


def test_steps__stay_while_a_place_begins_or_ends_with_them():
    model = new([], jobs=4)
    slots, steps = model.plan.slots, model.plan.steps
    first = take(slots, steps, slots.first, 4, MACHINE)
    second = take(slots, steps, first[1], 4, MACHINE)
    assert steps_of(model.plan) == [(0, 0), (4, 0), (8, MACHINE)], "neighbours need not differ"
    release(slots, steps, *first, MACHINE, False)
    assert steps_of(model.plan) == [(0, MACHINE), (4, 0), (8, MACHINE)]
    release(slots, steps, *second, MACHINE, False)
    assert steps_of(model.plan) == [(0, MACHINE)]
