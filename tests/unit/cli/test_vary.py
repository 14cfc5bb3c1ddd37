"""`simulate`, `compare` and `clean` on a log that is varied: cut, scaled, shaken, filtered, run many times."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.traces import trace_path
from walltime.comparison.tables import COLUMNS as METRICS
from walltime.workload import scaling
from walltime.workload.models import MODELS

WEEK = 7 * 86_400
JOBS = 400
SEED = 7
"""One with which each random way comes near enough to the load asked for."""


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A synthetic log with users and requests of their own."""
    path = tmp_path_factory.mktemp("logs") / "made.swf"
    base = MODELS["lublin99"].generate(JOBS, 64, 0.7, 1)
    with_users = wt.Workload.from_arrays(
        submit=base.submit,
        runtime=base.runtime,
        procs=base.procs,
        requested=base.runtime * 3 + 60,
        machine_procs=64,
        columns={"user": np.arange(JOBS) % 7},
    )
    wt.logs.write_swf(path, with_users)
    return path


@pytest.fixture
def chains(tmp_path) -> Path:
    path = tmp_path / "chains.swf"
    wt.logs.write_swf(path, MODELS["feitelson96"].generate(300, 64, 0.9, 1))
    return path


def result(capsys, *arguments: object) -> dict:
    status, out, errors = call(capsys, *arguments, "--json")
    assert (status, errors) == (0, "")
    return json.loads(out)


# ------------------------------------------------------------------------------------------------------------- one run


@pytest.mark.parametrize(
    ("options", "jobs"),
    [
        (["--head", 50], 50),
        (["--tail", 60], 60),
        (["--remove", "user=3"], 343),
        (["--remove", "user=3", "--remove", "job<=10"], 334),
        (["--load", 0.5], 400),
        (["--load", 0.5, "--scale-by", "runtime"], 400),
        (["--shake", 30, "--seed", 4], 400),
    ],
)
def test_simulate__varies_the_log_first_and_says_how(golden, capsys, log, options, jobs):
    facts = result(capsys, "simulate", log, *options)
    assert facts["jobs"] == jobs
    golden("simulate", facts["steps"])


@pytest.mark.parametrize("by", scaling.WAYS)
def test_load__is_what_was_asked_for_in_each_way(capsys, log, by):
    facts = result(capsys, "simulate", log, "--load", 0.45, "--scale-by", by, "--seed", SEED)
    said = float(facts["steps"][-1].rpartition(" ")[2])
    assert facts["steps"][-1].startswith(f"load 0.45 by {by}, achieved")
    assert said == pytest.approx(scaling.scale_load(wt.read(log), 0.45, by, SEED).offered_load, abs=5e-5)
    assert facts["offered_load"] == pytest.approx(0.45, rel=0.01 if by in ("interarrival", "runtime") else 0.1)


def test_window__is_in_seconds_or_with_units(capsys, log):
    jobs = wt.read(log)
    inside = int(((jobs.submit >= 3600) & (jobs.submit < 86_400)).sum())
    for text in ("3600:86400", "1h:1d", "60m:24h", "3600s:86400s"):
        assert result(capsys, "simulate", log, "--window", text)["jobs"] == inside


def test_variations__are_made_in_a_fixed_order(capsys, log):
    options = ["--shake", 10, "--load", 0.6, "--head", 100, "--window", "1h:9d", "--remove", "user=1"]
    steps = result(capsys, "simulate", log, *options)["steps"]
    assert [step.split()[0] for step in steps] == ["cleaned:", "submitted", "first", "load", "shaken"]


def test_simulate__is_the_same_as_in_python(capsys, log):
    facts = result(capsys, "simulate", log, "--load", 0.8, "--shake", 30, "--estimates", "f:4", "--seed", 9, "--policy", "conservative")
    jobs = scaling.shake(scaling.scale_load(wt.read(log), 0.8), 30, 9).with_estimates(wt.estimates.parse_estimates("f:4"), 9)
    summary = wt.simulate(jobs, wt.Conservative()).summary()
    assert facts["mean_wait"] == summary.mean_wait
    assert facts["mean_bounded_slowdown"] == summary.mean_bounded_slowdown


@pytest.mark.parametrize(
    ("given", "same"), [("badness:3", "f:4"), ("badness:3,deterministic=yes", "f:4,deterministic=yes"), ("factor:2", "double")]
)
def test_estimates__have_two_spellings(capsys, log, given, same):
    first, second = (result(capsys, "simulate", log, "--estimates", name, "--seed", 3) for name in (given, same))
    assert first["mean_wait"] == second["mean_wait"]
    assert first["estimates"] == given


@pytest.mark.parametrize(
    "model",
    ["user", "exact", "double", "factor:1.5", "f:2", "f:4,deterministic=yes", "f:11,truncated=64800", "mualem01", "tsafrir05:emax=200000"],
)
def test_estimates__of_every_kind_run(capsys, log, model):
    status, out, err = call(capsys, "simulate", log, "--estimates", model, "--seed", 1, "--json")
    found = json.loads(out)
    assert (status, found["jobs"]) == (0, JOBS)
    # Only estimates that are the kill limit and may lie under the runtime end jobs early, and then it is said.
    assert ("estimate model kills" in err) == (found["killed"] > 0 and model not in ("user", "double", "factor:1.5"))


def test_feedback__makes_jobs_wait_for_the_one_before(capsys, chains):
    alone, waiting = (result(capsys, "simulate", chains, "--policy", "fcfs", *option) for option in ([], ["--feedback"]))
    assert waiting["mean_wait"] < alone["mean_wait"], "a job that is not submitted yet does not wait"
    expected = wt.simulate(wt.read(chains).with_feedback(), wt.NoBackfilling()).summary()
    assert waiting["mean_wait"] == expected.mean_wait


def test_feedback__of_a_schedule_is_what_the_auditor_looks_for(capsys, chains, tmp_path):
    out = tmp_path / "s.csv"
    assert call(capsys, "simulate", chains, "--feedback", "--out", out)[0] == 0
    assert call(capsys, "audit", chains, out, "--policy", "easy", "--feedback")[0] == 0


def test_compare__varies_the_log_of_all_policies(capsys, log):
    facts = result(capsys, "compare", log, "--load", 0.6, "--head", 200, "--estimates", "f:2", "--seed", 1)
    assert facts["steps"] == ["first 200 jobs", "load 0.6 by interarrival, achieved 0.6000"]
    assert [run["jobs"] for run in facts["runs"]] == [200] * 3
    assert facts["seed"] == 1


# -------------------------------------------------------------------------------------------------------- replications


def test_replications__have_a_mean_a_band_and_a_spread(golden, capsys, log):
    facts = result(capsys, "simulate", log, "--shake", 30, "--estimates", "f:4", "--replications", 5, "--seed", 10)
    (run,) = facts["replications"]
    assert (run["policy"], run["seeds"]) == ("easy", [10, 11, 12, 13, 14])
    waits = [result(capsys, "simulate", log, "--shake", 30, "--estimates", "f:4", "--seed", seed)["mean_wait"] for seed in run["seeds"]]
    assert run["mean_wait"]["mean"] == pytest.approx(np.mean(waits))
    assert (run["mean_wait"]["low"], run["mean_wait"]["high"]) == (min(waits), max(waits))
    golden("simulate", run["mean_wait"]["what"])
    assert run["mean_wait"]["relative_spread"] == pytest.approx(np.std(waits, ddof=1) / np.mean(waits))
    assert set(METRICS) <= set(run)
    assert (facts["shake"], facts["estimates"], facts["jobs"]) == (30, "f:4", JOBS)


def test_replications__of_policies_are_compared_in_pairs(golden, capsys, log):
    facts = result(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--shake", 60, "--replications", 4)
    first, second = facts["replications"]
    assert "difference" not in first["mean_wait"]
    difference = second["mean_wait"]["difference"]
    golden("simulate", difference["what"])
    assert difference["of"] == "other seeds"
    assert difference["mean"] == pytest.approx(second["mean_wait"]["mean"] - first["mean_wait"]["mean"])
    assert difference["low"] < difference["mean"] < difference["high"]


def test_replications__tell_people_what_each_number_is(golden, capsys, log):
    status, out, errors = call(
        capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--shake", 60, "--replications", 3, "--seed", 2
    )
    assert (status, errors) == (0, "")
    golden("simulate", out)
    assert out.count("confidence interval of the mean over 3 runs") == 1
    assert "vs fcfs" in out
    assert re.search(r"easy\s+\S.* ± \S.*\s[-+][\d.]+ %\s", out)
    status, out, _ = call(
        capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--shake", 60, "--replications", 3, "--format", "csv"
    )
    assert status == 0
    assert out.splitlines()[0] == 'policy,runs,"mean, 90 % interval",single runs,spread,difference to fcfs'
    status, out, _ = call(capsys, "simulate", log, "--shake", 60, "--replications", 3)
    assert status == 0
    assert "difference" not in out


def test_replications__of_what_has_no_chance_do_not_spread(capsys, log):
    # Estimates are drawn, and fcfs does not look at them.
    run = result(capsys, "simulate", log, "--replications", 3, "--estimates", "f:4", "--policy", "fcfs")["replications"][0]
    assert {run[name]["relative_spread"] for name in METRICS} == {0.0}


@pytest.mark.parametrize("runtime", [0, 5], ids=["no slowdown", "no offered load"])
def test_replications__of_what_is_not_defined_print_null(capsys, tmp_path, runtime):
    path = tmp_path / "odd.swf"
    path.write_text(HEADER + record(1, 0, runtime, 1, 9) + record(2, 0 if runtime else 5, runtime, 1, 9))
    facts = result(capsys, "simulate", path, "--replications", 2, "--estimates", "f:4")
    if runtime:
        assert facts["offered_load_of_log"] is None
    else:
        assert facts["replications"][0]["mean_slowdown"]["mean"] is None
    assert call(capsys, "simulate", path, "--replications", 2, "--estimates", "f:4")[0] == 0


# --------------------------------------------------------------------------------------------------------------- clean


def test_clean__says_what_was_removed_and_what_is_left(capsys, log):
    status, out, errors = call(capsys, "clean", log, "--remove", "user=3", "--remove", "runtime>2h or job<=10")
    assert (status, errors) == (0, "")
    jobs = wt.read(log)
    second = int((((jobs.runtime > 7200) | (jobs.job_id <= 10)) & (jobs.columns["user"] != 3)).sum())
    assert re.search(r"57\s+user=3", out)
    assert re.search(rf"{second}\s+runtime>2h or job<=10", out)
    assert re.search(rf"jobs\s+400\s+{JOBS - 57 - second}", out)
    assert "offered load" in out


def test_clean__writes_a_log_that_can_be_read_again(capsys, log, tmp_path):
    out = tmp_path / "clean.swf.gz"
    options = ["--remove", "user=3", "--load", 0.5, "--head", 200, "--shake", 20, "--seed", 6]
    facts = result(capsys, "clean", log, *options, "--out", out)
    assert facts["out"] == str(out)
    assert facts["removed"] == {"user=3": 57}
    assert (facts["before"]["jobs"], facts["after"]["jobs"]) == (400, 200)
    expected = scaling.scale_load(scaling.head(wt.logs.clean(wt.read(log), ["user=3"]).after, 200), 0.5)
    expected = scaling.shake(expected, 20, 6)
    again = wt.read(out)
    for name in ("job_id", "submit", "runtime", "requested", "procs"):
        assert getattr(again, name).tolist() == getattr(expected, name).tolist(), name
    assert again.columns["user"].tolist() == expected.columns["user"].tolist()
    assert again.machine_procs == 64
    header = " ".join(again.origin.header)
    for step in facts["steps"]:
        assert step in header
    assert len(facts["steps"]) == 4


def test_clean__of_nothing_says_so(capsys, log):
    status, out, _ = call(capsys, "clean", log)
    assert status == 0
    assert "No job was removed or changed." in out
    facts = result(capsys, "clean", log)
    assert (facts["removed"], facts["flurries"], facts["steps"], facts["before"]) == ({}, [], [], facts["after"])


def test_clean__finds_and_removes_flurries(capsys, tmp_path):
    path, out = tmp_path / "burst.swf", tmp_path / "calm.swf"
    lines = []
    for week in range(8):
        lines += [(week * WEEK + k * 20_000, 1 + k % 4) for k in range(20)]
        if week == 5:
            lines += [(week * WEEK + k * 5000 + 7, 9) for k in range(100)]
    path.write_text(HEADER + "".join(record(job, submit, 10, 1, 20, user=user) for job, (submit, user) in enumerate(sorted(lines), 1)))
    facts = result(capsys, "clean", path, "--flurries", "--out", out)
    (flurry,) = facts["flurries"]
    assert (flurry["user"], flurry["jobs"]) == (9, 100)
    assert flurry["share"] == pytest.approx(100 / 120)
    assert facts["removed"] == {flurry["filter"]: 100}
    assert (facts["before"]["jobs"], facts["after"]["jobs"]) == (260, 160)
    assert facts["before"]["busiest week of one user, in median weeks"] == 5.0
    assert 9 not in wt.read(out).columns["user"]
    status, human, _ = call(capsys, "clean", path, "--flurries")
    assert status == 0
    assert re.search(r"9\s+100\s+83 %", human)
    assert result(capsys, "clean", out, "--flurries")["flurries"] == []


@pytest.mark.slow
def test_clean__kth_as_the_archive_does(capsys, tmp_path):
    out = tmp_path / "KTH-cln.swf.gz"
    facts = result(capsys, "clean", trace_path("KTH-SP2-1996-2"), "--published", "--out", out)
    assert facts["removed"] == {"job<=14": 14}
    assert (facts["before"]["jobs"], facts["after"]["jobs"]) == (28_489, 28_475)
    assert len(wt.read(out)) == 28_475


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--shake", 600], ["--load", 0.5, "--scale-by", "thin"], ["--load", 1.2, "--scale-by", "thin"]])
def test_clean__of_a_log_whose_jobs_follow_each_other_writes_one_too(golden, capsys, chains, tmp_path, options):
    out, written = tmp_path / "out.swf", 0
    for seed in range(12):
        status, _, errors = call(capsys, "clean", chains, *options, "--seed", seed, "--out", out)
        if status:
            golden("simulate", errors)
            continue
        written += 1
        assert (wt.read(out).dependencies()[0] >= 0).any()
        assert result(capsys, "simulate", out, "--feedback")["jobs"] == len(wt.read(out))
    assert written > 0


def test_clean__writes_a_filter_of_several_lines_in_one(capsys, log, tmp_path):
    out = tmp_path / "out.swf"
    facts = result(capsys, "clean", log, "--remove", "user=3\nand  job<99", "--out", out)
    assert list(facts["removed"]) == ["user=3 and job<99"]
    assert any("removed by user=3 and job<99" in line for line in out.read_text().splitlines())


# --------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "no load": (["--load", 0], "from 0.000001 to 1.5, not 0"),
    "too much load": (["--load", 1.6], "from 0.000001 to 1.5, not 1.6"),
    "a load that is no number": (["--load", "much"], "--load"),
    "an unknown way": (["--load", 0.5, "--scale-by", "luck"], "interarrival"),
    "a machine smaller than the widest job": (["--load", 1.5, "--scale-by", "machine"], "the widest job has"),
    "more jobs than there are": (["--head", 401], "has 400 jobs"),
    "no jobs": (["--tail", 0], "--tail"),
    "an empty window": (["--window", "500d:600d"], "has no job submitted"),
    "a window without end": (["--window", "5d"], "BEGIN:END"),
    "a window with another unit": (["--window", "5y:6y"], "BEGIN:END"),
    "a filter that is none": (["--remove", "user="], "needs a column or a number at its end"),
    "a filter on a column that is not there": (["--remove", "color=3"], "unknown column 'color'"),
    "a filter that removes everything": (["--remove", "job>0"], "remove all 400 jobs"),
    "a negative shake": (["--shake", -3], "--shake"),
    "a seed below 0": (["--seed", -1, "--shake", 3], "--seed"),
    "a seed that is too large": (["--seed", 2**64, "--shake", 3], "--seed"),
}


@pytest.mark.parametrize("command", ["simulate", "compare", "clean"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_variation__gets_one_line(capsys, log, command, what):
    options, message = WRONG[what]
    assert message in one_line(*call(capsys, command, log, *options))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("simulate", ["--replications", 0]),
        ("simulate", ["--replications", 2, "--out", "s.csv"]),
        ("simulate", ["--replications", 2, "--monthly"]),
        ("compare", ["--replications", 2, "--report", "r.html"]),
        ("compare", ["--replications", 2, "--monthly"]),
        ("simulate", ["--estimates", "f:0.5"]),
        ("simulate", ["--estimates", "badness:-1"]),
        ("simulate", ["--estimates", "f:much"]),
        ("simulate", ["--estimates", "mualem01:top=9"]),
        ("clean", ["--published"]),
        ("clean", ["--out", "none/clean.swf"]),
        ("clean", ["--scale-by", "interarrival"]),
    ],
)
def test_wrong_call__gets_one_line(golden, capsys, log, monkeypatch, tmp_path, command, options):
    monkeypatch.chdir(tmp_path)
    golden(command, one_line(*call(capsys, command, log, *options)))
    assert list(tmp_path.iterdir()) == []


def test_flurries__of_a_log_without_users_get_one_line(capsys, tmp_path):
    path = tmp_path / "nobody.swf"
    path.write_text(HEADER + record(1, 0, 5, 1, 9, user=-1) + record(2, 9, 5, 1, 9, user=-1))
    assert "does not record users" in one_line(*call(capsys, "clean", path, "--flurries"))
    assert "does not record users" in one_line(*call(capsys, "simulate", path, "--load", 0.5, "--scale-by", "users"))


@pytest.mark.parametrize("out", ["clean.txt", "clean", "none/clean.swf", "folder.swf"])
def test_clean__refuses_what_it_cannot_write_before_it_reads(golden, capsys, monkeypatch, tmp_path, out):
    monkeypatch.chdir(tmp_path)
    Path("folder.swf").mkdir()
    status, printed, errors = call(capsys, "clean", "there-is-no-such-log.swf", "--out", out)
    golden("simulate", one_line(status, printed, errors))
    assert "there-is-no-such-log" not in errors
    assert status == 2


def test_clean__writes_to_a_device(capsys, log):
    assert call(capsys, "clean", log, "--head", 5, "--out", "/dev/null")[0] == 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--load", 1e-300], 2),
        (["--load", "nan"], 2),
        (["--head", 401], 2),
        (["--shake", 10**12], 2),
        (["--load", 1.5, "--scale-by", "machine"], 1),
        (["--window", "500d:600d"], 1),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "clean"])
def test_status__is_2_for_a_wrong_call_and_1_for_a_log_that_cannot(capsys, log, command, options, status):
    outcome = call(capsys, command, log, *options)
    one_line(*outcome)
    assert outcome[0] == status
