"""What tells coarsely for whom an opening may be of use: coarse numbers keep the order of exact ones, so that nobody is passed over."""

from __future__ import annotations

import numba
import numpy as np

from walltime.engine import candidates
from walltime.engine.plan import NONE, SLOTS, new_plan


@numba.njit(_nrt=False)
def coarse(number):
    return candidates._coarse(number)


@numba.njit(_nrt=False)
def coarse_time(slots, time):
    return candidates._coarse_time(slots, time)


@numba.njit(_nrt=False)
def exact_time(slots, time):
    return candidates._exact_time(slots, candidates._coarse_time(slots, time))


@numba.njit(_nrt=False)
def join(slots, waiting, traits, i):
    candidates.join(slots, waiting, traits, i)


@numba.njit(_nrt=False)
def part(traits, i):
    candidates.part(traits, i)


@numba.njit(_nrt=False)
def nobody_fits(traits, fewest, most, shortest, longest):
    coarse = candidates._coarse
    return candidates._nobody_fits(traits, coarse(fewest), coarse(most), coarse(shortest), coarse(longest))


def test_coarse_numbers__keep_their_order():
    random = np.random.Generator(np.random.Philox(1))
    numbers = np.unique(np.concatenate([np.arange(5000), 2 ** random.uniform(0, 31, 5000), 2 ** np.arange(31)]).astype(np.int64))
    found = [coarse(int(number)) for number in numbers]
    assert found == sorted(found)
    assert len(set(found)) > 3000, "they tell sizes and lengths apart well"
    assert (found[0], found[-1] <= NONE) == (0, True)


def test_coarse_times__keep_their_order_and_leave_room_for_none():
    slots = np.zeros(1, SLOTS).view(np.recarray)[0]
    for since, shift in ((0, 0), (1000, 3), (10**9, 12)):
        slots.since, slots.shift = since, shift
        times = np.sort(np.random.default_rng(2).integers(since - 100, since + (NONE << shift) * 2, 2000))
        found = [coarse_time(slots, int(time)) for time in times]
        assert found == sorted(found)
        assert (coarse_time(slots, since - 5), found[-1]) == (1, NONE - 1)
        assert all(exact_time(slots, int(time)) <= time for time in times if time >= since)


def test_shelves__pass_nobody_over_and_are_empty_when_all_have_gone():
    random = np.random.default_rng(3)
    slots, _, waiting, traits = new_plan(20)
    waiting.procs, waiting.length = 2 ** random.uniform(0, 17, 20), 2 ** random.uniform(0, 24, 20)
    for i in range(20):
        join(slots, waiting, traits, i)
    refused = 0
    for _ in range(5000):
        fewest, most = np.sort(2 ** random.uniform(0, 17, 2)).astype(int)
        shortest, longest = np.sort(2 ** random.uniform(0, 24, 2)).astype(int)
        inside = (fewest <= waiting.procs) & (waiting.procs <= most) & (shortest <= waiting.length) & (waiting.length <= longest)
        if nobody_fits(traits, int(fewest), int(most), int(shortest), int(longest)):
            assert not inside.any()
            refused += 1
    assert refused > 500, "they refuse many"
    for i in range(20):
        part(traits, i)
    assert not traits.shelf_lengths.any()
    assert not traits.shelf_jobs.any()
