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
    # with jobs of seconds, the time that a real Slurm takes between two jobs counts
    right, wrong = real_slurm.LATE, "slurm:bf_max_job_test=1"
    [real] = result["classes"]["all"]["real"]
    means = {way: values[0] for way, values in result["classes"]["all"]["simulated"].items()}
    near = {way: rows[0][0] for way, rows in result["starts"].items() if rows}
    assert near[right] > 0.75 > near[wrong], near
    assert abs(means[right] - real) < 5 < abs(means[wrong] - real), (real, means)


def test_the_miniature_is_as_it_says():
    jobs = miniature(200, 64, 300, 0.9, 1, whole=4)
    work = sum(job.runtime * -(-job.tasks // 4) * 4 for job in jobs)
    assert 0.85 < work / (64 * 300) < 0.95
    assert jobs[0].submit == 0
    assert jobs[-1].submit == 300
    assert all(job.limit * 60 >= job.runtime >= 2 and 1 <= job.tasks <= 64 for job in jobs)
