"""What tells coarsely for whom an opening may be of use: coarse numbers keep the order of exact ones, so that nobody is passed over."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from walltime.engine.kernel.number import candidates
from walltime.engine.kernel.plan import LOOKS, NONE, SLOTS, new_plan
from walltime.engine.kernel.profile import NEVER


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
def join(plan, i):
    candidates.join(plan, i)


@numba.njit(_nrt=False)
def survey(plan, count):
    candidates.survey(plan, count, 0)


@numba.njit(_nrt=False)
def bound(traits, procs, length):
    coarse = candidates._coarse
    return traits.shelves[candidates._row(coarse(procs)), candidates._column(coarse(length))]


def test_coarse_numbers__keep_their_order():
    random = np.random.Generator(np.random.Philox(1))
    numbers = np.unique(np.concatenate([np.arange(5000), 2 ** random.uniform(0, 31, 5000), 2 ** np.arange(31)]).astype(np.int64))
    found = [coarse(int(number)) for number in numbers]
    assert found == sorted(found)
    assert len(set(found)) > 3000, "they tell sizes and lengths apart well"
    assert (found[0], found[-1] <= NONE) == (0, True)


@pytest.mark.slow
def test_coarse_times__keep_their_order_and_leave_room_for_none():
    slots = np.zeros(1, SLOTS).view(np.recarray)[0]
    for since, shift in ((0, 0), (1000, 3), (10**9, 12)):
        slots.since, slots.shift = since, shift
        times = np.sort(np.random.default_rng(2).integers(since - 100, since + (NONE << shift) * 2, 2000))
        found = [coarse_time(slots, int(time)) for time in times]
        assert found == sorted(found)
        assert (coarse_time(slots, since - 5), found[-1]) == (1, NONE - 1)
        assert all(exact_time(slots, int(time)) <= time for time in times if time >= since)


@pytest.mark.slow
def test_shelves__bound_how_late_a_hole_may_begin():
    random = np.random.default_rng(3)
    plan = new_plan(20)
    slots, _, waiting, traits = plan
    slots.shift = 9
    waiting.procs, waiting.length, waiting.low = 2 ** random.uniform(0, 17, 20), 2 ** random.uniform(0, 24, 20), NEVER
    waiting.start = waiting.length + random.integers(0, 2**24, 20)
    for i in range(20):
        join(plan, i)
    waiting.start[10:] = waiting.length[10:]  # half of them move as far forward as they can
    for lowered in (False, True):
        if lowered:
            slots.looks = LOOKS
            survey(plan, 20)
        latest = [coarse_time(slots, int(time)) for time in waiting.start - waiting.length]
        narrow = 0
        for _ in range(2000):
            procs, length = int(2 ** random.uniform(0, 17)), int(2 ** random.uniform(0, 24))
            fit = [latest[i] for i in range(20) if waiting.procs[i] <= procs and waiting.length[i] <= length]
            found = bound(traits, procs, length)
            assert found >= max(fit, default=0), "nobody is passed over"
            narrow += found == max(fit, default=0)
        assert narrow > 1000 if lowered else narrow < 1500, "bounds are close, once they have been lowered"
