"""Parts of one's own, in files: estimates, workload models and trims, in Python, on the command line and in campaigns."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.campaign import Store, Threads, read_plan, run_campaign
from walltime.estimates import parse_estimates
from walltime.metrics import check_trim
from walltime.workload.models import parse_model

JOBS = wt.workloads.Lublin99().generate(200, 64, 1.1, 1)
OWN = """
import numpy as np
import walltime as wt

def noisy(workload, seed, factor=2.0):
    return workload.runtime * np.random.default_rng(seed).uniform(1, factor, len(workload))

def hours(workload):
    return -(-workload.runtime // 3600) * 3600

def short(workload):
    return [1]

def below(workload):
    return workload.runtime - 10**9

def alike(jobs, procs, seed, width=4):
    draw = np.random.default_rng(seed)
    return wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(1, 900, jobs)), runtime=draw.integers(60, 7200, jobs), procs=[int(width)] * jobs, machine_procs=procs
    )

def wrong(jobs, procs, seed):
    return alike(jobs + 1, procs, seed)

def last_half(submit, end):
    return submit >= np.median(submit)

def nothing(x, y, z, more):
    pass
"""


@pytest.fixture
def own(tmp_path) -> str:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return str(file)


def test_own_estimates__are_drawn_with_the_seed_and_options(own):
    noisy = parse_estimates(f"{own}:noisy:factor=3")
    assert noisy.label.endswith("own.py:noisy,factor=3")
    assert (noisy.random, parse_estimates(f"{own}:hours").random) == (True, False)
    drawn = [JOBS.with_estimates(noisy, seed) for seed in (0, 0, 1)]
    assert (drawn[0].planned == drawn[1].planned).all()
    assert (drawn[0].planned != drawn[2].planned).any()
    assert (drawn[0].requested == drawn[0].planned).all()
    kept = JOBS.with_estimates(parse_estimates(f"{own}:hours,limit=user"))
    assert (kept.requested == JOBS.requested).all()
    assert (kept.planned % 3600 == 0).all()


def test_own_estimates__with_wrong_values_are_errors(own):
    for name, code in (("short", "wrong_length"), ("below", "wrong_value"), ("nothing", "not_a_part"), ("none", "unknown_name")):
        with raises(wt.PolicyError, code, "own.py"):
            JOBS.with_estimates(parse_estimates(f"{own}:{name}"))


def test_own_model__generates_jobs_and_load(own):
    model = parse_model(f"{own}:alike:width=8")
    made = model.generate(100, 64, 0.9, seed=2)
    assert (len(made), set(made.procs.tolist())) == (100, {8})
    assert abs(made.offered_load - 0.9) < 0.02
    with raises(wt.PolicyError, "wrong_value", "own.py"):
        parse_model(f"{own}:wrong").generate(10, 64)


def test_trims__leave_out_the_first_days_or_what_a_function_says(own):
    schedule = wt.simulate(JOBS, "easy")
    slow = replace(JOBS, submit=JOBS.submit * 50)
    days = (slow.submit - slow.submit[0]) / 86_400
    assert 0 < wt.simulate(slow, "easy").summary("after:1").measured_jobs == np.count_nonzero(days >= 1) < 200
    assert schedule.summary(f"{own}:last_half").measured_jobs == 100
    for trim, code in (("after:", "unknown_trim"), ("half", "unknown_trim"), (f"{own}:nothing", "not_a_part")):
        with raises(wt.PolicyError, code):
            check_trim(trim)


@pytest.mark.slow
def test_campaign__runs_own_estimates_models_and_trims_again_only_if_edited(tmp_path, own):
    path = tmp_path / "plan.toml"
    path.write_text(
        '[campaign]\nseeds = 2\ntrim = "own.py:last_half"\n[fixed]\nmodel = "own.py:alike:width=2"\njobs = 80\nprocs = 32\n'
        '[grid]\nestimates = ["own.py:noisy", "own.py:hours", "exact"]\n'
    )
    for runs in (6, 0):
        assert run_campaign(read_plan(path, own=[own]), executor=Threads(2)).run == runs
    assert set(Store(tmp_path / "plan.results").table()["measured_jobs"]) == {40}
    assert read_plan(path, run_files=False).python_files == [own]
    with raises(wt.PolicyError, "python_file"):
        read_plan(path, own=[path])
    (tmp_path / "own.py").write_text(OWN.replace("factor=2.0", "factor=2.5"))
    assert run_campaign(read_plan(path, own=[own]), executor=Threads(2)).run == 6


def test_command_line__takes_own_parts(tmp_path, own, capsys):
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, JOBS)
    options = ("--estimates", f"{own}:hours", "--trim", f"{own}:last_half", "--json")
    record = json.loads(call(capsys, "simulate", log, *options)[1])
    summary = wt.simulate(JOBS.with_estimates(parse_estimates(f"{own}:hours")), "easy").summary(f"{own}:last_half")
    assert record["mean_wait"] == pytest.approx(summary.mean_wait)
    assert call(capsys, "generate", f"{own}:alike", "--jobs", 50, "--procs", 16, "--out", tmp_path / "made.swf")[0] == 0
    assert len(wt.read(tmp_path / "made.swf")) == 50


def test_functions__are_estimate_models_and_metrics_in_python():
    def noisy(workload, seed):
        return workload.runtime * np.random.default_rng(seed).integers(1, 4, len(workload))

    def late(schedule, measured):
        return np.mean(schedule.wait[measured] > 600)

    jobs = JOBS.with_estimates(wt.estimates.OwnEstimates.of(noisy), seed=3)
    assert np.array_equal(jobs.planned, np.maximum(noisy(JOBS, 3), 1))
    schedule = wt.simulate(jobs, "easy")
    assert 0 < schedule.metric(late) == np.mean(schedule.wait > 600) < 1
    for wrong in (noisy, "f:4"):
        with raises(wt.errors.WorkloadError, "wrong_type"):
            JOBS.with_estimates(wrong)
    with raises(wt.errors.PolicyError, "not_a_part"):
        schedule.metric(lambda schedule, measured, more: 0)


def test_options_of_a_plain_policy__are_given_by_place():
    @dataclass(frozen=True)
    class Narrow(wt.PlainPolicy):
        most: int = 2

        def choose(self, now, waiting, running, free):
            return [job for job in waiting[:1] if job.procs <= free and len(running) < self.most]

    assert Narrow(1).most == 1
    assert wt.simulate(JOBS, Narrow(1)).summary().mean_wait > wt.simulate(JOBS, Narrow(50)).summary().mean_wait


def test_campaign_report__runs_an_allowed_file_for_metrics_of_kept_schedules(tmp_path, own, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[campaign]\ntrim = "own.py:last_half"\nkeep = "schedules"\n[fixed]\nmodel = "lublin99"\njobs = 60\nprocs = 64\nload = 0.9\n'
    )
    run_campaign(read_plan(plan, own=[own]), executor=Threads(1))
    report = ("campaign", "report", plan, "--metric", "p95_wait", "--json")
    one_line(*call(capsys, *report))
    status, out, _ = call(capsys, *report, "--own", own)
    assert status == 0
    assert json.loads(out)["lines"][0]["metric"] == "p95_wait"
