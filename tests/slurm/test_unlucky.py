"""Unlucky nights and hostile names beside a real Slurm: 22.05 and 24.11, and at night 26.05 with soft limits."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from tests.slurm.beside import (
    KINDS,
    LONGEST,
    OPERATOR,
    SPAN,
    Adjuster,
    as_user,
    block,
    cluster,
    history,
    is_whole,
    runs,
    shown,
    small,
    start_tested,
    wait_whole,
    wide,
)
from tests.slurm.lab import CommandError, wait_until
from walltime.slurm.client import Client, CommandResult

VERSIONS = ["22.05", "24.11", pytest.param("26.05", marks=pytest.mark.nightly)]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture(scope="module", params=VERSIONS)
def lab(request):
    with cluster(request.param, accounting=True, enforce=True) as lab:
        lab.run("sacctmgr", "-iQ", "add", "qos", "long", "maxwall=3-00:00:00", "flags=PartitionTimeLimit")
        lab.run("sacctmgr", "-iQ", "modify", "user", "name=root", "set", "qos+=long")
        block(lab)
        yield lab


def slow(lab, folder, seconds):
    """A folder with an scontrol that takes so long for each change."""
    commands = folder / "slow"
    commands.mkdir()
    real = shutil.which("scontrol", path=lab.path)
    (commands / "scontrol").write_text(f'#!/bin/sh\n[ "$1" != update ] || sleep {seconds}\nexec {real} "$@"\n')
    (commands / "scontrol").chmod(0o755)
    return commands


def test_a_slow_scontrol(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters, commands=slow(lab, tmp_path, 2))
    waiting = [wide(lab, kind) for kind in "FGF"]
    e = small(lab, "E")
    wait_until("E", lambda: runs(lab, e), 60)
    begin = time.monotonic()
    wait_whole(lab, e, "E", 40)
    assert time.monotonic() - begin < 60  # its TimeMin
    one.end()
    assert all(shown(lab, job, "TimeMin") == "N/A" for job in waiting)


def start_short(lab, folder, adjusters, *words):
    """E, which runs short while nobody looks after it, where limits are given back."""
    one = start_tested(lab, folder, adjusters, *words, pause=STOPPED)
    e = small(lab, "E")
    wait_until("its end", lambda: one.process.poll() is not None, 60)
    wait_until("E", lambda: runs(lab, e), 60)
    return e


STOPPED = """
import os, signal
from walltime.slurm.client import Client
usual = Client.set_time_min
def killed(self, key, minutes):
    usual(self, key, minutes)
    if "walltime-self-test" not in self.output("squeue", "-h", "-j", key, "-o%j"):
        os.kill(os.getpid(), signal.SIGKILL)
Client.set_time_min = killed
"""


def test_a_ledger_that_is_removed_in_the_middle(lab, tmp_path, adjusters):
    e = start_short(lab, tmp_path, adjusters)
    for file in tmp_path.glob("ledger/ledger.sqlite*"):
        file.unlink()
    again = Adjuster(lab, tmp_path, "--act")
    adjusters.append(again)
    wait_until("the alarm", lambda: again.says("ALARM"), 40)
    assert "a new ledger" in again.told
    if lab.settings.get("SchedulerParameters", "").endswith("soft_limit"):
        assert is_whole(lab, e, "E")
        return
    # nobody knows the user's limit, so it is raised in steps
    hours = ("02:", "03:", "04:", "05:")
    wait_until("a longer limit", lambda: shown(lab, e, "TimeLimit").startswith(hours) or shown(lab, e, "TimeLimit") == LONGEST, 50)
    assert runs(lab, e)
    assert "not in the ledger" in again.told


def test_without_a_job_log_at_the_start_it_gives_back_and_adjusts_nothing(lab, tmp_path, adjusters):
    e = start_short(lab, tmp_path, adjusters, "--floor=2")
    one = Adjuster(lab, tmp_path, "--act", "--floor=2", log=False)
    adjusters.append(one)
    wait_whole(lab, e, "E", 90)
    f = wide(lab, "F")
    wait_until("a round that sees F", lambda: one.says(": 2 waiting, 0 adjusted"), 60)  # B is the other one
    assert "ALARM" in one.told
    assert "history.txt" in one.told
    assert (shown(lab, f, "TimeMin"), shown(lab, f, "TimeLimit")) == ("N/A", SPAN["F"])
    assert runs(lab, e)
    one.history.write_text(history())
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:02:00", 120)


def test_a_limit_that_a_qos_has_raised(lab, tmp_path, adjusters):
    """The partition allows a day; this job has two by its QOS, which allows three, and has at least its two back."""
    log = tmp_path / "log.txt"
    log.write_text(history(2880))
    one = start_tested(lab, tmp_path, adjusters, f"--history={log}")
    number = lab.submit("-JE", "-t2-00:00:00", "--qos=long", "-n1", wrap="sleep 600")
    wait_until("E", lambda: runs(lab, number), 60)
    wait_until("its two days", lambda: shown(lab, number, "TimeLimit") in ("2-00:00:00", "3-00:00:00"), 50)
    assert one.says(f"job {number}: TimeMin 1 of 2880 min")
    slurm = Client(lambda words, timeout: CommandResult(0, lab.run(*words), ""))
    limits, cluster = slurm.limits(), slurm.configuration()
    [job] = slurm.jobs([str(number)], 1)
    assert (cluster.longest(["main"]), limits.longest(job, cluster)) == (1440, 4320)


@ROOT_ONLY
def test_names_with_newlines_forge_nothing(lab, tmp_path, adjusters):
    start_tested(lab, tmp_path, adjusters)
    victim = wide(lab, "F")
    forged = f"x\n{victim}|RUNNING|root|bio|main|normal|None|5:00|1:00|N/A|N/A|N/A|0|1|1|9|N/A|N/A|(null)|(null)|\nwalltime-self-test"
    mine = as_user(lab, "sbatch", "--parsable", "-D/tmp", "-o/dev/null", f"-J{forged}", "-t77", "-H", f"--comment={forged}", "--wrap=true")
    slurm = Client(lambda words, timeout: CommandResult(0, lab.run(*words), ""))
    queue = {job.key: job for job in slurm.queue(10)}
    assert queue[str(victim)].state == "PENDING"
    assert queue[str(victim)].limit == KINDS["F"]
    assert queue[mine.strip()].limit == 77
    assert sum(job.key == str(victim) for job in slurm.queue(10)) == 1
    wait_until("TimeMin", lambda: shown(lab, victim, "TimeMin") == "00:01:00", 60)
    assert shown(lab, victim, "TimeLimit") == SPAN["F"]
    lab.run("scancel", mine.strip())


@ROOT_ONLY
def test_the_guard_takes_time_min_away_with_any_change_that_matters_and_binds_the_side_car(lab):
    words = ("sbatch", "--parsable", "-D/tmp", "-o/dev/null", "-JE", f"-t{KINDS['E']}", "-H", "--wrap=true")
    number = as_user(lab, *words).strip()

    def as_operator(*words):
        return lab.run(
            "setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", "scontrol", "update", f"JobId={number}", *words
        )

    for change in ("Partition=main", "Dependency=afterany:1", "TimeLimit=200"):
        as_operator("TimeMin=5")
        assert shown(lab, number, "TimeMin") == "00:05:00"
        as_user(lab, "scontrol", "update", f"JobId={number}", change)
        assert shown(lab, number, "TimeMin") == "N/A"
    as_operator("TimeLimit=250")
    for change in ("TimeLimit=100", "Partition=main", "Comment=x", "Nice=5", "Priority=7", "Name=x", "ReqNodeList=n1", "Account=bio"):
        with pytest.raises(CommandError):
            as_operator(change)
    assert shown(lab, number, "TimeLimit") == "04:10:00"
    lab.run("scancel", number)


def test_a_large_array_is_one_record_and_cheap(lab):
    number = lab.submit("-JG", f"-t{KINDS['G']}", "--array=1-1000", "-H")
    slurm = Client(lambda words, timeout: CommandResult(0, lab.run(*words), ""))
    assert sum(job.key.startswith(f"{number}_") for job in slurm.queue(10)) == 10
    assert [job.key for job in slurm.jobs([f"{number}_700"], 10)] == [f"{number}_700"]
    lab.run("scancel", str(number))
