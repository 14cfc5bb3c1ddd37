"""Schedules of other programs: from tables and files, in metrics, and beside policies in `compare`."""

from __future__ import annotations

import json

import polars as pl
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises

JOBS = wt.workloads.Lublin99().generate(150, 64, 1.1, 1)
MADE = wt.simulate(JOBS, "easy")
ROWS = {"job_id": JOBS.job_id, "start": MADE.start, "end": MADE.end}
BATSIM = pl.DataFrame(
    {
        "job_id": [f"w0!{one}" for one in JOBS.job_id],
        "workload_name": ["w0"] * 150,
        "submission_time": JOBS.submit * 1.0,
        "requested_number_of_resources": JOBS.procs,
        "requested_time": JOBS.requested * 1.0,
        "success": [1] * 150,
        "starting_time": MADE.start + 0.000001,
        "execution_time": MADE.runtime * 1.0,
        "finish_time": MADE.end + 0.000001,
        "waiting_time": MADE.wait * 1.0,
    }
)


@pytest.mark.parametrize(
    "table", [ROWS, pl.DataFrame(ROWS).reverse(), pl.DataFrame(ROWS).to_pandas(), BATSIM], ids=["dict", "polars", "pandas", "batsim"]
)
def test_from_table__has_the_metrics_of_the_schedule(table):
    schedule = wt.Schedule.from_table(table, JOBS, "theirs")
    assert (schedule.label, schedule.engine) == ("theirs", "elsewhere")
    ours, theirs = MADE.summary(), schedule.summary()
    assert (theirs.mean_wait, theirs.utilization, theirs.mean_slowdown) == (ours.mean_wait, ours.utilization, ours.mean_slowdown)
    assert theirs.backfilled_percent > 0
    assert not schedule.audit().violations


def changed(**columns):
    return {name: list(columns.get(name, values)) for name, values in ROWS.items()}


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({name: values[1:] for name, values in ROWS.items()}, "missing_jobs"),
        (changed(job_id=[*JOBS.job_id[:-1], 10**6]), "wrong_jobs"),
        (changed(job_id=[*JOBS.job_id[:-1], JOBS.job_id[0]]), "wrong_jobs"),
        (changed(start=MADE.start - 10**6), "impossible_times"),
        (changed(end=MADE.start - 1), "impossible_times"),
        (changed(job_id=["x!y"] * 150), "wrong_field"),
        ({"job_id": JOBS.job_id}, "missing_column"),
        (7, "wrong_type"),
    ],
)
def test_from_table__of_other_jobs_or_times_is_an_error(table, code):
    with raises(wt.errors.WalltimeError, code):
        wt.Schedule.from_table(table, JOBS)


@pytest.mark.slow
def test_compare__shows_a_schedule_of_batsim_beside_policies(tmp_path, capsys):
    log, theirs, page = tmp_path / "log.swf", tmp_path / "out_jobs.csv", tmp_path / "page.html"
    wt.logs.write_swf(log, JOBS)
    BATSIM.write_csv(theirs)
    options = ("--schedule", theirs, "--schedule-name", "Batsim", "--by", "class", "--report", page)
    status, text, _ = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", *options, "--json")
    assert status == 0
    runs = json.loads(text)["runs"]
    assert [run["policy"] for run in runs] == ["fcfs", "easy", "Batsim"]
    assert runs[1]["mean_wait"] == runs[2]["mean_wait"]
    assert "Batsim" in page.read_text()
    assert call(capsys, "compare", log, "--schedule-name", "Batsim")[0] == 2
