"""A snapshot of a real Slurm: both forms of squeue say the same, and start times are simulated from it."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.slurm.conftest import started
from tests.slurm.lab import CommandError, wait_until
from walltime.slurm import Draws, start_times, take_snapshot
from walltime.slurm.client import Client, CommandResult
from walltime.slurm.squeue import SQUEUE_JSON


@pytest.fixture(scope="module")
def snapshots():
    """The same queue by squeue --json, and by its text form."""
    with started() as lab:
        nodes = int(lab.run("sinfo", "--noheader", "--format=%D").split()[0])
        lab.submit("-J", "running|odd\x1f name", "-t", "5", "-N", str(nodes), "--exclusive", wrap="sleep 300")
        lab.submit("-J", "next", "-t", "30", "-N", str(nodes), "--exclusive", wrap="true")
        lab.submit("-J", "array", "-t", "10", "-a", "1-5%2", wrap="true")
        held = lab.submit("-J", "held", "-t", "1", "--hold", wrap="true")
        lab.submit("-J", "after", "-t", "1", f"--dependency=afterany:{held}", wrap="true")

        def runner(words, timeout, text=False):
            if text and tuple(words) == SQUEUE_JSON:
                return CommandResult(1, "", "no JSON here")
            try:
                return CommandResult(0, lab.run(*words), "")
            except CommandError as error:
                return CommandResult(1, "", str(error))

        def running():
            return "RUNNING" in lab.run("squeue", "--noheader", "--format=%T")

        wait_until("a job runs", running, 60)
        yield take_snapshot(Client(runner)), take_snapshot(Client(lambda words, timeout: runner(words, timeout, text=True)))


def test_snapshot__of_both_forms(snapshots):
    by_json, by_text = snapshots
    assert by_json.totals() == {"running": 1, "waiting": 6, "held": 1, "dependent": 1}
    assert by_text.totals() == by_json.totals()
    same = ("label", "state", "user", "partition", "name", "submit", "start", "limit", "nodes", "cpus", "left_out", "array_limit")
    of = [{job.label: [getattr(job, name) for name in same] for job in found.jobs} for found in snapshots]
    assert of[0] == of[1]
    assert by_json.machine == by_text.machine


def test_start_times__from_a_real_queue(snapshots):
    nobody = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=1)
    found = start_times(snapshots[0], nobody, draws=Draws(3))
    running = snapshots[0].running[0]
    starts = np.array([one.median for one in found.jobs])
    assert starts.min() >= running.start + running.limit
