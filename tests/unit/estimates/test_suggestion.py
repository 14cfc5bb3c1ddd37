"""A walltime for the next job: by hand, and what it says of its own risk."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates.suggestion import share_at_most, suggest


def jobs(runtime, requested=None, user=None, procs=None, **columns) -> wt.Workload:
    count = len(runtime)
    requested = [10 * max(r, 1) for r in runtime] if requested is None else requested
    own = {"user": np.full(count, 7) if user is None else np.array(user)} | {name: np.array(values) for name, values in columns.items()}
    submit = np.arange(count) * 86_400
    return wt.Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=[1] * count if procs is None else procs, machine_procs=64, columns=own
    )


def test_suggest__smallest_walltime_that_few_enough_outran_rounded_up_to_5_minutes():
    # 20 jobs of 1, 2, ..., 20 minutes: 10 % may outrun, so 2: 18 minutes, rounded up to 20
    found = suggest(jobs([60 * k for k in range(1, 21)]), user=7, risks=[10, 0, 75]).suggestions
    assert [(s.walltime, s.killed_before) for s in found] == [(1200, 0), (1200, 0), (300, 15)]


def test_suggest__jobs_killed_at_their_request_count_as_longer_than_it():
    ran = [600] * 19 + [900]
    found = suggest(jobs(ran, requested=[900] * 20), user=7, risks=[0])
    assert found.killed == 1
    assert found.suggestions[0].walltime == 1200  # 900 would kill the last one again


def test_suggest__backtest_knows_the_past_only():
    # ten jobs of 10 min, then ten of an hour: the first of these is killed by what the past suggests, at no accepted risk
    found = suggest(jobs([600] * 10 + [3600] * 10), user=7, risks=[0]).suggestions[0]
    assert found.walltime == 3600
    assert found.killed_before == 0
    assert found.backtest == pytest.approx(10)


def test_suggest__drops_what_too_few_jobs_agree_in():
    w = jobs([600] * 12 + [3600] * 3, procs=[1] * 12 + [8] * 3)
    wide = suggest(w, user=7, kind={"procs": 8})
    assert (wide.like, wide.jobs) == (["user"], 15)
    narrow = suggest(w, user=7, kind={"procs": 1})
    assert (narrow.like, narrow.jobs) == (["user", "procs"], 12)
    assert suggest(w, user=7, kind={"procs": 8}, min_jobs=3).jobs == 3


def test_suggest__only_recent_jobs():
    w = jobs([600] * 40 + [1200] * 20)
    assert suggest(w, user=7, months=1, risks=[0]).jobs == 30


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"user": 8}, WorkloadError, ("unknown_name", "8")),
        ({"user": 7, "min_jobs": 100}, WorkloadError, ("too_few_jobs", "7", "20", "100")),
        ({"user": 7, "kind": {"group": 1}}, WorkloadError, ("missing_column", "group")),
        ({"user": 7, "kind": {"colour": 1}}, PolicyError, ("unknown_column", "colour")),
        ({"user": 7, "risks": [100]}, PolicyError, ("number_out_of_range",)),
    ],
)
def test_suggest__refuses_with_one_sentence(options, error, words):
    with raises(error, *words):
        suggest(jobs([600] * 20), **options)


def test_share_at_most__is_the_quantile_of_a_beta_distribution():
    stats = pytest.importorskip("scipy.stats")
    for of in (1, 10, 500):
        for count in range(0, of, max(of // 7, 1)):
            for sure in (0.95, 0.9875):
                assert share_at_most(count, of, sure) == pytest.approx(stats.beta.ppf(sure, count + 1, of - count), abs=1e-7)
        assert share_at_most(of, of) == 1


def test_suggest__bound_is_that_of_the_kills_that_the_risk_allows():
    # Of 20 jobs two may be killed; none ran longer than the walltime, which is rounded up, but that walltime was chosen from these jobs.
    found = suggest(jobs([60 * k for k in range(1, 21)]), user=7, risks=[10]).suggestions[0]
    assert found.killed_before == 0
    assert found.upper == pytest.approx(100 * share_at_most(2, 20))
