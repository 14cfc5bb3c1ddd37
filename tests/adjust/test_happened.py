"""What happened, after a day on the synthetic cluster: the ledger beside the log that its sacct would print."""

import json
import shutil
from dataclasses import replace

import pytest

from tests.adjust.failures import KeepingSidecar, busy, day
from tests.adjust.fake import BEGIN, STEP, FakeSlurm, Job, sacct
from tests.cli import call
from tests.errors import raises
from tests.pages import outline
from walltime.logs import read_log
from walltime.machine import Machine, Partition, Pool
from walltime.slurm.sidecar.ledger import Event, Ledger, LedgerError, read_events
from walltime.slurm.sidecar.page import adjust_page, review_sentences
from walltime.slurm.sidecar.review import what_happened, with_delays

MACHINE = """policy = "easy"
[[pool]]
name = "all"
nodes = 32
procs = 1
[[partition]]
name = "main"
pools = ["all"]
"""


def read(path):
    return read_log(path, time_zone="UTC").to_workload(procs=10**9)


@pytest.fixture(scope="module")
def one_day(tmp_path_factory):
    folder = tmp_path_factory.mktemp("day")
    return folder, day(folder, busy(80), 32)


@pytest.fixture
def busy_day(tmp_path, one_day):
    folder, cluster = one_day
    shutil.copy(folder / "ledger.sqlite", tmp_path)
    (tmp_path / "log.txt").write_text(sacct(cluster))
    return cluster


def test_runs_are_those_of_the_cluster(tmp_path, busy_day):
    found = what_happened(read_events(tmp_path), read(tmp_path / "log.txt"))
    runs = {run.key: run for run in found.runs}
    adjusted = {job.key: job for job in busy_day.jobs.values() if job.time_min and job.user != "sidecar" and job.start}
    assert adjusted.keys() == runs.keys()
    assert len(runs) > 20
    for key, run in runs.items():
        job = adjusted[key]
        assert (run.start, run.time_min, run.limit, run.runtime) == (job.start, 60 * job.time_min, 60 * job.wanted, job.end - job.start)
        assert run.backfilled == (key in busy_day.backfilled)
        assert run.outlived == (job.end - job.start > 60 * job.time_min)
        if run.backfilled:
            assert run.ahead_of > 0
        assert run.predicted == pytest.approx(job.runtime / 2, abs=1)
    assert found.killed == []
    assert found.broken
    assert found.counts()["restored"] == sum(run.backfilled for run in runs.values())
    assert 0 < found.restored[0].left <= 600
    hours = sum(job.nodes * (job.end - job.start) for key, job in adjusted.items() if key in busy_day.backfilled) / 3600
    assert found.node_hours == pytest.approx(hours)


def test_page_says_first_that_no_job_was_ended_early(golden, tmp_path, busy_day):
    found, jobs = what_happened(read_events(tmp_path), read(tmp_path / "log.txt")), read(tmp_path / "log.txt")
    page = adjust_page(found, None, jobs)
    [answer] = page.answer
    golden("slurm-adjust", answer, page.picture.caption)
    early = replace(found.runs[0], state="TIMEOUT", runtime=60)
    killed = adjust_page(replace(found, runs=[early, *found.runs[1:]]), None, jobs)
    golden("slurm-adjust", killed.answer[0])


def test_without_flags_backfill_is_inferred(golden, tmp_path, busy_day):
    (tmp_path / "log.txt").write_text(sacct(busy_day, flags=False))
    found = what_happened(read_events(tmp_path), read(tmp_path / "log.txt"))
    assert {run.key for run in found.started_by_backfill} >= {run.key for run in found.runs if run.key in busy_day.backfilled}
    golden("slurm-adjust", " ".join(found.notes))


def test_a_part_of_the_day(tmp_path, busy_day):
    events, jobs = read_events(tmp_path), read(tmp_path / "log.txt")
    middle = BEGIN + 5_000
    parts = [what_happened(events, jobs, until=middle), what_happened(events, jobs, since=middle + 1)]
    assert sum(len(part.runs) for part in parts) == len(what_happened(events, jobs).runs)
    assert all(part.runs for part in parts)


def test_a_job_that_was_ended_early_is_named_first(golden, capsys, tmp_path):
    cluster = day(tmp_path, busy(80), 32, kind=KeepingSidecar, share=0.2)
    early = [text.split()[1] for text in cluster.violations]
    assert early
    (tmp_path / "log.txt").write_text(sacct(cluster))
    status, out, _ = call(capsys, "slurm", "what-happened", "--ledger", tmp_path, tmp_path / "log.txt")
    assert status == 0
    first = " ".join(out.split()).partition(" UTC, from")[0]
    golden("slurm-adjust", out.splitlines()[0])
    named = [key for key in early if f" {key} of u" in first]
    assert first.startswith(f"{len(early)} JOBS")
    assert len(named) == min(len(early), 20), "the first twenty by their starts, and how many more"
    status, out, _ = call(capsys, "slurm", "what-happened", "--ledger", tmp_path, tmp_path / "log.txt", "--json")
    assert sorted(json.loads(out)["killed_early"]) == sorted(early)


def test_broken_promises_delay_others_in_the_simulation(tmp_path):
    # C is predicted 10 min, fits ahead of B, and runs for 50; B, which needs all nodes, has to wait for it
    jobs = [Job(1, "ann", 3, 3000, 60, BEGIN), Job(2, "bob", 4, 600, 60, BEGIN + 1500), Job(3, "cy", 1, 3000, 120, BEGIN + 1800)]
    folder = tmp_path / "ledger"
    folder.mkdir()
    cluster = day(folder, jobs, 4, share=0.2)
    assert cluster.backfilled[-1] == "3"
    (tmp_path / "log.txt").write_text(sacct(cluster))
    machine = Machine((Pool("all", 4, 1),), (Partition("main", ("all",)),), policy="easy")
    log = read(tmp_path / "log.txt")
    found = with_delays(what_happened(read_events(folder), log), log, machine)
    assert [(run.key, run.outlived, run.ahead_of) for run in found.started_by_backfill] == [("3", True, 1)]
    [delay] = found.delays
    assert (delay.key, delay.user) == ("2", "bob")
    assert abs(delay.expected - cluster.jobs["1"].end) <= STEP
    assert abs(delay.start - cluster.jobs["2"].start) <= STEP
    assert "1 job started later" in review_sentences(found)[-1]


@pytest.mark.parametrize("with_machine", [True, False])
def test_the_page_and_the_tables(golden, capsys, tmp_path, busy_day, with_machine):
    (tmp_path / "machine.toml").write_text(MACHINE)
    more = ["--machine", tmp_path / "machine.toml"] if with_machine else []
    page = tmp_path / "page.html"
    words = ["slurm", "what-happened", "--ledger", tmp_path, tmp_path / "log.txt", "--report", page, *more]
    status, out, _ = call(capsys, *words, "--since", "2027-01-01")
    assert status == 0
    golden("slurm-adjust", out)
    assert ("In a simulation with easy" in out) == with_machine
    assert "What happened" in page.read_text()
    status, out, _ = call(capsys, *words, "--json")
    assert (json.loads(out)["delays"] is not None) == with_machine


def test_a_limit_that_somebody_lowered_while_the_job_ran_is_told(golden, tmp_path):
    job = Job(7, "ann", 1, 600, 60, BEGIN, limit=10, start=BEGIN + 100, end=BEGIN + 700, state="TIMEOUT")
    cluster = FakeSlurm(4)
    cluster.jobs = {"6": Job(6, "ann", 1, 60, 60, BEGIN, limit=60, start=BEGIN + 9, end=BEGIN + 69, state="COMPLETED"), "7": job}
    (tmp_path / "log.txt").write_text(sacct(cluster))
    events = [Event(BEGIN + 100.9, "set", "7", "ann", 5, 60, 60), Event(BEGIN + 120, "started", "7", "ann", 5, 60, 60, BEGIN + 100)]
    found = what_happened(events, read(tmp_path / "log.txt"))
    golden("slurm-adjust", review_sentences(found)[0])


@pytest.mark.parametrize("of_ledger", [True, False])
def test_the_report_of_the_gain(golden, capsys, tmp_path, busy_day, of_ledger):
    page = tmp_path / "gain.html"
    (tmp_path / "machine.toml").write_text(MACHINE)
    size = ["--machine", tmp_path / "machine.toml"] if of_ledger else ["--procs", 32]
    words = ["slurm", "adjust", "--report", page, "--history", tmp_path / "log.txt", *size]
    words += [
        "--predictor",
        "tang13:key=user,statistic=p90,window=3",
        "--replications",
        "0",
        *(["--ledger", tmp_path] if of_ledger else []),
    ]
    status, out, _ = call(capsys, *words)
    assert status == 0
    golden("slurm-adjust", out)
    assert ("The side-car adjusted" in out) == of_ledger
    text = page.read_text()
    golden("slurm-adjust", outline(text))
    assert ("What happened" in text) == of_ledger


@pytest.mark.parametrize(
    "words",
    [
        ["--report", "x.txt"],
        ["--report", "x.html", "--act", "--ledger", "x"],
        ["--report", "x.html", "--ledger", "missing"],
        ["--machine", "x.toml"],
        ["--procs", "32"],
    ],
)
def test_wrong_calls(golden, capsys, tmp_path, busy_day, words):
    status, _, err = call(capsys, "slurm", "adjust", "--history", tmp_path / "log.txt", *words)
    assert status != 0
    golden("slurm-adjust", err)


def test_events__are_read_while_the_ledger_is_in_use_and_kept_for_a_year(tmp_path):
    ledger = Ledger(tmp_path)
    assert read_events(tmp_path) == []
    event = Event(5.0, "set", "7_1", "ann", 12, 60, 60, 0, "700")
    ledger.remember(event)
    assert read_events(tmp_path) == [event]
    ledger.remember(Event(5.0 + 500 * 86_400, "alarm", detail="x"))
    ledger.forget(["7_1"])
    assert [one.what for one in read_events(tmp_path)] == ["alarm"]
    ledger.close()
    with raises(LedgerError, "not_a_ledger"):
        read_events(tmp_path / "missing")
