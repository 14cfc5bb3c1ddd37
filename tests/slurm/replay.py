"""A generated workload in miniature, submitted to a real Slurm at its times, and what that printed of it afterwards."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.slurm.lab import Lab
from walltime.workload.models import MODELS

WHOLE = ("PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 OverSubscribe=EXCLUSIVE State=UP",)
"""A partition that gives whole nodes."""


@dataclass(frozen=True)
class Job:
    """When it is submitted (s from the start), its tasks, how long it runs (s), its limit (min), and further options of sbatch."""

    submit: float
    tasks: int
    runtime: int
    limit: int
    options: tuple[str, ...] = ()


def miniature(count: int, procs: int, span: float, load: float, seed: int, whole: int = 1) -> list[Job]:
    """Jobs of Lublin and Feitelson's model (typeless) in miniature: a day becomes minutes.

    `span`: s in which they are submitted, with the model's pattern; `load`: their work in processor-seconds, over what the machine has in
    that time. `whole`: processors of a node where jobs get whole ones. The model's runtimes span five orders of magnitude; their power
    0.35 spans two, from seconds to a minute and more. Limits are whole minutes in Slurm, up to 30 times the runtime here.
    """
    model = MODELS["lublin99-typeless"].generate(count, procs, load, seed)
    taken = -(-model.procs // whole) * whole
    runtime = np.maximum(model.runtime, 1) ** 0.35
    runtime *= load * span * procs / (runtime * taken).sum()
    seconds = np.maximum(np.round(runtime), 2).astype(int)
    limits = np.ceil(seconds * np.random.default_rng(seed).uniform(1, 30, count) / 60).astype(int)
    submit = (model.submit - model.submit[0]) * (span / (model.submit[-1] - model.submit[0]))
    return [Job(*row) for row in zip(submit.tolist(), model.procs.tolist(), seconds.tolist(), limits.tolist(), strict=True)]


def shared_out(jobs: Sequence[Job], kinds: Mapping[tuple[str, ...], float], seed: int) -> list[Job]:
    """The jobs, each with one of these groups of options, drawn with these weights."""
    groups, weights = list(kinds), np.array(list(kinds.values()))
    drawn = np.random.default_rng(seed).choice(len(groups), len(jobs), p=weights / weights.sum())
    return [replace(job, options=groups[k]) for job, k in zip(jobs, drawn.tolist(), strict=True)]


def replay(lab: Lab, jobs: Sequence[Job]) -> list[float]:
    """Submit the jobs at their times, under the names 0, 1, ..., and wait for the last one; returns how late each was, s."""
    begin = time.monotonic()
    late = []
    for number, job in enumerate(jobs):
        time.sleep(max(0.0, begin + job.submit - time.monotonic()))
        late.append(time.monotonic() - begin - job.submit)
        lab.submit(f"--job-name={number}", f"--ntasks={job.tasks}", f"--time={job.limit}", *job.options, wrap=f"sleep {job.runtime}")
    lab.wait_for_jobs(timeout=3600)
    return late


def save(lab: Lab, folder: Path) -> None:
    """What Slurm says of its jobs and itself, by the commands of `walltime slurm`: jobs.txt.gz, cluster.txt; and its logs.

    sdiag.txt; log.txt.gz of slurmctld; nodes.txt.gz of all slurmd.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lab.shell(printed("sacct-command", "--since=now-1day", f"--out={folder / 'jobs.txt.gz'}"))
    lab.shell(printed("cluster-command", f"--out={folder / 'cluster.txt'}"))
    (folder / "sdiag.txt").write_text(lab.run("sdiag"))
    (folder / "log.txt.gz").write_bytes(gzip.compress((lab.folder / "slurmctld.log").read_bytes(), mtime=0))
    nodes = b"".join(file.read_bytes() for file in sorted(lab.folder.glob("slurmd-*.log")))
    (folder / "nodes.txt.gz").write_bytes(gzip.compress(nodes, mtime=0))


def printed(*words: str) -> str:
    """What `walltime slurm` prints, as a user would see it."""
    command = [sys.executable, "-c", "import sys; from walltime.cli.main import run; sys.exit(run(sys.argv[1:]))", "slurm", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
