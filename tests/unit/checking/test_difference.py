"""The first difference between two schedules, and the rule behind it."""

import json

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.pages import outline
from tests.traces import published_path, trace_path
from walltime.checking import scheduler_trials

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 10, 5, 8], procs=[3, 4, 1, 1], machine_procs=4)


def columns(policy, jobs=JOBS, **options):
    return wt.simulate(jobs, policy, **options).columns()


def test_diff__of_equal_schedules_says_so(golden):
    found = wt.diff(columns("easy"), columns("easy"), JOBS)
    assert found.identical
    assert found.first is None
    assert found.trials == ()
    golden("diff", str(found))


@pytest.mark.slow
def test_diff__names_the_state_at_the_first_difference(golden):
    """By hand: at 2 s job 1 has 3 of 4 processors until 10 s, and job 2 needs all; EASY lets job 3 in, which ends at 7 s."""
    found = wt.diff(columns("fcfs"), columns("easy"), JOBS)
    first = found.first
    assert (first.time, first.what, first.job, first.starts) == (2, "start", 3, (20, 2))
    assert (first.free, first.running, first.waiting, first.started) == (1, (1,), (2, 3), ((), (3,)))
    assert (first.head, first.shadow, first.extra) == (2, 10, 0)
    golden("diff", found.rule)
    assert (found.moved, found.ended, found.only) == (1, 0, (0, 0))


def test_diff__tells_which_reading_differs(golden):
    jobs = wt.workloads.Lublin99().generate(400, 32, 0.9, seed=2)
    found = wt.diff(columns("easy", jobs), columns("easy", jobs, dialect="papers:shadow=kept"), jobs, policies=["easy"])
    golden("diff", found.rule)
    assert {trial.scheduler for trial in found.trials} == {"easy"}
    assert found.trials[0].whole


def test_diff__of_ends_names_the_rule_for_overruns(golden):
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[10], requested=[7], procs=[1], machine_procs=1)
    found = wt.diff(columns("easy", jobs), columns("easy", jobs, overrun="continue"), jobs)
    assert (found.first.what, found.first.time, found.first.ends, found.ended) == ("end", 7, (7, 10), 1)
    golden("diff", found.rule)


def test_diff__says_when_nothing_explains_it(golden):
    late = columns("easy")
    late["start"], late["end"] = late["start"] + [0, 1, 0, 0], late["end"] + [0, 1, 0, 0]
    found = wt.diff(columns("easy"), late, JOBS)
    assert found.first.job == 2
    golden("diff", found.rule)


def test_diff__counts_the_jobs_that_one_file_lacks():
    few = {name: values[:3] for name, values in columns("easy").items()}
    found = wt.diff(few, columns("easy"), JOBS)
    assert (found.jobs, found.only, found.first, found.identical) == (3, (0, 1), None, False)
    with raises(wt.WorkloadError, "other_jobs"):
        wt.diff({name: values + 100 for name, values in few.items()}, columns("easy"), JOBS)


def test_diff__takes_the_submissions_of_the_files_where_both_have_others(golden):
    jobs = wt.Workload.from_arrays(submit=[0, 3, 4, 5], runtime=[10, 10, 5, 8], procs=[3, 4, 1, 1], machine_procs=4)
    found = wt.diff(columns("fcfs", jobs), columns("easy", jobs), JOBS)
    assert (found.first.time, found.first.submit) == (4, 4)
    golden("diff", found.rule)


def test_diff__submissions_of_the_files_at_one_second_keep_each_job_its_start():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[4, 4], job_id=[2, 1], machine_procs=4)
    a = {"job_id": np.array([2, 1]), "submit": np.array([3, 3]), "start": np.array([3, 13]), "end": np.array([13, 23])}
    b = a | {"start": np.array([3, 20]), "end": np.array([13, 30])}
    first = wt.diff(a, b, jobs).first
    assert (first.job, first.starts, first.submit) == (1, (13, 20), 3)


@pytest.mark.slow
def test_diff_command__prints_and_writes(golden, tmp_path, capsys):
    wt.logs.write_swf(tmp_path / "log.swf", JOBS)
    for name in ("fcfs", "easy"):
        wt.simulate(JOBS, name).write(tmp_path / f"{name}.csv")
    files = [str(tmp_path / name) for name in ("fcfs.csv", "easy.csv")]
    log = ["--log", str(tmp_path / "log.swf")]
    out = call(capsys, "diff", *files, *log, "--json", "--report", str(tmp_path / "page.html"), "--figure", str(tmp_path / "d.svg"))[1]
    record = json.loads(out)
    assert record["first"]["job"] == 3
    assert not record["identical"]
    page = (tmp_path / "page.html").read_text()
    assert "Schedulers tried" in page
    golden("diff", outline(page))
    assert "1 of 4" in page
    assert (tmp_path / "d.svg").stat().st_size > 1000
    assert "are the same schedule" in call(capsys, "diff", files[0], files[0], *log)[1]


def test_diff_command__refuses_in_one_line(tmp_path, capsys):
    wt.logs.write_swf(tmp_path / "log.swf", JOBS)
    wt.simulate(JOBS, "easy").write(tmp_path / "easy.csv")
    (tmp_path / "bad.csv").write_text("job_id,start\n1,2\n")
    easy, log = tmp_path / "easy.csv", tmp_path / "log.swf"
    assert "has no column end" in one_line(*call(capsys, "diff", easy, tmp_path / "bad.csv", "--log", log))
    words = ["diff", easy, tmp_path / "fcfs.csv", "--log", log, "--policy", "nothing"]
    wt.simulate(JOBS, "fcfs").write(tmp_path / "fcfs.csv")
    assert "unknown policy 'nothing'" in one_line(*call(capsys, *words))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"), [("easy", "what easy in the dialect pyss gives"), ("easypp", "what easy++ in the dialect predictsim gives")]
)
def test_diff__explains_published_schedules(golden, name, told):
    jobs = wt.read(trace_path("KTH-SP2-1996-2.sc15.recon"))
    other = wt.read_schedule(published_path(f"sc15/KTH-SP2.{name}.swf.gz"))
    ours = wt.simulate(jobs, "easy")
    found = wt.diff(ours.columns(), other, jobs, policies=["easy", "easy++"], dialects=["papers", "pyss", "predictsim"])
    golden("diff", found.rule)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["papers:shadow=kept", "mualem01-measured", "late"])
def test_diff__tries_slow_readings_from_the_last_moment_at_which_nobody_waited(dialect, monkeypatch):
    jobs = wt.workloads.Lublin99().generate(1500, 32, 0.6, seed=4)
    other = columns("easy", jobs, dialect="papers" if dialect == "late" else dialect)
    if dialect == "late":  # from a job in the middle on, everybody starts a second later
        late = np.arange(1500) >= 761
        other = {name: values + late if name in ("start", "end") else values for name, values in other.items()}
    sizes = []
    real = scheduler_trials.simulate
    monkeypatch.setattr(scheduler_trials, "simulate", lambda w, *a, **k: (sizes.append((len(w), str(k["dialect"]))), real(w, *a, **k))[1])
    soon = wt.diff(columns("easy", jobs), other, jobs, policies=["easy", "fcfs"])
    slow = [size for size, label in sizes if "ends=before" in label]
    assert slow
    assert max(slow) < (jobs.submit <= soon.first.time).sum() / 2, "only the last jobs before the first difference"
    monkeypatch.setattr(scheduler_trials.SchedulerTrials, "_is_slow", lambda *_: False)
    whole = wt.diff(columns("easy", jobs), other, jobs, policies=["easy", "fcfs"])
    assert (soon.rule, soon.first) == (whole.rule, whole.first)
