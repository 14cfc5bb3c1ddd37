"""What tells coarsely for whom an opening may be of use: coarse numbers keep the order of exact ones, so that nobody is passed over."""

from __future__ import annotations

import numba
import numpy as np

from walltime.engine import candidates
from walltime.engine.plan import NONE, SLOTS


@numba.njit(_nrt=False)
def coarse(number):
    return candidates._coarse(number)


@numba.njit(_nrt=False)
def coarse_time(slots, time):
    return candidates._coarse_time(slots, time)


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
        assert (coarse_time(slots, since - 5), found[-1]) == (0, NONE - 1)
