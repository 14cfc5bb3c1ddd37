"""The side-car beside a real Slurm: 22.05, where what backfill shortens is given back, and 26.05 with soft limits."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC, datetime
from getpass import getuser

import pytest

from tests.slurm.beside import (
    KINDS,
    OPERATOR,
    SPAN,
    Adjuster,
    as_user,
    block,
    cancel,
    cluster,
    end_all,
    is_soft,
    is_whole,
    runs,
    settable,
    shown,
    small,
    start_tested,
    wait_whole,
    wide,
)
from tests.slurm.lab import CommandError, wait_until
from walltime.logs import read_log
from walltime.slurm.client import Client, CommandResult
from walltime.slurm.commands.cluster import FIELDS
from walltime.slurm.sidecar.ledger import read_events
from walltime.slurm.sidecar.review import what_happened


@pytest.fixture(scope="module", params=["22.05", "26.05"])
def lab(request):
    with cluster(request.param) as lab:
        block(lab)
        yield lab


def test_a_dry_run_changes_nothing(lab, tmp_path, adjusters):
    e, f = small(lab, "E"), wide(lab, "F")
    before = settable(lab)
    one = Adjuster(lab, tmp_path, "--once")
    adjusters.append(one)
    assert one.process.wait(60) == 0, one.told
    assert f"job {e}: TimeMin 1 min" in one.told
    assert f"job {f}: TimeMin 1 min" in one.told
    assert f"{'soft limit' if is_soft(lab) else 'give-back'} (dry run)" in one.told
    assert settable(lab) == before


@pytest.fixture(scope="module")
def backfilled(lab, tmp_path_factory):
    """A job, longer than its TimeMin of a minute, that runs ahead of the blocked head of the queue; what was said, and the ledger."""
    folder = tmp_path_factory.mktemp("backfilled")
    one = start_tested(lab, folder, adjusters := [])
    number = small(lab, "E", 85, name="long")
    wait_until("the long job", lambda: runs(lab, number), 60)
    assert "B" in lab.run("squeue", "--noheader", "--states=PENDING", "--format=%j").split()
    wait_whole(lab, number, "E")
    end_all(lab, adjusters)
    return number, one.told, folder / "ledger"


def test_an_adjusted_job_is_backfilled_and_keeps_its_limit(lab, backfilled):
    number, told, _ = backfilled
    if is_soft(lab):
        assert "raised its limit" not in told
    elif "Slurm shows its TimeMin" in told:
        assert shown(lab, number, "TimeLimit") == SPAN["E"]


@pytest.mark.parametrize("kind", ["E", "G"], ids=["lower", "higher"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_limit_that_its_user_changes_is_looked_at_anew(lab, tmp_path, adjusters, kind):
    start_tested(lab, tmp_path, adjusters)
    f = int(as_user(lab, "sbatch", "--parsable", "-D/tmp", "-o/dev/null", "-JF", f"-t{KINDS['F']}", "-N2", "--exclusive", "--wrap=true"))
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)
    as_user(lab, "scontrol", "update", f"JobId={f}", f"TimeLimit={KINDS[kind]}")
    assert shown(lab, f, "TimeLimit") == SPAN[kind]
    wait_until("the new TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 20)
    as_user(lab, "scontrol", "update", f"JobId={f}", "TimeLimit=77")  # there is no such job in the log
    wait_until("no TimeMin", lambda: shown(lab, f, "TimeMin") == "N/A", 20)
    assert shown(lab, f, "TimeLimit") == "01:17:00"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_users_cannot_set_time_min(lab):
    words = ("sbatch", "--parsable", "-D/tmp", "-o/dev/null", "-JF", f"-t{KINDS['F']}", "--hold")
    with pytest.raises(CommandError, match="reserved"):
        as_user(lab, *words, "--time-min=1", "--wrap=true")
    f = as_user(lab, *words, "--wrap=true").strip()
    with pytest.raises(CommandError, match=r"reserved|Unspecified error"):  # 22.05 does not pass the message on here
        as_user(lab, "scontrol", "update", f"JobId={f}", "TimeMin=1")
    assert shown(lab, f, "TimeMin") == "N/A"
    cancel(lab, "F")


def test_a_reservation_takes_time_min_away(lab, tmp_path, adjusters):
    start_tested(lab, tmp_path, adjusters)
    f = wide(lab, "F")
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)
    begin = datetime.fromtimestamp(time.time() + 4 * 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    of = ("Flags=MAINT,IGNORE_JOBS", f"StartTime={begin}", "Duration=60", "Nodes=ALL", "Users=root")
    lab.run("scontrol", "create", "reservation", "ReservationName=upgrade", *of)
    try:
        wait_until("no TimeMin", lambda: shown(lab, f, "TimeMin") == "N/A", 20)
        e = small(lab, "E")
        time.sleep(5)
        assert shown(lab, e, "TimeMin") == "N/A"
        assert shown(lab, e, "JobState") == "PENDING"
    finally:
        lab.run("scontrol", "delete", "ReservationName=upgrade")
    wait_until("TimeMin again", lambda: shown(lab, f, "TimeMin") == "00:01:00", 20)
    wait_until("E", lambda: runs(lab, e), 20)
    wait_whole(lab, e, "E")


def test_tasks_of_arrays(lab, tmp_path, adjusters):
    start_tested(lab, tmp_path, adjusters)
    number = small(lab, "E", 600, "--array=1-12")
    last = wide(lab, "F", "--array=3-14")

    def of_tasks(array: int, name: str) -> list[str]:
        return [word.partition("=")[2] for word in lab.run("scontrol", "show", "job", str(array)).split() if word.startswith(f"{name}=")]

    wait_until("the tasks that have room", lambda: of_tasks(number, "JobState") == ["RUNNING"] * 12, 60)
    wait_until("their limits", lambda: all(is_whole(lab, f"{number}_{task}", "E") for task in range(1, 13)), 30)
    wait_until("ten others", lambda: of_tasks(last, "TimeMin").count("00:01:00") == 10, 30)
    assert set(of_tasks(last, "TimeLimit")) == {SPAN["F"]}
    adjusters[0].end()
    assert set(of_tasks(last, "TimeMin")) == {"N/A"}
    assert all(is_whole(lab, f"{number}_{task}", "E") for task in range(1, 13))


def test_an_orderly_end_takes_everything_back(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    f = wide(lab, "F")
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)
    one.end()
    assert one.process.returncode == 0
    assert (shown(lab, f, "TimeMin"), shown(lab, f, "TimeLimit")) == ("N/A", SPAN["F"])


def test_two_at_once_are_refused(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    second = Adjuster(lab, tmp_path, "--act")
    assert second.process.wait(60) == 2
    assert "another side-car uses this ledger" in second.told
    assert one.process.poll() is None


def test_two_with_ledgers_of_their_own_shorten_nothing(lab, tmp_path, adjusters):
    """Where limits are given back, each takes what the other one has set for what a lost ledger has left: an alarm, and it is set to 0."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        start_tested(lab, tmp_path / name, adjusters)
    jobs = [wide(lab, kind) for kind in "FGFG"]
    e = small(lab, "E")
    if is_soft(lab):
        wait_until("TimeMin", lambda: all(shown(lab, job, "TimeMin") == "00:01:00" for job in jobs), 60)
        wait_until("E", lambda: runs(lab, e), 60)
        wait_whole(lab, e, "E")
    else:
        wait_until("an alarm", lambda: any(one.says("not in the ledger") for one in adjusters), 60)
    for one in adjusters:
        one.end()
    assert all(shown(lab, job, "TimeMin") == "N/A" for job in jobs)
    if runs(lab, e):
        assert is_whole(lab, e, "E")


def test_an_operator_has_enough_rights(lab):
    if is_soft(lab):
        pytest.skip("only root can run the commands of a newer Slurm")

    def runner(words, timeout):
        as_operator = ["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", *words]
        done = subprocess.run(as_operator, env=lab.environment, cwd="/tmp", capture_output=True, text=True)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    slurm = Client(runner)
    waits = small(lab, "E", 1, "-H")
    running = lab.submit("-JG", "-t30", wrap="sleep 20")
    wait_until("G", lambda: runs(lab, running), 60)
    slurm.set_time_min(str(waits), 5)
    slurm.set_limit(str(running), 40)
    assert (shown(lab, waits, "TimeMin"), shown(lab, running, "TimeLimit")) == ("00:05:00", "00:40:00")
    assert slurm.admin_level(OPERATOR) == "Operator"
    records = slurm.records("associations", "qos")
    assert any((row["Account"], row["ParentName"], row["User"]) == ("bio", "root", "") for row in records.associations)
    assert "normal" in [row["Name"] for row in records.qos]
    assert slurm.limits().known
    assert slurm.configuration().longest(["main"]) == 1440
    assert {job.key for job in slurm.queue(1)} >= {str(waits), str(running)}
    assert [job.state for job in slurm.jobs([str(waits), str(running), "999999"], 1)] in (["PENDING", "RUNNING"], ["RUNNING", "PENDING"])
    assert slurm.jobs(["999999"], 1) == []
    assert slurm.jobs_named(("G",), getuser()) == [str(running)]
    cancel(lab, *KINDS)


def test_an_adjusted_job_outlives_its_time_min(lab, backfilled):
    """The last one, so that the others are made meanwhile."""
    number, _, _ = backfilled
    wait_until("its end", lambda: not runs(lab, number), 120)
    assert shown(lab, number, "JobState") == "COMPLETED"
    hours, minutes, seconds = map(int, shown(lab, number, "RunTime").split(":"))
    assert (hours, minutes * 60 + seconds >= 80) == (0, True)


def test_what_happened_by_the_ledger_and_the_accounting(lab, backfilled, tmp_path):
    if not lab.accounting:
        pytest.skip("needs accounting")
    number, _, ledger = backfilled
    log = tmp_path / "sacct.txt"
    words = ("sacct", "--allusers", "--allocations", "--duplicates", "--parsable2", "--noconvert", "--starttime=now-1hour")

    def accounted() -> bool:
        log.write_text(lab.run(*words, f"--format={FIELDS},JobName"))
        return any(line.startswith(f"{number}|") and "|COMPLETED|" in line for line in log.read_text().splitlines())

    wait_until("its accounting", accounted, 60)
    found = what_happened(read_events(ledger), read_log(log, time_zone="UTC").to_workload(procs=64))
    run = next(run for run in found.runs if run.key == str(number))
    assert (run.time_min, run.limit, run.backfilled, run.outlived, run.killed_early) == (60, KINDS["E"] * 60, True, True, False)
    assert run.short
    assert run.left is not None
    assert 0 < run.left <= 60
    assert found.killed == []
