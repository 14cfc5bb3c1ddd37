"""Whatever fails around the side-car, no job of a real Slurm ends before its user's limit: 22.05, and 26.05 with soft limits.

Jobs of two kinds are there in each test: E, which backfill can start by its TimeMin at once, and F, which has no room and waits.
What was seen is in docs/validation/adjust-failures.md.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.slurm.beside import (
    SPAN,
    Adjuster,
    Faults,
    block,
    cluster,
    end_all,
    is_soft,
    is_whole,
    runs,
    shown,
    small,
    start_tested,
    wait_whole,
    wide,
)
from tests.slurm.lab import Lab, wait_until


@pytest.fixture(scope="module", params=["22.05", "26.05"])
def lab(request):
    with cluster(request.param) as lab:
        block(lab)
        yield lab


@pytest.fixture(scope="module")
def tested(lab, tmp_path_factory):
    """A folder with a ledger by which this slurmctld has passed its self-test."""
    folder = tmp_path_factory.mktemp("tested")
    start_tested(lab, folder, adjusters := [])
    end_all(lab, adjusters)
    return folder


def wait_waiting(lab: Lab, number: int, time_min: str = "00:01:00", timeout: float = 30) -> None:
    """Wait until F has this TimeMin; its limit is its user's."""
    wait_until(f"TimeMin {time_min} of F", lambda: shown(lab, number, "TimeMin") == time_min, timeout)
    assert shown(lab, number, "TimeLimit") == SPAN["F"]


def end_whole(lab: Lab, one: Adjuster, e: int, f: int) -> None:
    """End the side-car in order: nothing has a TimeMin then, and E runs with its limit."""
    one.end()
    assert one.process.returncode == 0
    assert (shown(lab, f, "TimeMin"), shown(lab, f, "TimeLimit")) == ("N/A", SPAN["F"])
    assert is_whole(lab, e, "E")
    assert runs(lab, e) or shown(lab, e, "TimeMin") == "N/A"


KILL = """
import os, signal
from walltime.slurm import client
from walltime.slurm.sidecar import ledger
own = set()
def killed(owner, name, when, chosen):
    usual = getattr(owner, name)
    def patched(self, *words):
        hit = chosen(*words)
        if hit and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = usual(self, *words)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(owner, name, patched)
killed({call}, "{when}", {chosen})
"""
WRITE, SET, RAISE = 'ledger.Ledger, "write"', 'client.Client, "set_time_min"', 'client.Client, "set_limit"'
STEPS = {
    "the intent is written": (WRITE, 'lambda entry, *_: entry.state == "intent"'),
    "TimeMin is set": (SET, "lambda key, minutes: minutes > 0"),
    "its success is written": (WRITE, 'lambda entry, now, detail="": bool(detail)'),
    "it is written that TimeMin was seen": (WRITE, 'lambda entry, *_: entry.state == "set"'),
    "it is written that the job runs": (WRITE, 'lambda entry, *_: entry.state == "started"'),
}
RAISES = {
    "it is written that the job is short": (WRITE, 'lambda entry, *_: entry.state == "short"'),
    "its limit is raised": (RAISE, "lambda key, minutes: True"),
}
BACK = {
    "TimeMin is taken back": (SET, "lambda key, minutes: minutes == 0"),
    "it is written that TimeMin is gone": (WRITE, 'lambda entry, *_: entry.state == "clear"'),
}


MOMENTS = [("before", step) for step in (*STEPS, *RAISES, *BACK)]
MOMENTS += [("after", step) for step in ("it is written that the job runs", "it is written that TimeMin is gone")]


@pytest.mark.mostly_short("before-its success is written", "before-TimeMin is taken back")
@pytest.mark.parametrize(("when", "step"), MOMENTS)
def test_a_killed_sidecar(lab, tested, adjusters, when, step):
    if step in RAISES and is_soft(lab):
        pytest.skip("nothing is raised under soft limits")
    call, chosen = (STEPS | RAISES | BACK)[step]
    stop = tested / "stop"
    e, f = small(lab, "E"), wide(lab, "F")
    begin = time.monotonic()
    one = Adjuster(lab, tested, "--act", f"--stop-file={stop}", pause=KILL.format(call=call, when=when, chosen=chosen))
    adjusters.append(one)
    if step in BACK:
        wait_waiting(lab, f)
        stop.touch()
    assert one.process.wait(60) == -signal.SIGKILL
    stop.unlink(missing_ok=True)
    time.sleep(0.5 if is_soft(lab) else 2.5)  # of which backfill makes what it can
    if is_soft(lab):
        assert is_whole(lab, e, "E")
    assert shown(lab, f, "TimeLimit") == SPAN["F"]
    again = Adjuster(lab, tested, "--act")
    adjusters.append(again)
    wait_until("a round", lambda: again.says("adjusted"), 30)
    wait_whole(lab, e, "E")
    assert time.monotonic() - begin < 60  # its TimeMin
    end_whole(lab, again, e, f)


@pytest.mark.mostly_short("late")
@pytest.mark.parametrize("kind", ["fails", "hangs", "late", "lost"])
def test_scontrol_that(lab, tested, tmp_path, adjusters, kind):
    faults = Faults(lab, tmp_path)
    one = start_tested(lab, tested, adjusters, "--timeout=1", commands=faults.folder)
    first = wide(lab, "F")
    wait_waiting(lab, first)
    faults.be(kind)
    e, f = small(lab, "E"), wide(lab, "F")
    time.sleep(6)
    assert shown(lab, first, "TimeLimit") == SPAN["F"]
    assert one.says({"fails": "connect failure", "lost": "Zero Bytes"}.get(kind, "no answer within 1 s"))
    faults.be("")
    time.sleep(4)  # until the last late one is made
    wait_whole(lab, e, "E", 30)
    assert one.process.poll() is None
    end_whole(lab, one, e, f)
    assert shown(lab, first, "TimeMin") == "N/A"


NO_RAISE = """
from walltime.slurm import client
usual = client.Client.output
def output(self, *words):
    if words[:2] == ("scontrol", "update") and words[3].startswith("TimeLimit=") and __import__("pathlib").Path("{path}").exists():
        raise client.SlurmError("Unable to contact slurm controller (connect failure)")
    return usual(self, *words)
client.Client.output = output
"""


@pytest.mark.mostly_short("killed")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_slurmctld_restarts_while_jobs_are_short(lab, tested, tmp_path, adjusters, how):
    cannot = tmp_path / "cannot"
    one = start_tested(lab, tested, adjusters, pause=NO_RAISE.format(path=cannot))
    cannot.touch()
    f, e = wide(lab, "F"), small(lab, "E")
    wait_waiting(lab, f)
    wait_until("E", lambda: runs(lab, e), 30)
    begin = time.monotonic()
    if not is_soft(lab):
        wait_until("a failure", lambda: one.says("could not be raised"), 20)
        assert not is_whole(lab, e, "E")
    time.sleep(6)  # slurmctld writes its state every five seconds
    lab.stop_controller(how)
    cannot.unlink()
    time.sleep(3)
    lab.start_controller()
    wait_whole(lab, e, "E", 30)
    assert time.monotonic() - begin < 60
    assert one.process.poll() is None
    assert shown(lab, f, "TimeLimit") == SPAN["F"]
    wait_waiting(lab, f, timeout=90)  # under a new slurmctld only after a new self-test, where limits are given back
    end_whole(lab, one, e, f)


CLOCK = """
import pathlib, time
from walltime.slurm.sidecar import host
path = pathlib.Path("{path}")
host.SystemClock.time = lambda self: time.time() + (float(path.read_text()) if path.exists() else 0)
"""


@pytest.mark.mostly_short("-86400")
@pytest.mark.parametrize("seconds", [-86_400, 3_600, 400_000])
def test_a_clock_that_jumps(lab, tested, tmp_path, adjusters, seconds):
    path = tmp_path / "offset"
    one = start_tested(lab, tested, adjusters, pause=CLOCK.format(path=path))
    e, f = small(lab, "E"), wide(lab, "F")
    wait_until("E", lambda: runs(lab, e), 30)
    (tmp_path / "new").write_text(str(seconds))
    (tmp_path / "new").rename(path)
    wait_until("the jump", lambda: one.says("the system clock was changed"), 20)
    wait_whole(lab, e, "E")
    wrong = small(lab, "G"), wide(lab, "F")  # are left alone, or adjusted
    time.sleep(4)
    path.unlink()
    wait_until("the jump back", lambda: one.told.count("the system clock was changed") == 2, 20)
    wait_until("TimeMin", lambda: shown(lab, wrong[1], "TimeMin") == "00:01:00", 20)
    wait_until("G", lambda: runs(lab, wrong[0]), 20)
    wait_whole(lab, wrong[0], "G")
    assert shown(lab, wrong[1], "TimeLimit") == SPAN["F"]
    end_whole(lab, one, e, f)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_under_the_ledger(lab, tmp_path, adjusters):
    disk = tmp_path / "ledger"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(disk)], check=True)
    try:
        one = start_tested(lab, tmp_path, adjusters)
        wait_until("the self-test", lambda: is_soft(lab) or one.says("self-test: passed"), 60)
        first = wide(lab, "F")
        wait_waiting(lab, first)
        e = small(lab, "E")
        wait_until("E", lambda: runs(lab, e), 30)
        fill(disk / "full")
        second, f = small(lab, "G"), wide(lab, "F")
        wait_until("the alarm", lambda: one.says("ALARM"), 30)
        wait_waiting(lab, first, "N/A")
        wait_whole(lab, e, "E")
        time.sleep(3)
        assert (shown(lab, f, "TimeMin"), shown(lab, f, "TimeLimit")) == ("N/A", SPAN["F"])
        if runs(lab, second):
            wait_whole(lab, second, "G")
        (disk / "full").unlink()
        wait_until("the ledger", lambda: one.says("can be written again"), 30)
        wait_waiting(lab, f, timeout=90)
        end_whole(lab, one, e, f)
        assert shown(lab, first, "TimeMin") == "N/A"
    finally:
        end_all(lab, adjusters)
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_job_that_is_put_back_into_the_queue(lab, tested, adjusters):
    one = start_tested(lab, tested, adjusters)
    e = small(lab, "E", 600, "--requeue")
    f = wide(lab, "F")
    wait_until("E", lambda: runs(lab, e), 30)
    wait_whole(lab, e, "E")
    lab.run("scontrol", "requeuehold", str(e))
    wait_until("E waits", lambda: shown(lab, e, "JobState") == "PENDING", 60)
    assert is_whole(lab, e, "E")
    lab.run("scontrol", "release", str(e))
    lab.run("scontrol", "update", f"JobId={e}", "StartTime=now")
    wait_until("E again", lambda: runs(lab, e), 60)
    wait_whole(lab, e, "E")
    end_whole(lab, one, e, f)
