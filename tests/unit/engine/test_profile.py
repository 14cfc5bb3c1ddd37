"""The kernel's profile of free processors against an array with one entry per second, and its heap of ends against heapq."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.profiles import examples, seeds
from walltime.engine.kernel import heap, profile
from walltime.engine.kernel.memory import ITEM, JOB, KEEP, RULES, RUN, new_memory, record, records
from walltime.engine.kernel.number.conservative import PASS
from walltime.engine.kernel.profile import NEVER, STEPS_IN_BLOCK, Profile, new_profile
from walltime.policy.base import PassSpec

pytestmark = pytest.mark.slow  # compiles functions of its own

MACHINE = 6
HORIZON = 500
"""Seconds of the array; what the examples below plan ends before."""
compiled = numba.njit(_nrt=False, error_model="numpy")
"""Kernels have no wrapper for Python, so each one under test is called from a function that has."""


@dataclass
class Plan:
    """A profile and the time."""

    profile: Profile
    now: int = 0


@compiled
def _first_gap(plan, now, length, procs, latest):
    return profile.first_gap(plan, now, length, procs, latest)


@compiled
def _occupy(plan, begin, end, procs):
    profile.occupy(plan, begin, end, procs)


@compiled
def _profile_of_running(plan, running, count, now, free):
    profile.profile_of_running(plan, running, count, now, free)


@compiled
def push(items, size, rank, tie, job):
    heap.push(items, size, rank, tie, job)


@compiled
def pop(items, size):
    return heap.pop(items, size)


def first_gap(plan: Plan, length: int, procs: int, latest: int) -> int:
    return _first_gap(plan.profile, plan.now, length, procs, latest)


def fits_now(plan: Plan, length: int, procs: int) -> bool:
    return first_gap(plan, length, procs, plan.now + 1) == plan.now


def occupy(plan: Plan, begin: int, end: int, procs: int) -> None:
    _occupy(plan.profile, begin, end, procs)


def new(jobs: int, processors: int = MACHINE) -> Plan:
    plan = Plan(new_profile(jobs))
    _profile_of_running(plan.profile, records(RUN, 1), 0, 0, processors)
    return plan


def steps_of(plan: Plan) -> list[tuple[int, int]]:
    of = plan.profile
    steps: list[tuple[int, int]] = []
    for block in of.order[: of.counts.blocks].tolist():
        part = of.steps[block * STEPS_IN_BLOCK : block * STEPS_IN_BLOCK + int(of.blocks[block].filled)]
        steps += zip(part.time.tolist(), part.free.tolist(), strict=True)
    return steps


def assert_is(plan: Plan, free: np.ndarray) -> None:
    """The steps say of every second from now on what the array says, in as few steps as there can be."""
    now, steps, horizon = plan.now, steps_of(plan), len(free)
    times = [time for time, _ in steps]
    assert times == sorted(set(times))
    assert times[0] <= now
    assert len(steps) == 1 or now <= times[1]  # else an anchor point could lie in the past
    at = np.searchsorted(times, np.arange(now, horizon), side="right") - 1
    assert np.array([value for _, value in steps])[at].tolist() == free[now:].tolist()
    assert all(a != b for (_, a), (_, b) in itertools.pairwise(steps))


def first_fit(free: np.ndarray, now: int, planned: int, procs: int) -> int:
    return next(t for t in range(now, HORIZON) if (free[t : t + planned] >= procs).all())


action = st.one_of(
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("release"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, 30), st.just(0)),
)


@examples(400)
@given(actions=st.lists(action, max_size=40))
def test_profile__equals_an_array_of_seconds(actions):
    plan = new(jobs=len(actions))
    free = np.full(HORIZON, MACHINE)
    held: list[tuple[int, int, int]] = []  # begin, end, procs
    now = 0
    for what, a, b in actions:
        if what == "reserve":
            expected = first_fit(free, now, a, b)
            begin = first_gap(plan, a, b, NEVER)
            assert begin == expected
            assert fits_now(plan, a, b) == (expected == now)
            occupy(plan, begin, begin + a, b)
            free[begin : begin + a] -= b
            held.append((begin, begin + a, b))
        elif what == "release" and held:  # an early end, or a job that leaves the queue
            begin, end, procs = held.pop(a % len(held))
            occupy(plan, max(begin, now), end, -procs)
            free[max(begin, now) : end] += procs
        elif what == "move" and held:  # compression
            begin, end, procs = held[a % len(held)]
            if begin >= now:
                free[begin:end] += procs
                expected = first_fit(free, now, end - begin, procs)
                free[begin:end] -= procs
                occupy(plan, begin, end, -procs)
                found = first_gap(plan, end - begin, procs, NEVER)
                assert found == expected <= begin
                occupy(plan, found, found + end - begin, procs)
                if found < begin:
                    free[begin:end] += procs
                    free[found : found + end - begin] -= procs
                    held[a % len(held)] = (found, found + end - begin, procs)
        assert_is(plan, free)


@examples(200)
@given(
    now=st.integers(0, 20),
    running=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), max_size=8),
    spare=st.integers(0, 3),
)
def test_profile_of_running__equals_an_array_of_seconds(now, running, spare):
    # Expected ends may have passed: such jobs are assumed to end in a second.
    running.sort()
    processors = sum(procs for _, procs in running) + spare
    if processors == 0:
        return
    plan = new(jobs=len(running), processors=processors)
    plan.now = now
    runs = records(RUN, len(running) + 1)
    free = np.full(HORIZON, processors)
    for i, (end, procs) in enumerate(running):
        runs[i].expected, runs[i].procs = end, procs
        free[now : max(end, now + 1)] -= procs
    _profile_of_running(plan.profile, runs, len(running), now, spare)
    assert_is(plan, free)


def test_first_gap__is_where_processors_stay_free_long_enough():
    # Free: 1 in [0,4), 3 in [4,8), 1 in [8,12), 6 from 12 on; mualem01's steps a to c.
    plan = new(jobs=4)
    for begin, end, procs in ((0, 4, 5), (4, 8, 3), (8, 12, 5)):
        occupy(plan, begin, end, procs)
    assert steps_of(plan) == [(0, 1), (4, 3), (8, 1), (12, 6)]
    found = {(planned, procs): first_gap(plan, planned, procs, NEVER) for planned in (4, 5) for procs in (1, 2, 3, 4)}
    assert found == {(4, 1): 0, (4, 2): 4, (4, 3): 4, (4, 4): 12, (5, 1): 0, (5, 2): 12, (5, 3): 12, (5, 4): 12}


def test_occupy__splits_and_merges_steps():
    plan = new(jobs=4)
    occupy(plan, 2, 8, 2)
    occupy(plan, 4, 6, 1)
    assert steps_of(plan) == [(0, 6), (2, 4), (4, 3), (6, 4), (8, 6)]
    occupy(plan, 4, 6, -1)
    assert steps_of(plan) == [(0, 6), (2, 4), (8, 6)]
    occupy(plan, 8, 9, 2)  # at the same height as its neighbour
    assert steps_of(plan) == [(0, 6), (2, 4), (9, 6)]
    occupy(plan, 0, 2, 2)
    assert steps_of(plan) == [(0, 4), (9, 6)]


def test_blocks__are_used_again():
    # The profile of two jobs is made again a hundred times.
    plan = new(jobs=2)
    for now in range(100):
        plan.now = now
        free = np.full(HORIZON, MACHINE)
        _profile_of_running(plan.profile, records(RUN, 1), 0, now, MACHINE)
        occupy(plan, now + 1, now + 2, 1 + now % 2)
        free[now + 1 : now + 2] -= 1 + now % 2
        assert_is(plan, free)


def assert_blocks_are_in_order(plan: Plan) -> None:
    """Every block is used once or spare, knows bounds of what is free in it, and is not nearly empty beside another such."""
    of = plan.profile
    used, spare = of.order[: of.counts.blocks].tolist(), of.spare[: of.counts.spare].tolist()
    assert sorted(used + spare) == list(range(len(of.order)))
    if len(used) > 1:
        for block in used:
            inside = of.steps.free[block * STEPS_IN_BLOCK : block * STEPS_IN_BLOCK + int(of.blocks[block].filled)]
            assert of.blocks[block].least <= inside.min()
            assert of.blocks[block].most >= inside.max()
    counts = of.blocks.filled[used].tolist()
    assert all(count > 0 for count in counts)
    assert all(a + b > STEPS_IN_BLOCK // 2 for a, b in itertools.pairwise(counts[1:]))


@pytest.mark.parametrize("seed", seeds(6))
def test_long_profile__equals_an_array_of_seconds(seed):
    # Some hundred steps in many blocks, growing and shrinking again.
    random = np.random.Generator(np.random.Philox(seed))
    horizon, machine = 40_000, 40
    plan = new(jobs=1500, processors=machine)
    free = np.full(horizon, machine)
    held: list[tuple[int, int, int]] = []
    most_blocks = now = 0
    for number in range(1500):
        growing = number < 900
        what = random.choice(["reserve", "release", "move"], p=[0.65, 0.1, 0.25] if growing else [0.1, 0.6, 0.3])
        if what == "reserve":
            length, procs = int(random.integers(1, 60)), int(random.integers(1, machine + 1))
            begin = first_fit_in(free, now, length, procs)
            assert first_gap(plan, length, procs, NEVER) == begin
            latest = int(random.integers(now + 1, begin + 2))
            expected = begin if begin < latest else NEVER
            assert first_gap(plan, length, procs, latest) == expected
            assert fits_now(plan, length, procs) == (begin == now)
            occupy(plan, begin, begin + length, procs)
            free[begin : begin + length] -= procs
            held.append((begin, begin + length, procs))
        elif what == "release" and held:
            begin, end, procs = held.pop(int(random.integers(len(held))))
            occupy(plan, max(begin, now), end, -procs)
            free[max(begin, now) : end] += procs
        elif what == "move" and held:
            which = int(random.integers(len(held)))
            begin, end, procs = held[which]
            if begin >= now:
                free[begin:end] += procs
                found = first_fit_in(free, now, end - begin, procs)
                occupy(plan, begin, end, -procs)
                assert first_gap(plan, end - begin, procs, NEVER) == found
                occupy(plan, found, found + end - begin, procs)
                free[found : found + end - begin] -= procs
                held[which] = (found, found + end - begin, procs)
        most_blocks = max(most_blocks, int(plan.profile.counts.blocks))
        assert_blocks_are_in_order(plan)
        if number % 10 == 0:
            assert_is(plan, free)
    assert most_blocks > 4


def test_occupy__up_to_the_end_of_a_full_block_whose_neighbour_in_time_is_its_neighbour_in_memory():
    plan = new(jobs=400, processors=100)
    free = np.full(4000, 100)

    def take(begin: int, end: int, procs: int) -> None:
        occupy(plan, begin, end, procs)
        free[begin:end] -= procs

    for i in range(60):
        take(10 + 20 * i, 20 + 20 * i, 1)
    of = plan.profile
    block, following = of.order[:2].tolist()
    assert following == block + 1
    for begin in range(1, 400, 10):  # two steps more for each
        if of.blocks[block].filled < STEPS_IN_BLOCK:
            take(begin, begin + 1, 1)
    assert of.blocks[block].filled == STEPS_IN_BLOCK
    assert of.order[1] == following
    take(int(of.steps[block * STEPS_IN_BLOCK + 60].time), int(of.steps[following * STEPS_IN_BLOCK].time), 2)
    assert_is(plan, free)


def first_fit_in(free: np.ndarray, now: int, length: int, procs: int) -> int:
    """Earliest second from which on so many processors stay free for so long, by running sums of the seconds that are too full."""
    full = np.concatenate([[0], np.cumsum(free < procs)])
    return now + int(np.flatnonzero(full[now + length :] == full[now : len(full) - length])[0])


@examples(300)
@given(actions=st.lists(st.one_of(st.integers(0, 6), st.none()), max_size=60))
def test_events__come_by_end_and_then_in_the_order_of_the_starts(actions):
    # A number pushes an end, None pops one.
    items = records(ITEM, 60)
    expected: list[tuple[int, int, int]] = []
    for ticket, end in enumerate([*actions, *[None] * len(actions)]):
        if end is not None:
            push(items, len(expected), end, ticket, 1000 + ticket)
            heapq.heappush(expected, (end, ticket, 1000 + ticket))
        elif expected:
            assert tuple(items[0]) == expected[0]
            pop(items, len(expected))
            heapq.heappop(expected)
    assert not expected


@pytest.mark.parametrize("processors", [1, 3, 1000])
def test_new_memory__starts_with_an_empty_machine(processors):
    jobs, nobody = records(JOB, 5), np.zeros(0, np.int64)
    rules = record(RULES, mode=KEEP, procs=processors, backfill=1)
    memory = new_memory(jobs, rules, nobody, nobody, PASS.new(rules, PassSpec("kept"), len(jobs)))
    assert (memory.state.free, memory.state.running, memory.state.blocked) == (processors, 0, -1)
    assert memory.state.broken, "the profile is made in the first pass"
