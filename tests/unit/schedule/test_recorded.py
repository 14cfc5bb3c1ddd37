"""Recorded waits beside simulated ones: by hand, correlations against scipy, on the terminal, in JSON and in the report."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import walltime as wt
from tests.cli import HEADER, call
from tests.errors import raises
from tests.pages import outline, render
from tests.traces import trace_path
from walltime import metrics
from walltime.errors import WorkloadError

series = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=40)


def jobs(wait, **options) -> wt.Workload:
    """Under EASY these wait 0, 9 and 0 s."""
    columns = {"wait": np.array(wait)} if wait is not None else {}
    return wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4, columns=columns, **options)


def line(job: int, submit: int, wait: int, runtime: int, procs: int) -> str:
    return f"{job} {submit} {wait} {runtime} {procs} -1 -1 {procs} {runtime} -1 1 1 1 -1 -1 -1 -1 -1\n"


def test_recorded__worked_by_hand():
    found = wt.simulate(jobs([0, 30, -1]), wt.Easy()).recorded()
    assert found is not None
    assert found.jobs == 2
    assert (found.mean_recorded, found.mean_simulated) == (15, 4.5)
    assert (found.median_recorded, found.median_simulated) == (15, 4.5)
    assert (found.p90_recorded, found.p90_simulated) == (27, pytest.approx(8.1))
    assert (found.max_recorded, found.max_simulated) == (30, 9)
    assert (found.correlation, found.rank_correlation) == (pytest.approx(1), pytest.approx(1))


@pytest.mark.slow
@pytest.mark.parametrize("wait", [None, [-1, -1, -1], [0, 0, 0], [0, -1, 0]])
def test_recorded__nothing_where_the_log_has_no_real_waits(wait):
    schedule = wt.simulate(jobs(wait), wt.Easy())
    assert schedule.recorded() is None
    assert schedule.recorded_by("class") == []
    assert "Recorded waits" not in render([schedule])


def test_recorded_by__months_are_those_of_submission():
    origin = wt.workload.Origin(unix_start_time=86400 * 31 - 2)  # February begins when the third job is submitted
    rows = wt.simulate(jobs([0, 30, 4], origin=origin), wt.Easy()).recorded_by("month")
    assert [(row["group"], row["jobs"], row["mean_recorded"], row["mean_simulated"]) for row in rows] == [
        ("1970-01", 2, 15, 4.5),
        ("1970-02", 1, 4, 0),
    ]
    assert rows[1]["correlation"] is None
    assert wt.simulate(jobs([0, 30, 4]), wt.Easy()).recorded_by("month") == []


@pytest.mark.slow
def test_recorded_by__times_outside_the_calendar_have_no_months():
    schedule = wt.simulate(jobs([0, 30, 4], origin=wt.workload.Origin(unix_start_time=10**14)), wt.Easy())
    assert schedule.recorded_by("month") == []
    assert ">Recorded waits</h2>" in render([schedule])


@given(series)
def test_correlations__agree_with_scipy(pairs):
    a, b = (np.array(values) for values in zip(*pairs, strict=True))
    if len(set(a.tolist())) == 1 or len(set(b.tolist())) == 1:
        assert np.isnan(metrics.correlation(a, b))
        assert np.isnan(metrics.rank_correlation(a, b))
        return
    assert metrics.correlation(a, b) == pytest.approx(stats.pearsonr(a, b)[0])
    assert metrics.rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b)[0])


def test_correlation__needs_equal_lengths():
    with raises(WorkloadError, "different_lengths", "2", "3"):
        metrics.correlation(np.zeros(2), np.zeros(3))


def test_simulate__prints_recorded_waits(golden, capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + line(1, 0, 0, 10, 3) + line(2, 1, 30, 10, 4) + line(3, 2, 4, 5, 1))
    status, out, _ = call(capsys, "simulate", log)
    assert status == 0
    assert "recorded wait" in out
    golden("simulate", out)
    assert "1996-09" not in out
    assert "1996-09" in call(capsys, "simulate", log, "--monthly")[1]
    found = json.loads(call(capsys, "simulate", log, "--json")[1])["recorded"]
    assert (found["jobs"], found["max_recorded"], found["max_simulated"]) == (3, 30, 9)
    assert [row["group"] for row in found["by"]["class"]] == ["short narrow"]


@pytest.mark.slow
def test_report__shows_recorded_waits_of_a_real_log(golden):
    workload = wt.read(trace_path("KTH-SP2-1996-2.1-cln"))
    page = render([wt.simulate(workload, "easy"), wt.simulate(workload, "conservative")])
    assert ">Recorded waits</h2>" in page
    assert "Recorded waits by class" in page
    golden("simulate", outline(page))
    assert "4 h 15 min" in page
