"""The kernel's profile of free processors against an array with one entry per second, and its heap of ends against heapq."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from walltime.engine import heap, profile
from walltime.engine.memory import BLOCKS, FREE, KEEP, NEVER, NOW, RUNNING, SPARE_BLOCKS, STEPS_IN_BLOCK, Jobs, Memory, Rules, new_memory

MACHINE = 6
HORIZON = 500
"""Seconds of the array; what the examples below plan ends before."""


def new(jobs: int, processors: int = MACHINE) -> Memory:
    rules = Rules(
        machine_procs=processors,
        mode=KEEP,
        depth=0,
        backfill=1,
        sequential=0,
        feedback=0,
        order=0,
        order_parameter=0,
        backfill_order=0,
        backfill_parameter=0,
        long_queue=0,
        short_queue=0,
    )
    return new_memory(np.zeros(jobs, np.int64), np.zeros(0, np.int64), rules)


def steps_of(memory: Memory) -> list[tuple[int, int]]:
    steps: list[tuple[int, int]] = []
    for block in memory.profile.order[: memory.state[BLOCKS]].tolist():
        part = slice(block * STEPS_IN_BLOCK, block * STEPS_IN_BLOCK + int(memory.profile.filled[block]))
        steps += zip(memory.profile.time[part].tolist(), memory.profile.free[part].tolist(), strict=True)
    return steps


def assert_is(memory: Memory, free: np.ndarray) -> None:
    """The steps say of every second from now on what the array says, in as few steps as there can be."""
    now, steps, horizon = int(memory.state[NOW]), steps_of(memory), len(free)
    times = [time for time, _ in steps]
    assert times == sorted(set(times))
    assert times[0] <= now
    assert len(steps) == 1 or now <= times[1]  # else an anchor point could lie in the past
    at = np.searchsorted(times, np.arange(now, horizon), side="right") - 1
    assert np.array([value for _, value in steps])[at].tolist() == free[now:].tolist()
    assert all(a != b for (_, a), (_, b) in itertools.pairwise(steps))


def first_fit(free: np.ndarray, now: int, believed: int, procs: int) -> int:
    return next(t for t in range(now, HORIZON) if (free[t : t + believed] >= procs).all())


action = st.one_of(
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("reserve"), st.integers(1, 12), st.integers(1, MACHINE)),
    st.tuples(st.just("give back"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("pass time"), st.integers(0, 7), st.just(0)),
)


@examples(400)
@given(actions=st.lists(action, max_size=40))
def test_profile__equals_an_array_of_seconds(actions):
    memory = new(jobs=len(actions))
    free = np.full(HORIZON, MACHINE)
    held: list[tuple[int, int, int]] = []  # begin, end, procs
    now = 0
    for what, a, b in actions:
        if what == "reserve":
            expected = first_fit(free, now, a, b)
            begin = profile.first_hole(memory, a, b, NEVER, NEVER)
            assert begin == expected
            assert profile.fits_now(memory, a, b) == (expected == now)
            profile.occupy(memory, begin, begin + a, b)
            free[begin : begin + a] -= b
            held.append((begin, begin + a, b))
        elif what == "give back" and held:  # an early end, or a job that leaves the queue
            begin, end, procs = held.pop(a % len(held))
            profile.occupy(memory, max(begin, now), end, -procs)
            free[max(begin, now) : end] += procs
        elif what == "move" and held:  # compression
            begin, end, procs = held[a % len(held)]
            if begin >= now:
                free[begin:end] += procs
                expected = first_fit(free, now, end - begin, procs)
                free[begin:end] -= procs
                found = profile.first_hole(memory, end - begin, procs, begin, NEVER)
                assert found == expected <= begin
                if found < begin:
                    profile.occupy(memory, begin, end, -procs)
                    profile.occupy(memory, found, found + end - begin, procs)
                    free[begin:end] += procs
                    free[found : found + end - begin] -= procs
                    held[a % len(held)] = (found, found + end - begin, procs)
        elif what == "pass time":
            now += a
            memory.state[NOW] = now
            profile.forget_past(memory)
            held = [entry for entry in held if entry[1] > now]
        assert_is(memory, free)


@examples(200)
@given(
    now=st.integers(0, 20),
    running=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), max_size=8),
    spare=st.integers(0, 3),
)
def test_profile_of_running__equals_an_array_of_seconds(now, running, spare):
    # Expected ends may have passed: such jobs are held to end in a second (SPEC Q-28).
    running.sort()
    processors = sum(procs for _, procs in running) + spare
    if processors == 0:
        return
    memory = new(jobs=len(running), processors=processors)
    zeros = np.zeros(len(running), np.int64)
    procs = np.array([procs for _, procs in running], np.int64)
    jobs = Jobs(
        runtime=zeros, believed=zeros, order_length=zeros, own_length=zeros, run_length=zeros, procs=procs, after=zeros[:0], think=zeros[:0]
    )
    for array in jobs:
        array.flags.writeable = False
    memory.state[NOW], memory.state[FREE], memory.state[RUNNING] = now, spare, len(running)
    free = np.full(HORIZON, processors)
    for i, (end, procs) in enumerate(running):
        memory.running_expected[i], memory.running_job[i] = end, i
        free[now : max(end, now + 1)] -= procs
    profile.profile_of_running(jobs, memory)
    assert_is(memory, free)


def test_first_hole__is_where_processors_stay_free_long_enough():
    # Free: 1 in [0,4), 3 in [4,8), 1 in [8,12), 6 from 12 on; P2's steps a to c.
    memory = new(jobs=4)
    for begin, end, procs in ((0, 4, 5), (4, 8, 3), (8, 12, 5)):
        profile.occupy(memory, begin, end, procs)
    assert steps_of(memory) == [(0, 1), (4, 3), (8, 1), (12, 6)]
    found = {(believed, procs): profile.first_hole(memory, believed, procs, NEVER, NEVER) for believed in (4, 5) for procs in (1, 2, 3, 4)}
    assert found == {(4, 1): 0, (4, 2): 4, (4, 3): 4, (4, 4): 12, (5, 1): 0, (5, 2): 12, (5, 3): 12, (5, 4): 12}


def test_occupy__splits_and_merges_steps():
    memory = new(jobs=4)
    profile.occupy(memory, 2, 8, 2)
    profile.occupy(memory, 4, 6, 1)
    assert steps_of(memory) == [(0, 6), (2, 4), (4, 3), (6, 4), (8, 6)]
    profile.occupy(memory, 4, 6, -1)
    assert steps_of(memory) == [(0, 6), (2, 4), (8, 6)]
    profile.occupy(memory, 8, 9, 2)  # at the same height as its neighbour
    assert steps_of(memory) == [(0, 6), (2, 4), (9, 6)]
    profile.occupy(memory, 0, 2, 2)
    assert steps_of(memory) == [(0, 4), (9, 6)]


def test_blocks__are_used_again():
    # A hundred jobs pass through, two at a time.
    memory = new(jobs=2)
    free = np.full(HORIZON, MACHINE)
    for now in range(100):
        memory.state[NOW] = now
        profile.forget_past(memory)
        profile.occupy(memory, now + 1, now + 2, 1 + now % 2)
        free[now + 1 : now + 2] -= 1 + now % 2
        assert_is(memory, free)


def assert_blocks_are_in_order(memory: Memory) -> None:
    """Every block is used once or spare, knows bounds of what is free in it, and is not nearly empty beside another such."""
    state, of = memory.state, memory.profile
    used, spare = of.order[: state[BLOCKS]].tolist(), of.spare[: state[SPARE_BLOCKS]].tolist()
    assert sorted(used + spare) == list(range(len(of.order)))
    if len(used) > 1:
        for block in used:
            inside = of.free[block * STEPS_IN_BLOCK : block * STEPS_IN_BLOCK + int(of.filled[block])]
            assert of.least[block] <= inside.min()
            assert of.most[block] >= inside.max()
    counts = of.filled[used].tolist()
    assert all(count > 0 for count in counts)
    assert all(a + b > STEPS_IN_BLOCK // 2 for a, b in itertools.pairwise(counts[1:]))


@pytest.mark.parametrize("seed", range(6))
def test_long_profile__equals_an_array_of_seconds(seed):
    # Some hundred steps in many blocks, growing and shrinking again.
    random = np.random.Generator(np.random.Philox(seed))
    horizon, machine = 40_000, 40
    memory = new(jobs=1500, processors=machine)
    free = np.full(horizon, machine)
    held: list[tuple[int, int, int]] = []
    most_blocks = now = 0
    for number in range(1500):
        growing = number < 900
        what = random.choice(["reserve", "give back", "move", "pass time"], p=[0.6, 0.1, 0.25, 0.05] if growing else [0.1, 0.5, 0.3, 0.1])
        if what == "reserve":
            length, procs = int(random.integers(1, 60)), int(random.integers(1, machine + 1))
            begin = first_fit_in(free, now, length, procs)
            assert profile.first_hole(memory, length, procs, NEVER, NEVER) == begin
            latest = int(random.integers(now + 1, begin + 2))
            expected = begin if begin < latest else NEVER
            assert profile.first_hole(memory, length, procs, NEVER, latest) == expected
            assert profile.fits_now(memory, length, procs) == (begin == now)
            profile.occupy(memory, begin, begin + length, procs)
            free[begin : begin + length] -= procs
            held.append((begin, begin + length, procs))
        elif what == "give back" and held:
            begin, end, procs = held.pop(int(random.integers(len(held))))
            profile.occupy(memory, max(begin, now), end, -procs)
            free[max(begin, now) : end] += procs
        elif what == "move" and held:
            which = int(random.integers(len(held)))
            begin, end, procs = held[which]
            if begin >= now:
                free[begin:end] += procs
                found = first_fit_in(free, now, end - begin, procs)
                assert profile.first_hole(memory, end - begin, procs, begin, NEVER) == found
                profile.occupy(memory, found, min(begin, found + end - begin), procs)
                profile.occupy(memory, max(begin, found + end - begin), end, -procs)
                free[found : found + end - begin] -= procs
                held[which] = (found, found + end - begin, procs)
        elif what == "pass time":
            now += int(random.integers(0, 20))
            memory.state[NOW] = now
            profile.forget_past(memory)
            held = [entry for entry in held if entry[1] > now]
        most_blocks = max(most_blocks, int(memory.state[BLOCKS]))
        assert_blocks_are_in_order(memory)
        if number % 10 == 0:
            assert_is(memory, free)
    assert most_blocks > 4


def test_occupy__up_to_the_end_of_a_full_block_whose_neighbour_in_time_is_its_neighbour_in_memory():
    memory = new(jobs=400, processors=100)
    free = np.full(4000, 100)

    def take(begin: int, end: int, procs: int) -> None:
        profile.occupy(memory, begin, end, procs)
        free[begin:end] -= procs

    for i in range(60):
        take(10 + 20 * i, 20 + 20 * i, 1)
    of = memory.profile
    block, following = of.order[:2].tolist()
    assert following == block + 1
    for begin in range(1, 400, 10):  # two steps more for each
        if of.filled[block] < STEPS_IN_BLOCK:
            take(begin, begin + 1, 1)
    assert of.filled[block] == STEPS_IN_BLOCK
    assert of.order[1] == following
    take(int(of.time[block * STEPS_IN_BLOCK + 60]), int(of.time[following * STEPS_IN_BLOCK]), 2)
    assert_is(memory, free)


def first_fit_in(free: np.ndarray, now: int, length: int, procs: int) -> int:
    """Earliest second from which on so many processors stay free for so long, by running sums of the seconds that are too full."""
    full = np.concatenate([[0], np.cumsum(free < procs)])
    return now + int(np.flatnonzero(full[now + length :] == full[now : len(full) - length])[0])


@examples(300)
@given(actions=st.lists(st.one_of(st.integers(0, 6), st.none()), max_size=60))
def test_events__come_by_end_and_then_in_the_order_of_the_starts(actions):
    # A number pushes an end, None pops one.
    times, keys, jobs = np.zeros(60, np.int64), np.zeros(60, np.int64), np.zeros(60, np.int64)
    expected: list[tuple[int, int, int]] = []
    for ticket, end in enumerate([*actions, *[None] * len(actions)]):
        if end is not None:
            heap.push(times, keys, jobs, len(expected), end, ticket, 1000 + ticket)
            heapq.heappush(expected, (end, ticket, 1000 + ticket))
        elif expected:
            assert (times[0], keys[0], jobs[0]) == expected[0]
            heap.drop_first(times, keys, jobs, len(expected))
            heapq.heappop(expected)
    assert not expected


@pytest.mark.parametrize("processors", [1, 3, 1000])
def test_new_memory__starts_with_an_empty_machine(processors):
    memory = new(jobs=5, processors=processors)
    assert steps_of(memory) == [(0, processors)]
    assert memory.state[FREE] == processors
    assert memory.state[RUNNING] == 0
