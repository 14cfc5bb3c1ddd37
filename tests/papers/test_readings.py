"""What the readings give on the log KTH-SP2-1996-2, beside mualem01, Tables 1 and 3."""

from __future__ import annotations

import pytest

import walltime as wt
from tests.traces import trace_path
from validation.paper_experiments.readings import later_number_first, printed_of, readings_table
from walltime.papers.printed import printed

PINNED = {
    # reading: EASY response and bounded slowdown, conservative response and bounded slowdown; None where it has none
    ("events", "terminations, arrivals, one pass"): (15_744.8, 92.92, 16_204.2, 89.06),
    ("events", "a pass after each, terminations first"): (15_747.1, 92.81, 16_198.5, 89.09),
    ("overrun", "estimate raised to the runtime"): (15_732.2, 90.99, 16_205.2, 88.06),
    ("overrun", "run on, overdue"): (15_774.2, 91.56, 16_300.1, 89.86),
    ("runtime", "recorded"): (15_763.9, 92.88, 16_223.3, 89.03),
    ("extra", "counting stops at the first sufficient job"): (15_774.6, 92.28, None, None),
    ("extra", "all, kept until a termination"): (15_371.6, 86.88, None, None),
    ("extra", "first sufficient, kept until a termination"): (15_570.6, 89.31, None, None),
    ("compression", "until no job moves"): (None, None, 16_137.5, 89.95),
    ("compression", "none: reservations recomputed"): (None, None, 16_844.7, 102.19),
    ("trigger", "once, at every event"): (None, None, 16_173.8, 90.59),
    ("ties", "later job number first"): (15_739.2, 92.72, 16_128.7, 88.60),
    ("procs", "requested"): (15_691.8, 92.82, 16_174.1, 89.16),
    ("version", "cleaned"): (15_743.4, 92.96, 16_203.0, 89.10),
    ("measured", "without warm-up and cool-down (tsafrir06)"): (15_840.2, 93.22, 16_308.4, 89.43),
    ("together", "as the EASY of mualem01 seems to have run"): (15_517.1, 84.70, 16_186.8, 88.91),
}
EXACT = [(1996, 11), (1996, 12), (1997, 1), (1997, 2), (1997, 4)]
"""Months whose jobs, response and bounded slowdown under EASY come out as mualem01 prints them."""


@pytest.fixture(scope="module")
def kth() -> wt.Workload:
    return wt.read(trace_path("KTH-SP2-1996-2"))


@pytest.fixture(scope="module")
def rows(kth):
    numbers, months = printed_of(printed("mualem01"), "KTH")
    rows = readings_table(kth, printed=numbers, months=months, seeds=1)
    return {(row.id, row.reading): row for row in rows}


@pytest.mark.nightly
def test_kth_readings__give_what_they_gave(rows):
    for key, expected in PINNED.items():
        row = rows[key]
        found = (row.easy_response, row.easy_slowdown, row.conservative_response, row.conservative_slowdown)
        for value, pinned, digits in zip(found, expected, (0.06, 0.006) * 2, strict=True):
            assert value == pytest.approx(float("nan") if pinned is None else pinned, abs=digits, nan_ok=True), key


@pytest.mark.nightly
def test_kth_readings__only_jobs_that_are_not_killed_give_the_printed_loads(rows):
    # November and February: jobs ran past their estimates there, and mualem01 did not kill them.
    kill, extend = rows["overrun", "killed at their estimate"], rows["overrun", "estimate raised to the runtime"]
    assert kill.load_off > 0.0025
    assert extend.load_off < 0.0006
    assert rows["overrun", "run on, overdue"].load_off < 0.0006


@pytest.mark.nightly
def test_kth_readings__of_the_month_are_told_apart_by_the_jobs_column(rows):
    off = [rows["month", name].jobs_off for name in ("it ends then", "it starts then", "it is submitted then")]
    assert off == [13, 67, 130]
    assert rows["load", "busy share of the machine"].load_off < rows["load", "work of the jobs that end in it"].load_off


@pytest.mark.nightly
def test_kth_readings__together_give_all_loads_and_five_of_ten_months_to_the_printed_digit(kth, rows):
    policy = wt.Easy(extra="literal", shadow="kept")
    schedule = wt.simulate(later_number_first(kth), policy, coincident="one-by-one", overrun="extend")
    table = printed("mualem01").tables["T1"]
    same, loads = [], []
    for month in schedule.monthly():
        row = table.find(log="KTH", year=month.year, month=month.month)
        if row is None:
            continue
        loads.append(round(month.load, 3) == row["load"])
        ours = (month.jobs, round(month.mean_response), round(month.mean_bounded_slowdown, 1))
        if ours == (row["jobs"], row["response_easy"], row["slowdown_easy"]):
            same.append((month.year, month.month))
    assert loads == [True] * 10
    assert same == EXACT
    together = rows["together", "as the EASY of mualem01 seems to have run"]
    assert together.jobs_off == 5
    assert together.slowdown_off < 1.1
    assert rows["events", "terminations, arrivals, one pass"].slowdown_off > 15
