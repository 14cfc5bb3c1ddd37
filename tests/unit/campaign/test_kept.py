"""`keep = "schedules"`: further metrics and one's own from a campaign that ran, without simulating again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.campaign import Store, read_plan, read_results, run_campaign, status
from walltime.workload.scaling import shake

PLAN = """
[campaign]
seeds = 2
trim = "tsafrir06"
keep = "schedules"
[fixed]
trace = "log.swf"
shake = 60
[grid]
policy = ["easy", "fcfs"]
feedback = [false, true]
estimates = ["user", "f:3"]
"""
OWN = '"""A metric."""\n\n\ndef worst(schedule, measured):\n    return schedule.wait[measured].max() / len(measured)\n'


@pytest.fixture
def plan(tmp_path) -> Path:
    rng = np.random.default_rng(1)
    made = wt.workloads.Lublin99().generate(150, 64, 0.8, 1)
    users = {"user": rng.integers(0, 5, 150)}
    jobs = wt.Workload.from_arrays(submit=made.submit, runtime=made.runtime, procs=made.procs, machine_procs=64, columns=users)
    wt.logs.write_swf(tmp_path / "log.swf", jobs)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    (tmp_path / "own.py").write_text(OWN)
    return path


@pytest.mark.slow
def test_metrics__from_kept_schedules_equal_those_of_simulations(monkeypatch, plan):
    run_campaign(read_plan(plan))
    with monkeypatch.context() as patch:
        patch.setattr("walltime.simulation.batch.simulate", None)  # nothing is simulated
        own = f"{plan.parent / 'own.py'}:worst"
        lines = read_results(read_plan(plan)).means(["mean_wait", "p98_wait", "jain_users", own])
    assert len(lines) == 8 * 4
    jobs = wt.read(plan.parent / "log.swf")
    for line in lines:
        found = []
        for seed in (0, 1):
            base = jobs.with_feedback() if line.combination["feedback"] else jobs
            of = shake(base, 60, seed).with_estimates(wt.estimates.parse_estimates(line.combination["estimates"]), seed)
            found.append(wt.simulate(of, line.combination["policy"]).metric(line.metric, "tsafrir06"))
        assert line.band.mean == pytest.approx(np.mean(found)), (line.combination, line.metric)


@pytest.mark.slow
def test_run__keeps_missing_schedules_and_says_their_size(capsys, plan):
    without = plan.with_name("without.toml")
    without.write_text(PLAN.replace('keep = "schedules"', 'store = "plan.results"'))
    assert run_campaign(read_plan(without)).run == 16
    with raises(wt.errors.OutputError, "no_schedules"):
        read_results(read_plan(without)).means(["p98_wait"])
    with raises(wt.errors.PolicyError, "unknown_name"):
        read_results(read_plan(without)).means(["p99_weight"])
    assert "p98_wait" in one_line(*call(capsys, "campaign", "report", without, "--metric", "p98_wait"))
    before = Store(plan.parent / "plan.results").table()
    assert status(read_plan(plan)).done == 0
    state, out, errors = call(capsys, "campaign", "run", plan, "--json")
    assert (state, json.loads(out)["run"]) == (0, 16)
    said = float(re.search(r"about ([\d.]+) MB", errors)[1])
    store = Store(plan.parent / "plan.results")
    assert store.table().equals(before)
    size = sum(file.stat().st_size for file in store.schedules.iterdir())
    assert said == pytest.approx(size / 1e6, rel=0.3)
    assert call(capsys, "campaign", "report", plan, "--metric", "p98_wait")[0] == 0
    assert run_campaign(read_plan(plan)).run == 0
    next(store.schedules.iterdir()).unlink()
    assert run_campaign(read_plan(plan)).run == 1
    broken = next(store.schedules.iterdir())
    broken.write_bytes(b"x")
    assert broken.name in one_line(*call(capsys, "campaign", "report", plan, "--metric", "p98_wait"))
