"""The first difference between two schedules, and the rule behind it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.pages import outline
from tests.traces import published_path, trace_path
from walltime.checking import scheduler_trials
from walltime.machine import Machine, Partition, Pool, write_machine
from walltime.workload import Origin

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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_diff__no_dialects_are_the_usual_ones():
    found = [wt.diff(columns("fcfs"), columns("easy"), JOBS, policies=["easy"], dialects=dialects) for dialects in (None, [])]
    assert found[0].rule == found[1].rule


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


MACHINE = Machine((Pool("c", 1, 8), Pool("g", 1, 8, 4)), (Partition("cpu", ("c",)), Partition("gpu", ("g",)), Partition("all", ("c", "g"))))


def on_machine(gpus=(4, 4, 0, 0, 0), partition=(2, 2, 2, 1, 1)):
    """By hand: job 1 has all GPUs until 50 s, so job 2 waits for them; under EASY job 3, which needs none, overtakes job 2 at 2 s."""
    return wt.Workload.from_arrays(
        submit=[0, 1, 2, 2, 3], runtime=[50, 10, 5, 9, 9], procs=[1, 1, 2, 3, 3], machine_procs=16,
        columns={"gpus": np.array(gpus), "partition": np.array(partition)},
        origin=Origin("site", names={"partition": ("cpu", "gpu", "all")}),
    )  # fmt: skip


@pytest.mark.slow
def test_diff_machine__names_the_partition_and_its_gpus(golden):
    jobs = on_machine()
    files = [columns(policy, jobs, machine=MACHINE) for policy in ("fcfs", "easy")]
    found = wt.diff(*files, jobs, machine=MACHINE)
    first = found.first
    assert (first.time, first.job, first.starts, first.shadow) == (2, 3, (50, 2), -1)
    state = first.state
    assert (state.partition, state.pools, state.partitions, state.running) == ("gpu", ("g",), ("gpu", "all"), 1)
    assert (state.resources, state.needs, state.size, state.used) == (("processors", "gpus"), (2, 0), (8, 4), (1, 4))
    assert "A matches a simulation of fcfs, and B matches one of easy" in found.rule
    assert found.trials[0].whole
    golden("diff", str(found))
    assert found.as_dict()["first"]["state"]["used"] == (1, 4)


def test_diff_machine__tries_its_policy_first_and_leaves_out_jobs_that_do_not_fit():
    jobs = on_machine(gpus=(4, 4, 0, 0, 9), partition=(2, 2, 2, 1, 2))
    own = replace(MACHINE, policy="conservative-scratch")
    kept = wt.simulate(jobs, "easy", machine=own).columns()
    more = {name: np.append(values, values[:1]) for name, values in kept.items()} | {"job_id": np.append(kept["job_id"], 5)}
    found = wt.diff(more, more, jobs, machine=own)
    assert (found.jobs, found.workload.origin.dropped) == (4, {"too_many_gpus": 1})
    found = wt.diff(columns("conservative-scratch", jobs, machine=own), columns("fcfs", jobs, machine=own), jobs, machine=own)
    assert "conservative-scratch" in {trial.scheduler for trial in found.trials}
    with raises(wt.PolicyError, "unknown_name", "nothing"):
        wt.diff(columns("easy", jobs, machine=own), columns("fcfs", jobs, machine=own), jobs, machine=own, policies=["nothing"])


def test_diff_machine__skips_slow_schedulers_on_many_jobs(monkeypatch):
    jobs = on_machine()
    files = [columns(policy, jobs, machine=MACHINE) for policy in ("fcfs", "easy")]
    found = wt.diff(*files, jobs, machine=MACHINE)
    every = {trial.scheduler for trial in found.trials}
    assert found.untried == ()
    monkeypatch.setattr(scheduler_trials, "MOST_SLOW", 0)
    quick = wt.diff(*files, jobs, machine=MACHINE)
    fast = {trial.scheduler for trial in quick.trials}
    assert {"easy", "fcfs", "conservative"} <= fast < every
    assert every - fast <= set(quick.untried)
    assert quick.texts()[-1][0] == "not tried"


@pytest.mark.slow
def test_diff_command__with_a_machine(tmp_path, capsys):
    lines = ["; MaxProcs: 16", *(f"{k} {k} 0 50 4 -1 -1 4 60 -1 1 1 -1 -1 -1 1 -1 -1" for k in range(1, 9))]
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    machine = Machine((Pool("c", 1, 8), Pool("d", 1, 8)), (Partition("1", ("c",)), Partition("2", ("d",))), policy="easy")
    (tmp_path / "m.toml").write_text(write_machine(machine))
    for name in ("one", "two"):
        more = ["--machine", tmp_path / "m.toml"] if name == "one" else []
        assert call(capsys, "simulate", tmp_path / "log.swf", *more, "--out", tmp_path / f"{name}.csv")[0] == 0
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    given = ["--log", tmp_path / "log.swf", "--machine", tmp_path / "m.toml", "--json", "--report", tmp_path / "p.html"]
    status, out, err = call(capsys, "diff", *files, *given)
    assert (status, err) == (0, "")
    first = json.loads(out)["first"]
    assert (first["state"]["partition"], first["state"]["size"], first["state"]["used"]) == ("1", [8], [8])
    assert "partition 1" in (tmp_path / "p.html").read_text().lower()
