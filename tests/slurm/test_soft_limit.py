"""Soft limits that are switched off under the side-car's feet: Slurm 26.05 would then shorten what waits with a TimeMin."""

from __future__ import annotations

import signal
import time

import pytest

from tests.slurm.beside import (
    LONGEST,
    SOFT,
    SPAN,
    Adjuster,
    Faults,
    block,
    cancel,
    cluster,
    end_all,
    is_whole,
    runs,
    shown,
    small,
    start_tested,
    wide,
)
from tests.slurm.lab import SETTINGS, Lab, wait_until


@pytest.fixture(scope="module")
def lab():
    with cluster("26.05") as lab:
        block(lab)
        yield lab


@pytest.fixture(autouse=True)
def soft_again(lab, adjusters):
    yield
    end_all(lab, adjusters)
    cancel(lab, "X")
    lab.reconfigure(**SOFT)


def drop(lab: Lab) -> None:
    """Take the option away."""
    lab.reconfigure(SchedulerParameters=SETTINGS["SchedulerParameters"])


def fill_last_node(lab: Lab) -> int:
    """X on all processors of the node that A leaves free."""
    x = lab.submit("-JX", "-t1", "-n16", wrap="sleep 50")
    wait_until("X", lambda: runs(lab, x), 20)
    return x


def wait_adjusted(lab: Lab, jobs: list[int]) -> None:
    wait_until("TimeMin", lambda: all(shown(lab, job, "TimeMin") == "00:01:00" for job in jobs), 30)


def test_everything_is_taken_back_before_anything_else(lab, tmp_path, adjusters):
    faults = Faults(lab, tmp_path)
    one = start_tested(lab, tmp_path, adjusters, commands=faults.folder)
    running = small(lab, "E")
    wait_until("E", lambda: runs(lab, running), 30)
    waiting = [wide(lab, kind) for kind in "EFG"]
    wait_adjusted(lab, waiting)
    before = len(faults.calls())
    drop(lab)
    new = wide(lab, "F")
    wait_until("all of them", lambda: one.says("time_min_as_soft_limit was removed") and one.told.count("removed TimeMin") >= 3, 20)
    changes = [call for call in faults.calls()[before:] if call.startswith("update")]
    assert sorted(changes[:3]) == sorted(f"update JobId={job} TimeMin=0" for job in waiting)
    assert [shown(lab, job, "TimeLimit") for job in (running, *waiting, new)] == [SPAN[kind] for kind in "EEFGF"]
    wait_until("give-back mode", lambda: one.says("give-back (self-test under way)"), 20)  # is said at the end of the round
    wait_until("give-back", lambda: one.says("self-test: passed"), 90)
    lab.reconfigure(**SOFT)
    wait_until("soft limits again", lambda: "soft limit:" in one.told.splitlines()[-1], 30)
    wait_adjusted(lab, [*waiting, new])
    one.end()
    assert [shown(lab, job, "TimeLimit") for job in (running, *waiting, new)] == [SPAN[kind] for kind in "EEFGF"]
    assert {shown(lab, job, "TimeMin") for job in (*waiting, new)} == {"N/A"}


def test_a_job_that_starts_at_that_moment_has_its_limit_back(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    fill_last_node(lab)
    waiting = [small(lab, kind) for kind in "EFG"]
    wait_adjusted(lab, waiting)
    drop(lab)
    begin = time.monotonic()
    cancel(lab, "X")
    wait_until("what was said", lambda: one.says("time_min_as_soft_limit was removed"), 20)
    wait_until("whole limits", lambda: all(limit_is_whole(lab, *job) for job in zip(waiting, "EFG", strict=True)), 30)
    time.sleep(5)
    assert all(limit_is_whole(lab, *job) for job in zip(waiting, "EFG", strict=True))
    assert time.monotonic() - begin < 60


def test_a_sidecar_that_was_dead_then_repairs_what_was_shortened(lab, tmp_path, adjusters):
    one = start_tested(lab, tmp_path, adjusters)
    fill_last_node(lab)
    f, e = wide(lab, "F"), small(lab, "E")
    wait_adjusted(lab, [e, f])
    one.end(signal.SIGKILL)
    drop(lab)
    begin = time.monotonic()
    cancel(lab, "X")
    wait_until("E", lambda: runs(lab, e), 20)
    assert not is_whole(lab, e, "E")
    again = Adjuster(lab, tmp_path, "--act")
    adjusters.append(again)
    wait_until("the limit of E", lambda: limit_is_whole(lab, e, "E"), 30)
    assert time.monotonic() - begin < 60
    wait_until("F", lambda: shown(lab, f, "TimeMin") == "N/A", 20)
    assert shown(lab, f, "TimeLimit") == SPAN["F"]


def limit_is_whole(lab: Lab, number: int, kind: str) -> bool:
    """Whether its limit is its user's, or the longest that he may have chosen meanwhile."""
    return shown(lab, number, "TimeLimit") in (SPAN[kind], LONGEST)
