"""What is expected of a predicted change, and how often such predictions were right on synthetic sites."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from validation import change_bank
from walltime.metrics.recorded import agreement
from walltime.metrics.weekly_interval import LogWeeks
from walltime.whatif.track_record import CLASSES, SEEN, TrackRecord, track_record

RECORDED = np.arange(100) * 60


def measured(simulated=RECORDED):
    """The agreement of 100 jobs whose recorded waits grow by a minute."""
    submit = np.arange(100) * 3600
    return agreement("all jobs", "all jobs", RECORDED, simulated, LogWeeks.of(submit, (submit, submit)), np.ones(100, bool))


def test_track_record__interval_grows_with_the_change_and_contains_it():
    small, large = (track_record(change, None, measured()) for change in (-0.1, -0.5))
    assert small.expected == pytest.approx(-0.1)
    assert small.low < -0.1 < small.high
    assert large.high - large.low != small.high - small.low
    reach = CLASSES[0].floor + CLASSES[0].slope * abs(math.log(0.5))
    assert (large.low, large.high) == pytest.approx((0.5 * math.exp(-reach) - 1, 0.5 * math.exp(reach) - 1))


def test_track_record__interval_covers_both_assumptions_on_users():
    one, both = track_record(-0.4, None, measured()), track_record(-0.4, -0.1, measured())
    assert both.low == one.low
    assert both.high > one.high
    assert both.expected == one.expected


def test_track_record__waits_of_unknown_causes_do_not_change():
    """The simulated waits are half the recorded ones: half of the waits have causes that the simulation lacks."""
    assert track_record(-0.4, None, measured(RECORDED // 2)).expected == pytest.approx(-0.2, abs=0.01)
    assert track_record(-0.4, None, measured(RECORDED * 4 // 3)).expected == pytest.approx(-0.4)
    assert track_record(-0.4, None, measured(RECORDED * 9)) is None


def test_track_record__poorer_agreement_gives_other_intervals():
    mixed = np.random.default_rng(1).permutation(RECORDED)
    poor = track_record(-0.4, None, measured(mixed))
    assert poor.high - poor.low > (good := track_record(-0.4, None, measured())).high - good.low


CHANGES = [
    (-0.27, -0.11, "11 to 27 % shorter"),
    (0.05, 0.4, "5 to 40 % longer"),
    (-0.2, 0.05, "20 % shorter to 5 % longer"),
    (-0.1, 0.001, "10 % shorter to 0 %"),
]


@pytest.mark.parametrize(("low", "high", "words"), CHANGES)
def test_interval__in_words(low, high, words):
    assert replace(TrackRecord(0, 0, 0, True, 1, 1), low=low, high=high).interval == words


@pytest.mark.slow
def test_made_up_sites__rows_of_a_small_site():
    """Without hidden rules, both engines agree, so every prediction of a change at once is right; with a limit, the truth differs."""
    first, limited = (replace(change_bank.sites()[k], jobs=60) for k in (0, 8))
    rows = list(change_bank.rows(first))
    assert len(rows) >= 8
    assert all(row["true"] == pytest.approx(row["predicted"], abs=0.02) for row in rows if not row["change"].startswith("load"))
    assert any(abs(row["true"] - row["predicted"]) > 0.02 for row in change_bank.rows(limited))


def test_made_up_sites__kinds():
    sites = change_bank.sites()
    assert len(sites) >= 24
    assert {one.kind for one in sites} == {"pool", "partitions", "gpus", "memory"}
    assert 10 <= sum(one.judges for one in sites) <= len(sites) // 2 + 1


def test_classes__are_those_of_the_made_up_sites():
    stored = json.loads((Path(__file__).parents[3] / "docs/generators/changes.json").read_text())
    for one, row in zip(CLASSES, stored["classes"], strict=True):
        counts = tuple((math.inf if size >= 100 else size, *more) for size, *more in row["directions"])
        assert (one.least, one.floor, one.slope, one.directions) == (row["least"], row["floor"], row["slope"], counts)
    assert list(SEEN) == stored["seen"]
