"""Predictions judged by schedules: by hand, beside simulations, and as a command."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.pages import outline
from walltime.benchmark.predictions import MEASURES, SCHEDULERS, SLURM, gain_correlations, judge_predictions


def made(seed=1, jobs=300):
    workload = wt.workloads.Lublin99().generate(jobs, 32, 0.9, seed=seed)
    requested = workload.runtime * 3 + 60
    columns = {"user": np.arange(jobs) % 5, "soft": workload.runtime // 2}
    return wt.Workload.from_arrays(
        submit=workload.submit, runtime=workload.runtime, requested=requested, procs=workload.procs, machine_procs=32, columns=columns
    )


def test_judgement__of_half_the_runtime_by_hand():
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2], runtime=[100, 50, 10], requested=[200, 100, 20], procs=[2, 4, 1], machine_procs=4, columns={"soft": [50, 25, 10]}
    )
    found = judge_predictions({"log": jobs}, ["column:soft"], buffers=[1.0, 2.0], copies=0, only=True)
    half, whole = found.rows
    assert (half.predictor, half.buffer, half.killed, half.jobs) == ("column:soft", 1.0, 2, 3)
    assert half.lost_hours == pytest.approx((50 * 2 + 25 * 4) / 3600)
    assert half.lost_percent == pytest.approx(100 * 200 / 410)
    assert half.accuracy["accuracy"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert half.accuracy["absolute_error"] == pytest.approx(-(50 + 25) / 3)
    assert half.accuracy["area_error"] == pytest.approx(-(100 + 100) / 7)
    assert half.accuracy["not_under"] == pytest.approx(1 / 3)
    assert (whole.killed, whole.under_percent, whole.lost_hours) == (0, 0.0, 0.0)
    assert math.isnan(whole.gains[0].low), "no interval over weeks of three seconds"


def test_judgement__gains_are_those_of_simulations():
    jobs = made()
    found = judge_predictions({"log": jobs}, copies=0, buffers=[1.0], only=True, predictors=["exact", "column:soft"])
    for row, text in zip(found.rows, ("exact", "column:soft"), strict=True):
        assert [gain.scheduler for gain in row.gains] == [*SCHEDULERS]
        for gain, scheduler in zip(row.gains[:-1], SCHEDULERS[:-1], strict=True):
            before, after = (wt.simulate(jobs, scheduler, prediction=one).wait.mean() for one in (None, text))
            assert gain.mean_wait == pytest.approx(100 * (after - before) / before)
            assert found.waits["log", scheduler] == pytest.approx(before)
    assert found.rows[0].accuracy["order"] == pytest.approx(1)
    assert (found.rows[0].killed, found.rows[0].gains[0].scheduler) == (0, "easy")
    assert gain_correlations(found.rows) == [], "of one predictor besides the exact one there is no correlation"


def test_judgement__of_slurm_is_by_soft_limits_on_nodes():
    jobs = made(4)
    minutes = -(-jobs.columns["soft"] // 60) * 60
    soft = replace(jobs, columns={**jobs.columns, "time_min": np.where(minutes < jobs.requested, minutes, -1)})
    machine = wt.machine.Machine.one_pool(32)
    before, after = (wt.simulate(one, SLURM, machine=machine).wait.mean() for one in (jobs, soft))
    found = judge_predictions({"log": soft}, ["column:soft"], copies=0, buffers=[1.0], only=True)
    assert found.rows[0].gains[-1].mean_wait == pytest.approx(100 * (after - before) / before)
    assert found.waits["log", SLURM] == pytest.approx(before), "without the log's own time_min"
    assert before != after


def test_judgement__of_slurm_takes_nodes_of_the_processors_that_all_jobs_are_multiples_of():
    jobs = made(5)
    wide = wt.Workload.from_arrays(
        submit=jobs.submit, runtime=jobs.runtime, requested=jobs.requested, procs=8 * jobs.procs, machine_procs=256,
        columns={**jobs.columns, "partition": np.arange(300) % 2},
    )  # fmt: skip
    one, other = (judge_predictions({"log": w}, ["column:soft"], copies=0, buffers=[1.0], only=True) for w in (jobs, wide))
    assert one.waits == other.waits
    assert [gain.mean_wait for gain in one.rows[0].gains] == [gain.mean_wait for gain in other.rows[0].gains]


@pytest.mark.slow
def test_judgement__with_copies_has_a_range_and_skips_what_a_log_does_not_allow(golden):
    jobs = made(2, 120)
    unknown = wt.Workload.from_arrays(submit=jobs.submit, runtime=jobs.runtime, procs=jobs.procs, machine_procs=32)
    found = judge_predictions({"log": jobs, "without users": unknown}, copies=2, buffers=[1.0], workers=1)
    assert {row.predictor for row in found.rows if row.log == "without users"} == {"exact"}
    golden("benchmark", list(found.skipped))
    assert all(row.gains[0].copies_low <= row.gains[0].copies_high for row in found.rows if row.log == "log")
    several = gain_correlations(found.rows)
    assert {one.measure for one in several} == set(MEASURES)
    assert {one.log for one in several} == {"log"}
    with raises(wt.WorkloadError, "missing_column", "user"):
        judge_predictions({"log": unknown}, ["tsafrir07"], copies=0, only=True)


def test_judgement__measures_the_last_part_only():
    jobs = made()
    since = jobs.submit[150]
    later = jobs.submit >= since
    found = judge_predictions({"log": jobs}, ["column:soft"], copies=0, buffers=[1.0], only=True, test_share=0.5)
    before, after = (wt.simulate(jobs, "easy", prediction=one).wait[later].mean() for one in (None, "column:soft"))
    assert found.rows[0].jobs == later.sum()
    assert found.rows[0].gains[0].mean_wait == pytest.approx(100 * (after - before) / before)
    assert found.waits["log", "easy"] == pytest.approx(before)
    with raises(wt.PolicyError, "number_out_of_range", "0"):
        judge_predictions({"log": jobs}, copies=0, test_share=0.0)


@pytest.mark.slow
def test_command__prints_writes_and_takes_files(golden, tmp_path, capsys):
    jobs = made(3, 200)
    wt.logs.write_swf(tmp_path / "log.swf", jobs)
    rows = "".join(f"{job},{seconds}\n" for job, seconds in zip(jobs.job_id.tolist(), jobs.runtime.tolist(), strict=True))
    (tmp_path / "preds.csv").write_text("job_id,predicted\n" + rows)
    words = ["benchmark", "predictions", tmp_path / "log.swf", "--copies", 0, "--buffer", 1, "--predictor", f"file:{tmp_path}/preds.csv"]
    status, out, _ = call(capsys, *words, "--json", "--report", tmp_path / "page.html")
    record = json.loads(out)
    assert status == 0
    assert (record["suite"], record["version"]) == ("predictions", 2)
    by_name = {row["predictor"]: row for row in record["rows"]}
    assert by_name[f"file:{tmp_path}/preds.csv"]["gains"] == by_name["exact"]["gains"]
    golden("benchmark", outline((tmp_path / "page.html").read_text()), call(capsys, *words[:-2], "--only", "--predictor", "last")[1])


def test_command__refuses_in_one_line(golden, tmp_path, capsys):
    wt.logs.write_swf(tmp_path / "log.swf", made(3, 20))
    log = tmp_path / "log.swf"
    golden("benchmark", one_line(*call(capsys, "benchmark", "predictions", log, "--buffer", 0.5)))
    assert "add --predictor NAME" in one_line(*call(capsys, "benchmark", "predictions", log, "--only"))
    assert "unknown predictor" in one_line(*call(capsys, "benchmark", "predictions", log, "--predictor", "nothing"))
