"""What is noted of a freed gap in the plan, by hand: for each class of sizes how long so much is free together, and from when on."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from walltime.engine.kernel.memory import record, records
from walltime.engine.kernel.pools import kept as pools_kept
from walltime.engine.kernel.pools.memory import CLUSTER_STATE, FREED_GAP, ClusterPlan, KeptReservations
from walltime.engine.kernel.profile import NEVER

pytestmark = pytest.mark.slow  # compiles functions of its own

CLASSES = 4
"""Classes of jobs that need 1, 2 to 3, 4 to 7 and 8 or more processors."""


@numba.njit(_nrt=False)
def measure(state, plan, kept, lowest, middle, end):
    """Kernels have no wrapper for Python, so it is called from a function that has."""
    pools_kept._measure_stretches(state, plan, kept, 0, lowest, middle, end)


def stretches(room, opened, longest=1000, lowest=0):
    """The longest stretch and the earliest begin by class, where so much is free from 0, 10, 20, ... s on and [a, b) has been opened."""
    time, none = np.arange(len(room)) * 10, np.zeros(0, np.int64)
    plan = ClusterPlan(time, np.zeros((1, 2, len(room)), np.int64), np.array([room]), np.zeros((1, 2), np.int64))
    freed_gaps = records(FREED_GAP, CLASSES).reshape(1, CLASSES)
    freed_gaps.earliest = NEVER
    kept = KeptReservations(none, none, none, freed_gaps, np.zeros(CLASSES, np.int64), np.zeros((1, 2), np.int64))
    measure(record(CLUSTER_STATE, steps=len(room), longest=longest), plan, kept, lowest, opened[0] // 10, opened[1])
    return [(int(one.longest), None if one.earliest == NEVER else int(one.earliest)) for one in freed_gaps[0]]


NONE = (0, None)


@pytest.mark.parametrize(
    ("room", "opened", "expected"),
    [
        # one processor from 10 s to 40 s, two or more from 20 s to 30 s; nothing beside
        ([0, 1, 3, 1, 0], (20, 30), [(30, 10), (10, 20), NONE, NONE]),
        # the gap ends at 30 s, but what is free there goes on to 50 s for one processor, and to 40 s for two
        ([0, 3, 3, 2, 1, 0], (10, 30), [(40, 10), (30, 10), NONE, NONE]),
        # two stretches for two processors: the longer one counts, and the earlier begin
        ([2, 1, 2, 2, 0], (0, 40), [(40, 0), (20, 0), NONE, NONE]),
        # more becomes free within the gap; what becomes free behind it is for nobody
        ([1, 4, 9, 0, 9, 0], (0, 30), [(30, 0), (20, 10), (20, 10), (10, 20)]),
    ],
    ids=["nested", "beyond the end", "two stretches", "growing"],
)
def test_measure_stretches__notes_the_longest_and_the_earliest_of_each_class(room, opened, expected):
    assert stretches(room, opened) == expected


def test_measure_stretches__of_the_last_step_never_end():
    assert stretches([0, 1], (10, 20))[0] == (NEVER - 10, 10)


def test_measure_stretches__look_no_further_back_than_the_longest_job():
    assert stretches([1, 1, 1, 1, 0], (30, 40), longest=15)[0] == (30, 10)


def test_measure_stretches__leave_out_classes_for_which_nobody_waits():
    assert stretches([0, 1, 3, 1, 0], (20, 30), lowest=1) == [NONE, (10, 20), NONE, NONE]
