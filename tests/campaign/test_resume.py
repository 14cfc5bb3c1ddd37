"""A campaign that is killed, at whatever moment and however often, goes on where it was and ends with the same tables."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from tests.campaign.plans import command, ended, files, many_cells, run_plan, tables, wait_for_files
from tests.cli import call
from tests.profiles import PROFILE, scaled

SEEDS = 500 if PROFILE == "nightly" else 10
CELLS = 20 * SEEDS
KILLS = scaled(5)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """The store of a run that nobody disturbed."""
    plan = many_cells(tmp_path_factory.mktemp("undisturbed"), SEEDS)
    run_plan(plan)
    return plan.with_name("plan.results")


def done(capsys, plan: Path) -> int:
    """How many cells are there, as the command tells."""
    status, out, err = call(capsys, "campaign", "status", plan, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["cells"], found["others"]) == (CELLS, 0)
    count: int = found["done"]
    return count


def test_kill__at_random_moments_and_go_on(undisturbed, capsys, tmp_path):
    """The moments are spread over the files of the run, so over the time that it takes, on a machine of any speed.

    A few come right after the start, while the store is looked through; the others a little after a file came into being, and
    so at any point of the tasks that follow.
    """
    plan = many_cells(tmp_path, SEEDS)
    store = plan.with_name("plan.results")
    moments = random.Random(42)
    of_all = files(undisturbed)
    kills, counts = 0, [0]
    for share in sorted(moments.uniform(0, 0.8) for _ in range(KILLS)):
        process = command("campaign", "run", plan)
        wait_for_files(process, store, round(share * of_all))
        time.sleep(moments.uniform(0, 0.1) if kills % 4 else moments.uniform(0, 2))
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        for table in (store / "cells").glob("*.parquet"):
            assert pl.read_parquet(table).width > 40  # whatever has its name is complete
        counts.append(done(capsys, plan))
    assert kills == KILLS
    assert counts == sorted(counts)  # nothing that was there is lost
    assert 0 < counts[-1] < CELLS
    run_plan(plan)
    assert done(capsys, plan) == CELLS
    assert tables(store) == tables(undisturbed)
    assert list(store.rglob("*.part")) == []


@pytest.mark.nightly
def test_interrupt__says_so_in_one_line_and_can_be_resumed(undisturbed, capsys, tmp_path):
    plan = many_cells(tmp_path, SEEDS)
    store = plan.with_name("plan.results")
    process = command("campaign", "run", plan)
    assert wait_for_files(process, store, files(undisturbed) // 3)
    process.send_signal(signal.SIGINT)
    status, out, err = ended(process)
    assert (status, out) == (130, "")
    assert err == "walltime: interrupted; no file was left half-written; finished work is kept, and the same command continues from there\n"
    assert list(store.rglob("*.part")) == []
    before = {file: file.read_bytes() for file in store.glob("*/*.parquet")}
    assert 0 < done(capsys, plan) < CELLS
    run_plan(plan)
    assert {file: file.read_bytes() for file in before} == before
    assert tables(store) == tables(undisturbed)


def test_run__again_when_all_is_there_changes_nothing(undisturbed):
    plan = undisturbed.with_name("plan.toml")
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in undisturbed.rglob("*.*") if file.name != ".lock"}
    status, out, err = ended(command("campaign", "run", plan))
    assert (status, err) == (0, "")
    assert f"0 cells run, {CELLS:,} already done" in out
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in before} == before
