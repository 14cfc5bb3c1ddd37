"""Four jobs on a real Slurm that show its backfilling, order by order, against the simulation of its own log and description."""

from __future__ import annotations

import pytest

import walltime as wt
from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from tests.slurm.replay import save
from walltime.slurm import read_cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What Slurm said after A ran on three nodes of four, B headed the queue for all of them, and D and C came for one processor.

    A asks for five minutes and takes less; C's limit ends before A's, D's long after it.
    """
    folder = tmp_path_factory.mktemp("backfill")
    with started() as lab:
        submit(lab, "A", "-t5", "-N3", "--exclusive", seconds=30)
        wait_until("A", lambda: lab.run("squeue", "-h", "-nA", "-o%T").strip() == "RUNNING", 60)
        submit(lab, "B", "-t1", "-N4", "--exclusive", seconds=5)
        submit(lab, "D", "-t30", "-n1", seconds=5)
        submit(lab, "C", "-t2", "-n1", seconds=10)
        lab.wait_for_jobs(240)
        save(lab, folder)
    return folder


def submit(lab: Lab, name: str, *options: str, seconds: int) -> None:
    """Submit a job; in the next second comes the next one."""
    lab.submit("-J", name, *options, wrap=f"sleep {seconds}")


def starts(jobs, start):
    """Starts by job."""
    names = [jobs.origin.names["executable"][k - 1] for k in jobs.columns["executable"].tolist()]
    return dict(zip(names, start.tolist(), strict=True))


def test_backfilling_is_that_of_a_real_slurm(folder):
    jobs = wt.read(folder / "jobs.txt.gz", time_zone="UTC", procs=16)
    real = starts(jobs, jobs.submit + jobs.columns["wait"])
    machine = read_cluster(folder / "cluster.txt").machine
    simulated = starts(jobs, wt.simulate(jobs, "slurm", machine=machine).start)
    for start in (real, simulated):
        assert sorted(start, key=start.__getitem__) == ["A", "C", "B", "D"]
    assert all(abs(real[name] - simulated[name]) <= 10 for name in real)
    by_name = starts(jobs, jobs.columns["sched_backfill"])
    assert by_name["C"] == 1


def test_without_backfilling_the_order_is_another_one(folder):
    jobs = wt.read(folder / "jobs.txt.gz", time_zone="UTC", procs=16)
    machine = read_cluster(folder / "cluster.txt").machine
    simulated = starts(jobs, wt.simulate(jobs, "slurm:scheduler_type=builtin", machine=machine).start)
    assert sorted(simulated, key=simulated.__getitem__)[:2] == ["A", "B"]
