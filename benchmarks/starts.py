"""Predicted start times: simulations forward from a snapshot with a deep queue, under EASY, conservative and Slurm's own scheduling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.common import Options, Result, lublin, show, take_turns, wall_seconds
from benchmarks.predicting import with_users
from validation.start_times import to_history
from walltime.machine import Machine, Partition, Pool
from walltime.simulation import simulate
from walltime.slurm import Draws, Snapshot, snapshot_at, start_times
from walltime.workload import Workload

LOAD = 1.3
MACHINES = {"128 nodes of 1": (128, 1), "16 nodes of 8": (16, 8)}
"""Nodes, and processors of each."""
WEIGHTS = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000", "PriorityWeightFairshare": "10000"}


def starts(options: Options) -> Result:
    """Seconds of a prediction for all jobs of a deep queue, and how much longer other scheduling takes than EASY."""
    waiting, samples = options.size(1000, 50), options.size(200, 3)
    taken, history = deep_queue(waiting)
    result: Result = {"waiting": waiting, "samples": samples, "machines": {}}
    rows = []
    for name, (nodes, procs) in MACHINES.items():
        works = {
            "EASY": _work(_on(taken, nodes, procs, "easy"), history, samples),
            "conservative": _work(_on(taken, nodes, procs, "conservative"), history, samples),
            "Slurm": _work(_on(taken, nodes, procs, "slurm"), history, samples),
            "Slurm, multifactor": _work(_on(taken, nodes, procs, "slurm", WEIGHTS), history, samples),
        }
        for snapshot in (_on(taken, nodes, procs, policy) for policy in ("easy", "conservative", "slurm")):
            start_times(snapshot, history, draws=Draws(1))  # compiles
        seconds = take_turns(works, options)
        ratios = {label: one["median"] / seconds["EASY"]["median"] for label, one in seconds.items()}
        result["machines"][name] = {"seconds": seconds, "ratio": ratios}
        rows += [(name, label, f"{one['median']:.1f}", f"{ratios[label]:.2f}") for label, one in seconds.items()]
    show(f"{samples} simulations from {waiting:,} waiting jobs, all cores", ("machine", "policy", "seconds", "of EASY"), rows)
    return result


def deep_queue(waiting: int) -> tuple[Snapshot, Workload]:
    """Return a snapshot of an overloaded machine with this many waiting jobs, and its log until then."""
    schedule = simulate(with_users(lublin(20_000, LOAD)), "easy")
    submit, start = schedule.workload.submit, np.sort(schedule.start)
    queue = np.arange(1, len(submit) + 1) - np.searchsorted(start, submit, side="right")
    return snapshot_at(schedule, int(submit[np.flatnonzero(queue >= waiting)[0]])), to_history(schedule)


def _on(taken: Snapshot, nodes: int, procs: int, policy: str, slurm: dict[str, str] | None = None) -> Snapshot:
    """The same jobs on a machine of nodes; where priorities count, those of waiting jobs are at random."""
    name, all_nodes = taken.machine.name, Pool("all", nodes, procs)
    machine = Machine((all_nodes,), (Partition("all", ("all",)),), name=name, policy=policy, slurm=slurm or {})
    if not slurm:
        return replace(taken, machine=machine)
    drawn = np.random.default_rng(1).integers(1, 11_000, len(taken.jobs)).tolist()
    jobs = (replace(job, priority=own) if job.start is None else job for job, own in zip(taken.jobs, drawn, strict=True))
    return replace(taken, machine=machine, jobs=tuple(jobs))


def _work(snapshot: Snapshot, history: Workload, samples: int) -> Callable[[], float]:
    return lambda: wall_seconds(lambda: start_times(snapshot, history, draws=Draws(samples)))
