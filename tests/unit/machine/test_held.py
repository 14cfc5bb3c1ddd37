"""Jobs that were held, by a table that the machine's file names."""

from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests import sites
from tests.errors import raises
from walltime.comparison.caveats import caveats_of
from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.machine import HINDSIGHT, Machine, place, read_machine, write_held, write_machine
from walltime.machine.held import _table
from walltime.workload.scaling import held_until

MACHINE = """eligible = "site.held.csv"

[[pool]]
name = "all"
nodes = 4
procs = 1

[[partition]]
name = "all"
pools = ["all"]
"""


def jobs_of(**more):
    """Four jobs that each take half of the machine for 100 s, all submitted within 3 s."""
    return wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[100] * 4, procs=[2] * 4, machine_procs=4, job_id=[11, 12, 13, 14], **more)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site.toml").write_text(MACHINE)
    write_held(tmp_path / "site.held.csv", {12: 60, 13: 0, 99: 7})
    return tmp_path / "site.toml"


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slurm"])
def test_a_held_job__starts_when_it_is_free_to(golden, site, policy, engine):
    schedule = wt.simulate(jobs_of(), policy, machine=read_machine(site), engine=engine)
    start = dict(zip(schedule.workload.job_id.tolist(), schedule.start.tolist(), strict=True))
    if policy != "slurm":  # whose passes are at certain times
        assert start == {11: 0, 13: 2, 14: 100, 12: 102} if policy == "fcfs" else start[11] == 0
    assert start[13] < start[12] >= 61
    wait = dict(zip(schedule.workload.job_id.tolist(), schedule.wait.tolist(), strict=True))
    assert wait[12] == start[12] - 61
    assert schedule.audit().ok
    golden("simulate", caveats_of([schedule], "none"))


def test_what_is_held__is_added_once_and_taken_off_the_recorded_wait(golden, site):
    jobs = jobs_of(columns={"wait": np.array([0, 70, 5, 9])})
    placed, _ = place(jobs, read_machine(site))
    assert placed.job_id.tolist() == [11, 13, 14, 12]
    assert placed.submit.tolist() == [0, 2, 3, 61]
    assert placed.columns["wait"].tolist() == [0, 5, 9, 10]
    assert placed.columns["held"].tolist() == placed.columns[HINDSIGHT].tolist() == [0, 0, 0, 60]
    again, _ = place(placed, read_machine(site))
    assert again.submit.tolist() == placed.submit.tolist()
    golden("simulate", str(again.origin))


def test_a_changed_table__is_read_again(site):
    before = place(jobs_of(), read_machine(site))[0].submit.tolist()
    write_held(site.with_name("site.held.csv"), {12: 6000})
    assert place(jobs_of(), read_machine(site))[0].submit.tolist() != before


def test_what_is_about_the_future__refuses_it_unless_asked(site):
    machine, jobs = read_machine(site), jobs_of(columns={"wait": np.array([0, 101, 0, 97])})
    with raises(PolicyError, "hindsight"):
        wt.slurm.calibrate_starts(jobs, machine, "easy")
    for what, ask in {
        "a what-if": lambda machine, **more: wt.whatif.what_if(jobs, machine, ["nodes+=1"], policy="easy", trim="none", **more),
        "a calibration": lambda machine, **more: wt.whatif.calibrate(jobs, machine, "easy", trim="none", **more),
    }.items():
        with raises(PolicyError, "hindsight", what, "hindsight=True"):
            ask(machine)
        with raises(PolicyError, "no_hindsight"):
            ask(replace(machine, eligible=None), hindsight=True)
        ask(replace(machine, eligible=None))


def test_a_what_if__by_hindsight_says_so(golden, site):
    machine, jobs = read_machine(site), jobs_of(columns={"wait": np.array([0, 101, 0, 97])})
    result = wt.whatif.what_if(jobs, machine, ["nodes+=1"], policy="easy", trim="none", replications=0, hindsight=True)
    golden("simulate", result.answer(), result.caveats[0])
    starts = dict(zip(result.today.workload.job_id.tolist(), result.today.start.tolist(), strict=True))
    assert starts == dict(zip(*(one.tolist() for one in started(jobs, machine)), strict=True))
    calibration = wt.whatif.calibrate(jobs, machine, "easy", trim="none", hindsight=True)
    golden("simulate", calibration.verdict[0])
    assert calibration.evidence.hints[0].startswith("In hindsight, 1 of 4")
    assert calibration.overall.mean_recorded == pytest.approx((0 + (101 - 60) + 0 + 97) / 4)


def started(jobs, machine):
    """Job numbers and starts of the simulation on this machine."""
    schedule = wt.simulate(jobs, "easy", machine=machine)
    return schedule.workload.job_id, schedule.start


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_holds__give_the_schedule_of_jobs_that_come_so_much_later(tmp_path, seed):
    draw = np.random.default_rng(seed)
    jobs = sites.jobs_of(sites.MACHINE, jobs=120, seed=seed, load=1.1)
    held = np.where(draw.random(120) < 0.4, draw.integers(0, 40_000, 120), 0)
    table = write_held(tmp_path / "held.csv", dict(zip(jobs.job_id.tolist(), held.tolist(), strict=True)))
    machine = replace(sites.MACHINE, eligible=str(table))
    policy = ("easy", "easy:order=lxf", "conservative", "easy:predictor=last", "hybrid:depth=2", "relaxed")[seed % 6]
    later = wt.simulate(held_until(jobs, jobs.submit + held), policy, machine=sites.MACHINE)
    for engine in ("auto", "reference"):
        schedule = wt.simulate(jobs, policy, machine=machine, engine=engine)
        assert schedule.workload.job_id.tolist() == later.workload.job_id.tolist()
        assert schedule.start.tolist() == later.start.tolist()
        assert not schedule.audit().violations


def test_feedback__does_not_go_with_it(site):
    jobs = replace(jobs_of(columns={"preceding_job": np.array([-1, 11, -1, -1]), "think_time": np.zeros(4, np.int64)}), feedback=True)
    with raises(WorkloadError, "feedback"):
        place(jobs, read_machine(site))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job,held\n1,2\n", ("wrong_columns", "1", "job_id")),
        ("", ("wrong_columns", "1", "job_id")),
        ("job_id,held\n1\n", ("wrong_field", "2")),
        ("job_id,held\n1,2\n2,-5\n", ("wrong_field", "3")),
        ("job_id,held\n1,1e3\n", ("wrong_field", "2")),
        (f"job_id,held\n1,{10**30}\n", ("wrong_field", "2")),
        ("job_id,held\n1,2\n1,3\n", ("repeated_job", "3", "1")),
    ],
)
def test_a_wrong_table__is_told_in_one_line(site, text, said):
    site.with_name("site.held.csv").write_text(text)
    with raises(LogError, *said):
        place(jobs_of(), read_machine(site))


def test_a_missing_or_damaged_table__is_told_in_one_line(site):
    site.with_name("site.held.csv").write_bytes(b"job_id,held\n\xff,1\n")
    with raises(LogError, "not_a_table", "UTF-8"):
        place(jobs_of(), read_machine(site))
    site.with_name("site.held.csv").unlink()
    with raises(LogError, "unreadable_file", "site.held.csv"):
        place(jobs_of(), read_machine(site))


def test_a_machine_is_written_with_it():
    assert 'eligible = "a.csv"' in write_machine(replace(Machine.one_pool(4), eligible="a.csv"))


def test_explain__says_since_when_a_job_was_free_to_start_and_who_says_so(golden, site):
    schedule = wt.simulate(jobs_of(), "easy", machine=read_machine(site))
    golden("simulate", str(wt.explain(schedule, 12)), str(wt.explain(schedule, 13)))
    as_logged = wt.simulate(jobs_of(columns={"held": np.array([0, 0, 2, 0])}), "easy")
    golden("simulate", str(wt.explain(as_logged, 13)))
    both = wt.simulate(jobs_of(columns={"held": np.array([0, 1, 0, 0])}), "easy", machine=read_machine(site))
    golden("simulate", str(wt.explain(both, 12)))


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.csv", "a/../../secret.csv"])
def test_machine__may_not_name_a_table_outside_its_folder(tmp_path, name):
    (tmp_path / "m").mkdir()
    (tmp_path / "secret.csv").write_text("a secret\n")
    file = tmp_path / "m" / "machine.toml"
    file.write_text(f'eligible = "{name}"\n[[pool]]\nname = "a"\nnodes = 4\nprocs = 1\n[[partition]]\nname = "1"\npools = ["a"]\n')
    with raises(LogError, "file_outside_folder"):
        read_machine(file)


def test_table__that_is_another_file_is_not_shown(tmp_path):
    (tmp_path / "held.csv").write_text("a secret,line\n")
    with pytest.raises(LogError) as fault:
        _table(tmp_path / "held.csv", 0)
    assert "secret" not in str(fault.value)
