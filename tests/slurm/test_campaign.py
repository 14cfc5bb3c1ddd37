"""A campaign whose workers are jobs of a real Slurm: the same tables as by a thread, also when jobs are cancelled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.campaign.plans import TIMEOUT, files, many_cells, tables, wait_for_files
from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from walltime.campaign import Threads, read_plan, run_campaign

pytest.importorskip("dask_jobqueue")

SEEDS = 100
WORKERS = "slurm:jobs=2,cores=1,memory=1GB,walltime=10"


@pytest.fixture(scope="module")
def lab():
    with started() as lab:
        yield lab


def start(lab: Lab, plan, workers: str) -> subprocess.Popen[str]:
    """The campaign's command, beside this cluster."""
    environment = lab.environment | {name: os.environ[name] for name in ("PYTHONPATH", "WALLTIME_CACHE") if name in os.environ}
    words = [sys.executable, "-m", "walltime.cli.main", "campaign", "run", str(plan), "--dask", workers]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def running(lab: Lab) -> list[str]:
    """The numbers of the workers' jobs."""
    return lab.run("squeue", "--noheader", "--name=walltime-campaign", "--states=RUNNING", "--format=%i").split()


def test_workers_as_jobs_that_are_cancelled(lab, tmp_path):
    plan, by_threads = many_cells(tmp_path / "slurm", SEEDS), many_cells(tmp_path / "threads", SEEDS)
    process = start(lab, plan, WORKERS)
    store = plan.with_name("plan.results")
    assert wait_for_files(process, store, 5)
    wait_until("both workers", lambda: len(running(lab)) == 2, 60)
    begun = running(lab)
    lab.run("scancel", begun[0])
    assert wait_for_files(process, store, files(store) + 5)
    lab.run("scancel", "--name=walltime-campaign")  # now nobody is left
    wait_until("other jobs", lambda: bool(set(running(lab)) - set(begun)), 90)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    assert f"{20 * SEEDS:,} cells run" in out
    wait_until("the end of the jobs", lambda: not lab.run("squeue", "--noheader"), 60)
    assert {path.suffix for path in (store / "workers").iterdir()} == {".out", ".err"}
    run_campaign(read_plan(by_threads), executor=Threads(1))
    assert tables(store) == tables(by_threads.with_name("plan.results"))


def test_what_slurm_refuses_is_said_in_one_line(lab, tmp_path):
    process = start(lab, many_cells(tmp_path, 1), f"{WORKERS},partition=nowhere")
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (2, "")
    assert "Slurm rejects the jobs" in err.splitlines()[-1]
    assert "nvalid partition" in err
    assert not lab.run("squeue", "--noheader")
