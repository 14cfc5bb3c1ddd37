"""A small form of the comparison with a real Slurm: it runs through, and the simulation is close, unless a parameter is wrong."""

from __future__ import annotations

import json

from tests.slurm.conftest import started
from tests.slurm.replay import miniature
from validation import real_slurm

SMALL = ("--only", "whole", "--repetitions", "1", "--jobs", "50", "--span", "30", "--load", "1.4", "--seed", "3", "--nodes", "8")
"""Jobs some of which need all nodes, so that it matters what is tried behind them."""


def test_a_small_workload_is_simulated_as_it_was_run(tmp_path, capsys):
    with started(nodes=1):
        pass  # a cluster can be started: else the test is skipped
    assert real_slurm.main([str(tmp_path / "runs"), *SMALL, "--out", str(tmp_path / "slurm.json")]) == 0
    assert "whole: 1 runs of 50 jobs" in capsys.readouterr().out
    result = json.loads((tmp_path / "slurm.json").read_text())["whole"]
    assert (result["jobs"], result["nodes"]) == (50, 8)
    [real] = result["classes"]["all"]["real"]
    [[near, _, _]] = result["starts"]["slurm"]
    [[wrong, _, _]] = result["starts"]["slurm:bf_max_job_test=1"]
    [simulated], [wrongly] = (result["classes"]["all"]["simulated"][way] for way in ("slurm", "slurm:bf_max_job_test=1"))
    # by simulation 11 s and 32 s; the real one has a second more between two jobs, and is not always the same
    assert near > 0.6 > wrong
    assert abs(simulated - real) < 8 < abs(wrongly - real)


def test_the_miniature_is_as_it_says():
    jobs = miniature(200, 64, 300, 0.9, 1, whole=4)
    work = sum(job.runtime * -(-job.tasks // 4) * 4 for job in jobs)
    assert 0.85 < work / (64 * 300) < 0.95
    assert jobs[0].submit == 0
    assert jobs[-1].submit == 300
    assert all(job.limit * 60 >= job.runtime >= 2 and 1 <= job.tasks <= 64 for job in jobs)
