"""The queue and the machine over time: by hand, its integrals, and as a file."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from tests.profiles import examples
from tests.strategies import policies, workloads
from walltime import metrics
from walltime.errors import PolicyError
from walltime.workload.filters import parse_seconds

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], requested=[10, 12, 6], procs=[3, 4, 1], machine_procs=4)
"""Under EASY job 1 runs from 0, job 3 is backfilled at 2, job 2 runs from 10."""


def integral(table: pl.DataFrame, name: str) -> int:
    times, values = table["time"].to_numpy(), table[name].to_numpy()
    return int(np.dot(np.diff(times), values[:-1])) if len(times) else 0


def test_timeline__worked_by_hand():
    table = wt.simulate(JOBS, wt.Easy()).timeline()
    assert table.columns == ["time", "queued_jobs", "queued_work", "busy_procs", "running_jobs"]
    assert table.rows() == [(0, 0, 0, 3, 1), (1, 1, 48, 3, 1), (2, 1, 48, 4, 2), (7, 1, 48, 3, 1), (10, 0, 0, 4, 1), (20, 0, 0, 0, 0)]


def test_timeline__means_of_intervals_by_hand():
    table = wt.simulate(JOBS, wt.Easy()).timeline(interval=8)
    assert table["time"].to_list() == [0, 8, 16]
    assert table["queued_jobs"].to_list() == [7 / 8, 2 / 8, 0]
    assert table["queued_work"].to_list() == [48 * 7 / 8, 48 * 2 / 8, 0]
    assert table["busy_procs"].to_list() == [(2 * 3 + 5 * 4 + 3) / 8, (2 * 3 + 6 * 4) / 8, 4 * 4 / 8]
    assert table["running_jobs"].to_list() == [(8 + 5) / 8, 1, 4 / 8]


@given(workloads(), policies())
def test_timeline__its_integrals_are_those_of_the_jobs(workload, policy):
    schedule = wt.simulate(workload, policy, engine="reference")
    table = schedule.timeline()
    assert integral(table, "queued_jobs") == schedule.wait.sum()
    assert integral(table, "queued_work") == (schedule.wait * workload.procs * workload.requested).sum()
    assert integral(table, "busy_procs") == (schedule.runtime * workload.procs).sum()
    # Little's law: jobs in the system are the arrival rate times the mean response; both sides times the length
    assert integral(table, "queued_jobs") + integral(table, "running_jobs") == (schedule.end - schedule.submit).sum()
    assert (table["busy_procs"] <= workload.machine_procs).all()
    assert table.tail(1).drop("time").row(0) == (0, 0, 0, 0) if len(table) else schedule.runtime.sum() == 0


@examples(50)
@given(workloads(), st.integers(1, 50))
def test_timeline__means_have_the_same_integral(workload, interval):
    schedule = wt.simulate(workload, wt.Easy(), engine="reference")
    table, exact = schedule.timeline(interval), schedule.timeline()
    for name in table.columns[1:]:
        assert table[name].sum() * interval == pytest.approx(integral(exact, name))
    assert (table["time"] % interval == 0).all()


def test_timeline__without_jobs_is_empty():
    nothing = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=1)
    assert len(wt.simulate(nothing, wt.Easy()).timeline()) == 0
    assert len(wt.simulate(nothing, wt.Easy()).timeline(60)) == 0


def test_timeline__refuses_bad_intervals():
    with raises(PolicyError, "number_out_of_range", "1", "0"):
        wt.simulate(JOBS, wt.Easy()).timeline(0)
    one = np.array([1])
    with raises(PolicyError, "too_many_intervals", "10,000,000"):
        metrics.timeline(submit=one * 0, start=one * 0, end=one * 10**9, procs=one, requested=one, interval=1)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("90m", 5400), ("1h", 3600), ("2d", 172800), ("1w", 604800)])
def test_parse_seconds(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1", "1.5h", "an hour", "1y"])
def test_parse_seconds__refuses(text):
    with raises(PolicyError, "wrong_duration"):
        parse_seconds(text)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "small.swf"
    path.write_text(HEADER + record(1, 0, 10, 3, 10) + record(2, 1, 10, 4, 12) + record(3, 2, 5, 1, 6))
    return path


def test_simulate__writes_the_timeline(capsys, log, tmp_path):
    exact, hourly = tmp_path / "exact.csv", tmp_path / "hourly.parquet"
    status, out, _ = call(capsys, "simulate", log, "--timeline", exact)
    assert status == 0
    assert f"timeline written to {exact}" in out
    assert pl.read_csv(exact)["queued_jobs"].to_list() == [0, 1, 1, 1, 0, 0]
    status, out, _ = call(capsys, "simulate", log, "--timeline", hourly, "--interval", "1h", "--json")
    assert json.loads(out)["timeline"] == str(hourly)
    assert pl.read_parquet(hourly)["queued_jobs"].to_list() == [9 / 3600]
    assert json.loads(pl.read_parquet_metadata(hourly)["walltime"])["settings"]["policy"] == "easy"


@pytest.mark.parametrize(
    "options",
    [
        ["--timeline", "queue.txt"],
        ["--interval", "1h"],
        ["--timeline", "queue.csv", "--interval", "soon"],
        ["--timeline", "queue.csv", "--replications", "2", "--shake", "5"],
    ],
)
def test_simulate__refuses_what_makes_no_timeline(golden, capsys, log, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    golden("simulate", one_line(*call(capsys, "simulate", log, *options)))
