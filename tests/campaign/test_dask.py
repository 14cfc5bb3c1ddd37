"""A Dask cluster and threads on this machine give the same tables, also when workers die."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.campaign.plans import command, dask_cluster, ended, files, many_cells, run_plan, tables, wait_for_files
from tests.cli import call, one_line
from tests.errors import raises
from tests.profiles import PROFILE
from walltime.campaign import Dask, Progress, Store, Threads, executors, read_plan, run_campaign
from walltime.errors import OutputError, PolicyError

pytest.importorskip("distributed")

SEEDS = 100 if PROFILE == "nightly" else 20


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> tuple[bytes, bytes]:
    """The tables of a run by one thread."""
    plan = many_cells(tmp_path_factory.mktemp("threads"), SEEDS)
    run_campaign(read_plan(plan), executor=Threads(1))
    return tables(plan.with_name("plan.results"))


@pytest.fixture(scope="module")
def cluster():
    with dask_cluster(2) as found:
        yield found


@pytest.fixture
def plan(tmp_path) -> Path:
    return many_cells(tmp_path, SEEDS)


def results(plan: Path) -> tuple[bytes, bytes]:
    return tables(plan.with_name("plan.results"))


@pytest.mark.nightly
def test_threads__give_the_same_however_many(expected, plan):
    told: list[tuple[int, int]] = []
    done = run_campaign(read_plan(plan), executor=Threads(2), progress=lambda state: told.append((state.done, state.cells)))
    assert (done.cells, done.run, done.jobs) == (20 * SEEDS, 20 * SEEDS, 20 * SEEDS * 60)
    assert told[0] == (0, 20 * SEEDS)
    assert told[-1] == (20 * SEEDS, 20 * SEEDS)
    assert told == sorted(told)
    assert results(plan) == expected


def test_dask__gives_what_threads_give(expected, plan, cluster):
    told: list[Progress] = []
    executor = Dask(cluster)
    try:
        done = run_campaign(read_plan(plan), executor=executor, progress=told.append)
    finally:
        executor.close()
    assert (done.cells, done.run, done.jobs) == (20 * SEEDS, 20 * SEEDS, 20 * SEEDS * 60)
    assert told[-1].done == 20 * SEEDS
    assert results(plan) == expected


@pytest.mark.nightly
def test_dask__with_one_worker_and_by_the_command(expected, plan):
    with dask_cluster(1) as cluster:
        run_plan(plan, "--dask", cluster.scheduler_address)
    assert results(plan) == expected


@pytest.mark.nightly
def test_dask__goes_on_where_threads_stopped(expected, plan, cluster):
    process = command("campaign", "run", plan)
    assert wait_for_files(process, plan.with_name("plan.results"), 5)
    process.kill()
    process.communicate()
    before = files(plan.with_name("plan.results"))
    run_plan(plan, "--dask", cluster.scheduler_address)
    assert files(plan.with_name("plan.results")) > before
    assert results(plan) == expected


@pytest.mark.nightly
def test_workers_that_are_killed__change_nothing(expected, plan):
    store = plan.with_name("plan.results")
    with dask_cluster(2) as cluster:
        process = command("campaign", "run", plan, "--dask", cluster.scheduler_address)
        killed = []
        for number in range(4):
            assert wait_for_files(process, store, 1 + 12 * number)
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid is not None]
            for pid in pids if number == 2 else pids[:1]:  # once all of them
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        status, _, err = ended(process)
    assert len(set(killed)) >= 4
    assert status == 0
    assert all(" - distributed." in line for line in err.splitlines())  # Dask's own word on the workers that died
    assert results(plan) == expected


@pytest.mark.nightly
def test_scheduler_that_goes_away__is_said_in_one_line_and_loses_nothing(expected, plan):
    store = plan.with_name("plan.results")
    with dask_cluster(2) as cluster:
        process = command("campaign", "run", plan, "--dask", cluster.scheduler_address)
        assert wait_for_files(process, store, 5)
    status, out, err = ended(process)
    assert (status, out) == (1, "")
    ours = [line for line in err.splitlines() if " - distributed." not in line]  # Dask says something of its own
    assert len(ours) == 1
    assert ours[0].startswith("walltime: the connection to the Dask scheduler was lost; finished results are kept")
    run_plan(plan)
    assert results(plan) == expected


@pytest.mark.nightly
def test_interrupt__reaches_a_run_on_dask(expected, plan, cluster):
    store = plan.with_name("plan.results")
    process = command("campaign", "run", plan, "--dask", cluster.scheduler_address)
    assert wait_for_files(process, store, 5)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (
        130,
        "",
        "walltime: interrupted; no file was left half-written; finished work is kept, and the same command continues from there\n",
    )
    run_plan(plan, "--dask", cluster.scheduler_address)
    assert results(plan) == expected


def test_error_of_a_cell__comes_back_in_one_line(tmp_path, cluster):
    plan = tmp_path / "plan.toml"
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 50\nhead = 60\n')
    status, out, err = ended(command("campaign", "run", plan, "--dask", cluster.scheduler_address))
    assert status == 1
    assert "1 cell failed: lublin99-50-128-0 has 50 jobs" in out
    assert "lublin99 (policy=easy" in out
    assert "1 cell failed" in err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nonsense", "abc://127.0.0.1:9", "tcp://127.0.0.1:many", ""])
def test_wrong_address__is_said_in_one_line(plan, address, capsys, monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT", 0.5)
    status, out, err = call(capsys, "campaign", "run", plan, "--dask", address)
    assert status == 2
    assert f"no Dask scheduler answers at {address!r}" in one_line(status, out, err)
    assert list(plan.parent.iterdir()) == [plan]


def test_without_dask__the_line_says_what_to_install(capsys, plan, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with raises(PolicyError, "missing_library", "'walltime[dask]'"):
        Dask("tcp://127.0.0.1:9")
    assert "Dask is not installed" in one_line(*call(capsys, "campaign", "run", plan, "--dask", "tcp://127.0.0.1:9"))


@pytest.mark.parametrize("address", ["slurm:jobs=0", "slurm:cores=many", "slurm:nodes=1", "slurm:partition="])
def test_wrong_words_for_slurm__are_said_in_one_line(golden, plan, address, capsys):
    status, out, err = call(capsys, "campaign", "run", plan, "--dask", address)
    assert status == 2
    golden("campaign", one_line(status, out, err))
    assert list(plan.parent.iterdir()) == [plan]


def test_without_dask_jobqueue__the_line_says_what_to_install(golden, capsys, plan, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask_jobqueue.slurm", None)
    golden("campaign", one_line(*call(capsys, "campaign", "run", plan, "--dask", "slurm:jobs=2")))


def test_threads__stop_when_one_of_them_cannot_write(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OutputError("the disk is full")

    plan = many_cells(tmp_path, SEEDS)
    before = threading.active_count()
    monkeypatch.setattr(Store, "write", fail)
    with pytest.raises(OutputError):
        run_campaign(read_plan(plan), executor=Threads(2))
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.05)
    assert threading.active_count() <= before
