"""Intervals of the mean over many more weeks like those of a log: by hand, where they are withheld, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from walltime.machine import Machine, Partition, Pool
from walltime.metrics.series import widening
from walltime.metrics.weekly_interval import (
    WEEK,
    agreeing_share,
    largest_part_mean,
    mean_over_weeks,
    no_interval_reason,
    parts_of,
    queued_share,
)
from walltime.report.html import render
from walltime.whatif.effects import Difference, doubts
from walltime.whatif.page import sure_rows, what_if_page

MACHINE = Machine((Pool("thin", 8, 4),), (Partition("main", ("thin",)),), policy="easy")


def weekly(weeks: int, runtime: int = 3600, each: int = 20) -> wt.Workload:
    """So many jobs at the beginning of each week, on half of the machine each, and one at the very end."""
    submit = np.append(np.repeat(np.arange(weeks) * WEEK, each), weeks * WEEK - 1)
    return wt.Workload.from_arrays(submit=submit, runtime=submit * 0 + runtime, procs=submit * 0 + 16, machine_procs=32)


def test_over_weeks__worked_by_hand():
    found = mean_over_weeks(np.array([2.0, 4.0, 2.0, 4.0, 3.0] * 4), np.arange(20), np.tile(np.arange(5), 4))
    half = 2.131847 * 1 / np.sqrt(5)  # t of 4 degrees of freedom, standard deviation 1
    assert (found.mean, found.low, found.high) == (3, pytest.approx(3 - half), pytest.approx(3 + half)), "neighbours are not alike"


def test_over_weeks__is_wider_where_neighbouring_weeks_are_alike():
    values = np.array([2.0] * 10 + [4.0] * 10 + [2.0] * 10 + [4.0] * 10 + [3.0] * 10)
    weeks, parts = np.arange(50) // 2, np.arange(50) // 10
    found = mean_over_weeks(values, weeks, parts)
    assert found.half_width == pytest.approx(2.131847 / np.sqrt(5) * widening(2 * (values[::2] - 3)))
    assert found.half_width > 2 * 2.131847 / np.sqrt(5)


@pytest.mark.parametrize("sign", [1, -1])
def test_over_weeks__is_longer_on_the_side_to_which_parts_lie_out(sign):
    found = mean_over_weeks(sign * np.array([1.0, 1.0, 1.0, 1.0, 6.0]), np.arange(5), np.arange(5), queued=0.5)
    far, near = (found.high - found.mean, found.mean - found.low) if sign > 0 else (found.mean - found.low, found.high - found.mean)
    assert far == pytest.approx(2 * near)


def test_over_weeks__needs_jobs_in_every_part():
    assert mean_over_weeks(np.ones(4), np.array([0, 1, 2, 4]), np.array([0, 1, 2, 4])) is None


def test_parts__are_equally_long():
    assert parts_of(np.array([10, 11, 29, 30, 109])).tolist() == [0, 0, 0, 1, 4]
    assert len(parts_of(np.array([], np.int64))) == 0
    assert largest_part_mean(np.array([1.0, 3.0, -5.0, 1.0]), np.array([0, 0, 2, 2])) == 2


def test_share_that_agrees__is_of_weeks_with_jobs():
    assert agreeing_share(np.array([1.0, 1.0, -1.0, 3.0]), np.array([0, 0, 2, 5])) == pytest.approx(2 / 3)
    assert np.isnan(agreeing_share(np.array([1.0, -1.0]), np.array([0, 1])))


def test_interval__is_withheld_for_few_weeks_and_where_a_queue_lasts():
    short, calm, full = weekly(10), weekly(24), weekly(24, runtime=WEEK // 8)
    queued = [queued_share(jobs.submit, wt.simulate(jobs, "easy").start) for jobs in (short, calm, full)]
    assert no_interval_reason(short.submit, queued[0]) == "it needs at least 20 weeks"
    assert no_interval_reason(calm.submit, queued[1]) == ""
    assert no_interval_reason(full.submit, queued[2]).startswith("jobs queue for ")


@pytest.mark.slow
def test_what_if__says_of_what_each_interval_is():
    found = wt.what_if(weekly(24), MACHINE, ["nodes-=4"], replications=3, trim="none")
    one = found.effects[0].differences["mean_wait"]
    assert one.low <= one.difference <= one.high
    assert (one.withheld, one.agree) == ("", 1)
    value = found.as_dict()
    assert value["level"] == 0.9
    assert value["of"] == {
        "scatter": "shaken copies of this log",
        "low, high": "sampling of weeks",
        "other_low, other_high": "resampled weeks",
    }
    page = render(what_if_page(found))
    for words in ("shaken copies of this log, 90 %", "sampling of weeks, 90 %", "resampled weeks", "weeks that agree"):
        assert words in page.replace("&nbsp;", " ")
    assert "50 %" in page.replace("&nbsp;", " ")


@pytest.mark.slow
def test_what_if__says_why_an_interval_is_withheld(golden):
    found = wt.what_if(weekly(24, runtime=WEEK // 8), MACHINE, ["nodes-=4"], replications=3, trim="none")
    one = found.effects[0].differences["mean_wait"]
    assert np.isnan(one.low)
    assert one.withheld.startswith("jobs queue for ")
    assert "withheld: jobs queue for" in sure_rows(found)[0][2]
    golden("what-if", list(found.effects[0].doubts))
    assert "withheld: jobs queue for" in render(what_if_page(found)).replace("&nbsp;", " ")
    assert found.as_dict()["effects"][0]["measures"]["mean_wait"]["withheld"] == one.withheld


def test_doubts__an_interval_with_0_is_one_of_the_mean(golden):
    found = Difference("mean_wait", 100, 90, -10, scatter=1, copies=5, low=-30, high=5, agree=0.75)
    golden("what-if", doubts(found, None)[0])
