"""Measures of estimates on small arrays, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from walltime.errors import WorkloadError
from walltime.metrics import estimates as e

A = np.array


def test_use__is_rounded_down():
    # rounded down: 99.9 % is in bin 99, and so is no job that used all of it
    assert e.estimate_use(A([0, 1, 999, 1000, 1001, 5000]), np.full(6, 1000)).tolist() == [0, 0, 99, 100, 100, 500]


def test_histogram__has_a_bin_for_each_percent_and_one_for_more():
    counts = e.use_histogram(A([0, 1, 999, 1000, 1009, 1010, 5000]), np.full(7, 1000))
    assert counts.shape == (102,)
    assert counts[[0, 99, 100, 101]].tolist() == [2, 1, 2, 2]
    assert counts.sum() == 7
    assert e.use_histogram(A([], int), A([], int)).tolist() == [0] * 102


def test_table__counts_by_hand():
    runtime = A([0, 89, 90, 7200, 7199, 9000, 100])
    requested = A([7200, 7201, 9000, 7200, 7200, 9000, 50])
    killed = A([True, False, False, True, False, False, True])
    table = e.estimate_use_table(runtime, requested, killed)
    # uses: 0, 1, 1, 100, 99, 100, 200 percent
    assert table.as_dict() == {"total": 7, "killed": 3, "full": 3, "killed_full": 1, "zero": 1, "short": 2, "few_hours": 4}
    assert table.percent("killed") == pytest.approx(300 / 7)
    assert table.percent("killed_full") == pytest.approx(100 / 3)


def test_table__knows_no_killed_jobs_where_nothing_says_so():
    table = e.estimate_use_table(A([10]), A([100]))
    assert (table.killed, table.killed_full) == (None, None)
    assert np.isnan(table.percent("killed"))
    assert np.isnan(e.estimate_use_table(A([10]), A([100]), A([True])).percent("killed_full"))


def test_accuracy__is_the_smaller_over_the_larger():
    # tang13, eq. 3
    assert e.accuracy(A([100, 25, 400, 0]), A([100, 100, 100, 1])).tolist() == [1.0, 0.25, 0.25, 0.0]


def test_accuracy_by_runtime__in_equal_bins():
    # tsafrir06, Fig. 12; the job of 500 s is killed at 50 s
    runtime, requested = A([30, 10, 500, 20, 40, 60]), A([60, 100, 50, 20, 80, 60])
    means, ratio = e.accuracy_by_runtime(runtime, requested, bins=3)
    assert means.tolist() == [15, 35, 55]
    assert ratio.tolist() == [pytest.approx((0.1 + 1) / 2), 0.5, 1.0]
    assert len(e.accuracy_by_runtime(runtime, requested)[0]) == 6
    assert [len(part) for part in e.accuracy_by_runtime(A([], int), A([], int))] == [0, 0]
    with raises(WorkloadError, "number_out_of_range"):
        e.accuracy_by_runtime(runtime, requested, bins=0)


def test_popular_values__ranks_and_shares():
    values = A([5, 7, 5, 9, 7, 5, 1])
    assert [a.tolist() for a in e.popular_values(values)] == [[5, 7, 1, 9], [3, 2, 1, 1]]
    assert e.top_share(values, 2) == pytest.approx(500 / 7)
    assert e.top_share(values) == 100
    assert e.rank_of(9, values) == (3, pytest.approx(100 / 7))
    assert e.rank_of(8, values) == (0, 0.0)
    assert np.isnan(e.top_share(A([], int)))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1, max_size=300))
@examples(100)
def test_measures__agree_with_each_other(rows):
    runtime, requested = (A(column) for column in zip(*rows, strict=True))
    counts = e.use_histogram(runtime, requested)
    table = e.estimate_use_table(runtime, requested)
    assert counts.sum() == len(rows)
    assert (table.zero, table.full) == (counts[0], counts[99] + counts[100])
    x, percent = e.distribution(requested)
    assert percent[-1] == pytest.approx(100)
    assert (np.diff(x) > 0).all()
    assert (np.diff(percent) > 0).all()
    means, ratio = e.accuracy_by_runtime(runtime, requested)
    assert (np.diff(means) >= 0).all()
    assert ((ratio >= 0) & (ratio <= 1)).all()
    assert ratio.mean() <= e.accuracy(np.minimum(runtime, requested), requested).max() + 1e-12


@pytest.mark.parametrize(("jobs", "limited"), [(99, True), (100, False)])
def test_has_limit__requests_that_equal_all_runtimes_are_none(jobs, limited):
    runtime = np.arange(1, jobs + 1)
    exact = wt.Workload.from_arrays(
        submit=np.zeros(jobs, int), runtime=runtime, requested=runtime, procs=np.ones(jobs, int), machine_procs=4
    )
    assert e.has_limit(exact).tolist() == [limited] * jobs
    assert e.has_limit(replace(exact, requested=np.where(runtime == 7, 8, runtime))).all()
