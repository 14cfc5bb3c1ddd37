"""Readings: each differs from the default on a few jobs, is the default where it says so, and runs on the engine that can."""

from __future__ import annotations

import math

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from validation.paper_experiments.readings import (
    READINGS,
    later_number_first,
    printed_of,
    readings_table,
    requested_processors,
    uniform_estimates,
)
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.errors import PolicyError, WorkloadError
from walltime.papers.printed import printed
from walltime.simulation import Case, simulate_many

FEBRUARY = 855_446_400  # 9 February 1997, 12:00 UTC


def jobs(submit, runtime, procs, machine=4, **options) -> wt.Workload:
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=procs, machine_procs=machine, **options)


def starts(workload, policy, **options) -> list[int]:
    return wt.simulate(workload, policy, **options).start.tolist()


# ------------------------------------------------------------------ EASY: shadow time and extra processors


def test_extra_nodes__literal_counting_stops_at_the_first_sufficient_job():
    # Jobs 1 and 2 end at 10. Job 2, the last started, suffices for the head (job 3); job 1 would leave an extra node for job 4.
    w = jobs([0, 0, 0, 0], [10, 10, 5, 100], [1, 2, 3, 1])
    assert starts(w, wt.Easy()) == [0, 0, 10, 0]
    assert starts(w, wt.Easy(extra="literal")) == [0, 0, 10, 10]


def test_shadow_time__kept_lets_two_jobs_take_the_same_extra_nodes():
    # The head (job 2) needs 7 of 10 processors at 10, so 3 are extra; jobs 3 and 4 need 2 each, for long.
    w = jobs([0, 0, 0, 0], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    assert starts(w, wt.Easy()) == [0, 10, 0, 15]
    assert starts(w, wt.Easy(shadow="kept")) == [0, 100, 0, 0]


def test_shadow_time__is_kept_for_jobs_that_arrive_later():
    w = jobs([0, 0, 1, 2], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    assert starts(w, wt.Easy()) == [0, 10, 1, 15]
    assert starts(w, wt.Easy(shadow="kept")) == [0, 101, 1, 2]


def test_shadow_time__is_found_anew_after_a_termination_and_for_a_new_head():
    # Job 2 ends at 1: job 4 took an extra node meanwhile, so none is left for job 5.
    w = jobs([0, 0, 0, 0, 2], [10, 1, 5, 100, 100], [4, 1, 8, 2, 2], machine=10)
    assert starts(w, wt.Easy(shadow="kept")) == starts(w, wt.Easy())
    # The head starts at 10, the next head has its own shadow time.
    w = jobs([0, 0, 0, 0], [10, 10, 10, 5], [4, 4, 4, 1])
    assert starts(w, wt.Easy(shadow="kept")) == starts(w, wt.Easy()) == [0, 10, 20, 30]


def test_audit__knows_that_the_head_may_be_delayed_where_the_shadow_time_is_kept():
    w = jobs([0, 0, 0, 0], [10, 5, 100, 100], [5, 7, 2, 2], machine=10)
    delayed = wt.simulate(w, wt.Easy(shadow="kept"))
    assert delayed.audit().ok
    assert wt.simulate(w, wt.Easy(extra="literal")).audit().ok


# ------------------------------------------------------------------ conservative backfilling: compression


@pytest.mark.parametrize("compression", ["fixpoint", "always"])
def test_compression__again_moves_a_job_that_one_round_leaves(compression):
    # Job 1 ends at 5 instead of 10. Job 3 cannot move from 14 while job 4 is reserved at 10; then job 4 moves to 5.
    w = jobs([0, 1, 3, 3], [5, 4, 5, 4], [4, 3, 4, 1], requested=[10, 4, 5, 4])
    assert starts(w, wt.Conservative()) == [0, 5, 14, 5]
    assert starts(w, wt.Conservative(compression=compression)) == [0, 5, 9, 5]


@pytest.mark.slow
def test_compression__keeps_promises():
    rng = np.random.default_rng(3)
    for _ in range(30):
        runtime = rng.integers(1, 20, 12)
        w = jobs(np.sort(rng.integers(0, 30, 12)), runtime, rng.integers(1, 5, 12), requested=runtime + rng.integers(0, 15, 12))
        for compression in ("once", "fixpoint", "always"):
            assert wt.simulate(w, wt.Conservative(compression=compression), engine="reference").audit().ok


# ------------------------------------------------------------------ simultaneous events, ties, and others


def test_one_by_one__makes_a_pass_between_two_terminations():
    # At 4 job 1 ends, as expected, and job 2 early. After the first event only 2 processors are free, enough for job 4.
    w = jobs([0, 2, 3, 3], [4, 2, 4, 4], [2, 2, 3, 2], requested=[4, 6, 4, 4])
    assert starts(w, wt.Easy(), engine="reference") == [0, 2, 4, 8]
    assert starts(w, wt.Easy(), coincident="one-by-one") == [0, 2, 8, 4]


def test_one_by_one__handles_terminations_before_arrivals():
    # At 3 job 1 ends and job 3 arrives; job 2 waits for the whole machine.
    w = jobs([0, 2, 3], [3, 5, 5], [2, 4, 2], requested=[8, 7, 5])
    assert starts(w, wt.Easy(), coincident="sequential") == [0, 8, 3]
    assert starts(w, wt.Easy(), coincident="one-by-one") == [0, 3, 8]


def test_later_number_first__turns_round_jobs_of_one_second_and_keeps_all_else():
    w = jobs([0, 0, 5], [1, 2, 3], [1, 2, 3], planned=[4, 5, 6], columns={"user": np.array([7, 8, 9])})
    turned = later_number_first(w)
    assert [turned.runtime.tolist(), turned.planned.tolist(), turned.columns["user"].tolist()] == [[2, 1, 3], [5, 4, 6], [8, 7, 9]]
    assert turned.origin.steps == ("later job number first",)
    with raises(WorkloadError, "circular_dependency"):
        later_number_first(w.with_feedback())


def test_requested_processors__are_taken_where_they_are_known():
    w = jobs([0, 1], [1, 1], [2, 2], columns={"requested_procs": np.array([3, -1])})
    assert requested_processors(w).procs.tolist() == [3, 2]
    with raises(WorkloadError, "missing_column"):
        requested_processors(jobs([0], [1], [1]))


def test_rounding__is_up_down_nearest_or_none():
    w = jobs(range(200), [7] * 200, [1] * 200)
    drawn = {name: uniform_estimates(name)(w, 5).planned for name in ("nearest", "up", "down", "none")}
    exact = drawn["none"] / 1000
    assert (drawn["up"] >= exact - 0.001).all()
    assert (drawn["down"] <= exact).all()
    assert set(drawn["up"] - drawn["down"]) == {1}
    assert (np.abs(drawn["nearest"] - exact) <= 0.501).all()
    assert np.array_equal(drawn["nearest"], w.with_estimates(wt.estimates.FModel(4), seed=5).planned)
    assert np.array_equal(uniform_estimates("none")(w, 5).submit, 1000 * w.submit)


# ------------------------------------------------------------------ which engine runs what


def test_readings_of_policies__that_are_not_the_default_run_on_the_reference_engine_only():
    w = jobs([0, 1], [5, 5], [4, 4])
    columns = (w.submit, w.runtime, w.planned, w.procs, w.machine_procs)
    for policy in (wt.Easy(extra="literal"), wt.Easy(shadow="kept"), wt.Conservative(compression="always")):
        assert not policy.passes.compiled
        assert starts(w, policy) == [0, 5]
        with raises(PolicyError, "unsupported_policy"):
            NumberEngine(Problem(*columns, policy))
        alone = wt.simulate(w, policy).summary().mean_wait
        assert simulate_many(w, [Case(policy)], workers=1).values("mean_wait")[0] == alone
    assert starts(w, wt.Easy(), coincident="one-by-one") == [0, 5]
    with raises(PolicyError, "unsupported_policy"):
        NumberEngine(Problem(*columns, wt.Easy(), coincident="one-by-one"))


def test_readings_of_policies__at_their_default_are_the_policies():
    assert wt.Easy(extra="all", shadow="always") == wt.Easy()
    assert wt.Conservative(compression="once") == wt.Conservative()
    assert all(policy.passes.compiled for policy in (wt.NoBackfilling(), wt.Easy(), wt.Hybrid(), wt.Conservative()))
    assert wt.Easy(extra="literal", shadow="kept").label == "easy:extra=literal,shadow=kept"
    assert wt.Easy(arrivals="fitting").label == "easy:arrivals=fitting"
    assert wt.Easy(arrivals="fitting", backfill_order=wt.SJF).label == "easy:backfill-order=sjf"  # where it means nothing
    assert wt.Easy(backfill_order=wt.SJF, shadow="kept").label == "easy:backfill-order=sjf,shadow=kept"
    assert wt.Conservative(compression="fixpoint").label == "conservative:compression=fixpoint"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wt.Easy(extra="some"), ("wrong_value", "extra", "'some'")),
        (lambda: wt.Easy(shadow="old"), ("wrong_value", "shadow", "'old'")),
        (lambda: wt.Conservative(compression="never"), ("wrong_value", "compression", "'never'")),
        (lambda: wt.Conservative(variant="scratch", compression="always"), ("conflicting_options",)),
    ],
)
def test_readings_of_policies__are_checked(make, message):
    with raises(PolicyError, *message):
        make()


# ------------------------------------------------------------------ the table


@pytest.fixture(scope="module")
def two_months() -> wt.Workload:
    rng = np.random.default_rng(1)
    n = 300
    runtime = rng.integers(1, 30_000, n)
    return jobs(
        np.sort(rng.integers(0, 40 * 86_400, n)),
        runtime,
        rng.integers(1, 33, n),
        machine=32,
        requested=np.maximum(runtime + rng.integers(-2000, 20_000, n), 1),
        origin=wt.workload.Origin(name="made", unix_start_time=FEBRUARY),
    )


@pytest.mark.slow
def test_table__has_one_default_for_each_question_and_all_defaults_agree(two_months):
    rows = readings_table(two_months, seeds=1)
    assert [(row.id, row.reading) for row in rows] == [(reading.id, reading.name) for reading in READINGS]
    questions = {row.question for row in rows if row.id != "together"}
    assert sorted(row.question for row in rows if row.default) == sorted(questions)
    usual = [row for row in rows if row.default and row.id != "rounding"]
    assert len({row.easy_response for row in usual if row.easy_response == row.easy_response}) == 1
    assert len({row.conservative_slowdown for row in usual if row.conservative_slowdown == row.conservative_slowdown}) == 1
    easy = wt.simulate(two_months, wt.Easy()).summary()
    assert [usual[0].easy_response, usual[0].easy_slowdown] == [easy.mean_response, easy.mean_bounded_slowdown_p1]
    assert all(row.jobs_off == row.load_off == row.slowdown_off == 0 for row in usual if row.jobs_off == row.jobs_off)


def test_table__tells_readings_apart_and_says_which_cannot_be_run(two_months):
    rows = {(row.id, row.reading): row for row in readings_table(two_months, seeds=1)}
    assert rows["overrun", "estimate raised to the runtime"].load_off > 0
    assert rows["month", "it is submitted then"].jobs_off > 0
    assert rows["load", "work of the jobs submitted in it"].load_off > 0
    assert rows["month", "submitted then, each month simulated alone"].jobs_off == rows["month", "it is submitted then"].jobs_off
    assert (
        rows["slowdown", "at least 1 (tsafrir06)"].easy_slowdown >= rows["slowdown", "may be below 1 (feitelson98, mualem01)"].easy_slowdown
    )
    assert "does not record" in rows["procs", "requested"].note
    assert "no published filters" in rows["version", "cleaned"].note
    assert math.isnan(rows["procs", "requested"].easy_response)
    assert math.isnan(rows["compression", "until no job moves"].easy_response)


def test_table__puts_what_is_printed_first_and_compares_the_months_with_it(two_months):
    numbers = {"a paper": {"easy_response": 100.0}, "a paper, f = 4": {"conservative_slowdown": 5.0}}
    rows = readings_table(two_months, printed=numbers, months={(1997, 2): (1, 0.5, 2.0)}, readings=READINGS[:1])
    assert [row.reading for row in rows] == ["a paper", "a paper, f = 4", READINGS[0].name]
    assert (rows[0].easy_response, rows[1].conservative_slowdown) == (100.0, 5.0)
    month = wt.simulate(two_months, wt.Easy()).monthly()[0]
    assert rows[2].jobs_off == month.jobs - 1
    assert rows[2].load_off == pytest.approx(abs(month.load - 0.5))
    assert rows[2].slowdown_off == pytest.approx(100 * abs(month.mean_bounded_slowdown_p1 - 2) / 2)


def test_table__needs_no_calendar_and_at_least_one_seed():
    w = jobs([0, 1], [90, 10], [4, 4], requested=[60, 10])
    assert all(math.isnan(row.jobs_off) for row in readings_table(w, seeds=1))
    with raises(PolicyError, "number_out_of_range", "1"):
        readings_table(w, seeds=0)


def test_printed_of__finds_a_logs_numbers_and_nothing_for_another():
    found, months = printed_of(printed("mualem01"), "KTH")
    assert set(found) == {"in print", "in print, f = 4"}
    assert found["in print"]["easy_slowdown"] == 84.0
    assert {"easy_response", "conservative_slowdown"} <= set(found["in print, f = 4"])
    assert {(1996, 10), (1997, 7)} <= set(months)
    assert printed_of(printed("mualem01"), "a log of one's own") == ({}, {})
