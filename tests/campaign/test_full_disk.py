"""A disk that fills up in the middle of a campaign: one clear line, nothing lost, and the run goes on when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.plans import command, dask_cluster, ended, many_cells, run_plan, tables
from tests.cli import call
from walltime.campaign import Store

SEEDS = 40
ROOM = "64m"


def mount(*arguments: object) -> str:
    """Call mount; what it has to complain of."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip() or "it failed")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Path:
    """The store of a run on a disk with room."""
    plan = many_cells(tmp_path_factory.mktemp("room"), SEEDS)
    run_plan(plan)
    return plan.with_name("plan.results")


@pytest.fixture
def disk(tmp_path, expected) -> Iterator[Path]:
    """A file system with room for half of the results."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root")
    folder = tmp_path / "disk"
    folder.mkdir()
    pages = sum(-(-file.stat().st_size // 4096) for file in expected.glob("*/*.parquet"))
    problem = mount("-t", "tmpfs", "-o", f"size={pages * 4096 // 2}", "tmpfs", folder)
    if problem:
        pytest.skip(f"no small file system can be mounted here: {problem}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def assert_says_that_the_disk_is_full(status: int, out: str, err: str, store: Path) -> None:
    assert status in (1, 2)
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"walltime: {store}")
    assert "no space left on device" in err
    assert "free space" in err
    assert "run the plan again" in err


@pytest.mark.nightly
def test_full_disk__loses_nothing_and_the_run_goes_on(expected, capsys, disk):
    plan = many_cells(disk, SEEDS)
    store = plan.with_name("plan.results")
    for _ in range(2):  # the second run has no room from the start
        assert_says_that_the_disk_is_full(*ended(command("campaign", "run", plan)), store)
        assert list(store.rglob("*.part")) == []
        found, whole = Store(store).table(), Store(expected).table()
        assert 0 < len(found) < len(whole)
        assert found.equals(whole.join(found.select("cell"), on="cell", how="semi").sort("cell"))
        status, out, err = call(capsys, "campaign", "status", plan)
        assert (status, err) == (0, "")
        assert f"{len(found):,} of {len(whole):,} cells are done" in out
    assert mount("-o", f"remount,size={ROOM}", disk) == ""
    run_plan(plan)
    assert tables(store) == tables(expected)


@pytest.mark.nightly
def test_full_disk__when_dask_workers_write(expected, disk):
    plan = many_cells(disk, SEEDS)
    store = plan.with_name("plan.results")
    with dask_cluster(2) as cluster:
        address = cluster.scheduler_address
        assert_says_that_the_disk_is_full(*ended(command("campaign", "run", plan, "--dask", address)), store)
        found, whole = Store(store).table(), Store(expected).table()
        assert 0 < len(found) < len(whole)
        assert found.equals(whole.join(found.select("cell"), on="cell", how="semi").sort("cell"))
        assert mount("-o", f"remount,size={ROOM}", disk) == ""
        run_plan(plan, "--dask", address)
    assert list(store.rglob("*.part")) == []
    assert tables(store) == tables(expected)


@pytest.mark.nightly
def test_no_room_for_the_store__is_said_at_once(expected, disk):
    """Not even its folder, or the list of what it holds, can be made."""
    plan = many_cells(disk, SEEDS)
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
    assert_says_that_the_disk_is_full(*ended(command("campaign", "run", plan)), plan.with_name("plan.results"))
    (disk / "filler").unlink()
    assert mount("-o", f"remount,size={ROOM}", disk) == ""
    run_plan(plan)
    assert tables(plan.with_name("plan.results")) == tables(expected)
