"""The side-car beside a real Slurm, without soft limits: what backfill shortens is given back, whatever happens to the side-car."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from getpass import getuser
from pwd import getpwnam

import pytest

from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from walltime.adjust.commands import Answer, Slurm
from walltime.adjust.happened import what_happened
from walltime.adjust.ledger import read_facts_of
from walltime.adjust.selftest import GUARD, NAME
from walltime.cli.slurm import FIELDS
from walltime.logs import read_log

EVERY = 1
OPERATOR = "daemon"
"""A user that there is everywhere, who has no other rights."""
HEADING = "JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes|JobName"
KINDS = {"E": 30, "F": 40, "G": 50}
"""Limits (minutes) of jobs that have always taken a few seconds, in the log that the side-car learns from."""


def history() -> str:
    """A job log in which jobs of root with these limits end soon."""
    lines, begin = [HEADING], int(time.time()) - 86_400
    for number in range(60):
        submit, limit = begin + number * 600, sorted(KINDS.values())[number % len(KINDS)]
        row = (number + 1, "root", "root", "main", "COMPLETED", submit, submit, submit + 5, submit + 25, 20, limit, 1, 1, "past")
        lines.append("|".join(map(str, row)))
    return "\n".join(lines) + "\n"


class Adjuster:
    """A side-car of its own process."""

    def __init__(self, lab: Lab, folder, *options: str, pause: str = ""):
        environment = lab.environment | {name: os.environ[name] for name in ("PYTHONPATH", "WALLTIME_CACHE") if name in os.environ}
        log, ledger = folder / "history.txt", folder / "ledger"
        ledger.mkdir(exist_ok=True)
        log.write_text(history())
        self.out = folder / "adjust.log"
        words = [f"--history={log}", f"--every={EVERY}", "--floor=1", "--share=1", "--predictor=tang13:key=request,statistic=max,window=1"]
        code = f"{pause}\nfrom walltime.cli.main import main\nmain()"
        with self.out.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "slurm", "adjust", *words, *([f"--ledger={ledger}"] if "--act" in options else []), *options],
                env=environment,
                stdout=out,
                stderr=out,
            )

    def says(self, text: str) -> bool:
        """Whether it has said this; fails if it has ended without."""
        said = text in self.out.read_text()
        assert said or self.process.poll() is None, self.out.read_text()[-2000:]
        return said

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture(scope="module")
def lab():
    def put_guard(lab: Lab) -> None:
        (lab.folder / "job_submit.lua").write_text(GUARD.replace("[0] = true", f"[0] = true, [{getpwnam(OPERATOR).pw_uid}] = true"))
        lab.run("sacctmgr", "-iQ", "add", "account", "bio")
        lab.run("sacctmgr", "-iQ", "add", "user", getuser(), "account=bio")
        lab.run("sacctmgr", "-iQ", "add", "user", OPERATOR, "account=bio", "adminlevel=operator")

    with started(settings={"JobSubmitPlugins": "lua"}, before=put_guard) as lab:
        yield lab


@pytest.fixture
def adjusters(lab):
    running: list[Adjuster] = []
    yield running
    for one in running:
        if one.process.poll() is None:
            one.end()
    for name in (*KINDS, "A", "B", NAME):
        lab.run("scancel", f"--name={name}")
    wait_until("the end of all jobs", lambda: not lab.run("squeue", "--noheader"), 60)


def shown(lab: Lab, number: int, name: str) -> str:
    """A field of scontrol show job."""
    words = lab.run("scontrol", "show", "job", str(number)).split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))


def settable(lab: Lab) -> list[str]:
    """What scontrol shows of all jobs, without what Slurm itself goes on writing."""
    own = ("RunTime=", "StartTime=", "EndTime=", "AccrueTime=", "LastSchedEval=", "JobState=", "Reason=", "SchedNodeList=", "Deadline=")
    own += ("EligibleTime=", "NodeList=", "NumNodes=", "BatchHost=", "PreemptEligibleTime=", "NumCPUs=", "TRES=", "Scheduler=")
    return [word for word in lab.run("scontrol", "show", "job").split() if not word.startswith(own)]


def block(lab: Lab) -> int:
    """A on three nodes of four for three minutes at most, and B, which heads the queue for all four; returns B."""
    a = lab.submit("-JA", "-t3", "-N3", "--exclusive", wrap="sleep 100")
    wait_until("A", lambda: shown(lab, a, "JobState") == "RUNNING", 60)
    return lab.submit("-JB", "-t1", "-N4", "--exclusive", wrap="sleep 1")


def start_tested(lab: Lab, folder, adjusters, **options) -> Adjuster:
    one = Adjuster(lab, folder, "--act", **options)
    adjusters.append(one)
    wait_until("the self-test", lambda: one.says("self-test: passed"), 90)
    return one


@pytest.mark.slurm
def test_a_dry_run_changes_nothing(lab, tmp_path, adjusters):
    block(lab)
    e = lab.submit("-JE", f"-t{KINDS['E']}", "-n1", wrap="sleep 1")
    before = settable(lab)
    one = Adjuster(lab, tmp_path, "--once")
    adjusters.append(one)
    assert one.process.wait(60) == 0, one.out.read_text()
    assert f"job {e}: TimeMin 1 minutes" in one.out.read_text()
    assert "give-back (dry run)" in one.out.read_text()
    assert settable(lab) == before


@pytest.mark.slurm
def test_an_adjusted_job_is_backfilled_and_has_its_limit_back(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    b = block(lab)
    e = lab.submit("-JE", f"-t{KINDS['E']}", "-n1", wrap="sleep 85")  # longer than its TimeMin of a minute
    wait_until("E", lambda: shown(lab, e, "JobState") == "RUNNING", 60)
    assert shown(lab, b, "JobState") == "PENDING"
    wait_until("the limit of E", lambda: "its limit" in one.out.read_text(), 30)
    # backfill can start E before the side-car has seen it wait with its TimeMin: then nobody knows whether its user had changed the limit
    seen = "TimeMin is seen" in one.out.read_text()
    assert shown(lab, e, "TimeLimit") == ("00:30:00" if seen else "1-00:00:00"), one.out.read_text()
    wait_until("the end of E", lambda: shown(lab, e, "JobState") not in ("RUNNING", "COMPLETING"), 120)
    assert shown(lab, e, "JobState") == "COMPLETED"
    log = tmp_path / "sacct.txt"
    words = ("sacct", "--allusers", "--allocations", "--duplicates", "--parsable2", "--noconvert", "--starttime=now-1hour")

    def accounted() -> bool:
        log.write_text(lab.run(*words, f"--format={FIELDS},JobName"))
        return any(line.startswith(f"{e}|") and "|COMPLETED|" in line for line in log.read_text().splitlines())

    lab.wait_for_jobs(90)  # also B, which is in no log of ended jobs before
    wait_until("the accounting of E", accounted, 60)
    found = what_happened(read_facts_of(tmp_path / "ledger"), read_log(log, time_zone="UTC").to_workload(procs=16))
    run = next(run for run in found.runs if run.key == str(e))
    assert (run.time_min, run.limit, run.backfilled, run.outlived, run.killed_early) == (60, 1800, True, True, False)
    assert run.short
    assert run.left is not None
    assert 0 < run.left <= 60
    assert run.ahead_of == 1  # B
    assert found.killed == []


@pytest.mark.slurm
def test_a_changed_limit_takes_time_min_away(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    block(lab)
    f = lab.submit("-JF", f"-t{KINDS['F']}", "-N2", "--exclusive", wrap="sleep 1")  # has no room beside A
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)
    lab.run("scontrol", "update", f"JobId={f}", "TimeLimit=77")
    wait_until("the limit", lambda: shown(lab, f, "TimeLimit") == "01:17:00", 10)
    assert shown(lab, f, "TimeMin") == "N/A"
    one.end()
    assert one.process.returncode == 0


@pytest.mark.slurm
def test_an_orderly_end_takes_everything_back(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    block(lab)
    f = lab.submit("-JF", f"-t{KINDS['F']}", "-N2", "--exclusive", wrap="sleep 1")
    wait_until("TimeMin", lambda: shown(lab, f, "TimeMin") == "00:01:00", 60)
    one.end()
    assert shown(lab, f, "TimeMin") == "N/A"


BETWEEN_INTENT_AND_EFFECT = """
import os, signal
from walltime.adjust.commands import Slurm
usual = Slurm.set_time_min
def killed(self, key, minutes):
    if "walltime-self-test" in self.jobs_named(key):
        return usual(self, key, minutes)
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
Slurm.jobs_named = lambda self, key: self._ask("squeue", "-h", "-j", key, "-o%j")
Slurm.set_time_min = killed
"""


@pytest.mark.slurm
@pytest.mark.parametrize("before", ["pass", "usual(self, key, minutes)"], ids=["before the change", "after the change"])
def test_a_killed_sidecar_gives_back_when_it_is_started_again(lab, tmp_path, adjusters, before):
    one = start_tested(lab, tmp_path, adjusters, pause=BETWEEN_INTENT_AND_EFFECT.format(before=before))
    block(lab)
    g = lab.submit("-JG", f"-t{KINDS['G']}", "-n1", wrap="sleep 70")
    assert one.process.wait(60) == -signal.SIGKILL
    if before != "pass":
        wait_until("G, shortened", lambda: shown(lab, g, "TimeLimit") == "00:01:00", 30)
    adjusters.append(Adjuster(lab, tmp_path, "--act"))
    wait_until("the limit of G", lambda: shown(lab, g, "TimeLimit") == "00:50:00" or shown(lab, g, "TimeLimit") == "1-00:00:00", 45)
    if before != "pass":
        assert shown(lab, g, "TimeLimit") == "1-00:00:00"  # nobody knows whether its user had changed it: the partition's
        wait_until("the end of G", lambda: shown(lab, g, "JobState") not in ("RUNNING", "COMPLETING"), 120)
        assert shown(lab, g, "JobState") == "COMPLETED"


@pytest.mark.slurm
def test_an_operator_has_enough_rights(lab, tmp_path, adjusters):
    def runner(words, timeout):
        as_operator = ["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", *words]
        done = subprocess.run(as_operator, env=lab.environment, cwd="/tmp", capture_output=True, text=True)
        return Answer(done.returncode, done.stdout, done.stderr)

    slurm = Slurm(runner)
    waits = lab.submit("-JE", "-t30", "-H", wrap="true")
    runs = lab.submit("-JF", "-t30", wrap="sleep 20")
    wait_until("F", lambda: shown(lab, runs, "JobState") == "RUNNING", 60)
    slurm.set_time_min(str(waits), 5)
    slurm.set_limit(str(runs), 40)
    assert (shown(lab, waits, "TimeMin"), shown(lab, runs, "TimeLimit")) == ("00:05:00", "00:40:00")
    assert slurm.admin_level(OPERATOR) == "Operator"
    associations, qos = slurm.run_minute_limits()
    assert "bio|root||" in associations.splitlines()
    assert qos
    assert slurm.facts().longest(["main"]) == 1440
    assert {job.name for job in slurm.queue(1)} >= {"E", "F"}


@pytest.mark.slurm
def test_two_at_once_are_refused(lab, tmp_path, adjusters):
    adjusters.append(Adjuster(lab, tmp_path, "--act"))
    wait_until("the first one", lambda: adjusters[0].says("give-back"), 60)
    second = Adjuster(lab, tmp_path, "--act")
    assert second.process.wait(60) == 2
    assert "another side-car uses this ledger" in second.out.read_text()
