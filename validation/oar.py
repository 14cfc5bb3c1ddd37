"""Compares `--policy oar` with recorded runs of OAR, pass by pass and as whole runs, relative to the difference of two real ones.

    python validation/oar.py [--seeds 100] [--log FILE] [--json]

The records are those of JSSPP'16 (Batsim's evaluation), in `oar/` of the folder that WALLTIME_PUBLISHED names: `passes-*.json.gz`, every
pass of a real run with the nodes of each job, and `run*.swf.gz`, real runs of one workload. A pass is made by the engine from the recorded
state of machine and queue. A run is simulated from submissions, requests and real runtimes alone; nothing is fitted. With `--log`, waits on
that log under OAR's scheduling and under conservative backfilling, each difference alone. Ends with status 1 if a pass differs, or if free
runs are on median or on average farther from the real ones than 1.5 times what two real runs are apart.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from tests.traces import published_folder
from walltime.engine.interface.nodes import OarEngine
from walltime.machine import Machine, Partition, Pool
from walltime.policy import Oar
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler
from walltime.workload.scaling import shake

Array = np.ndarray
LONG = 10**6
"""A running job does not end within a pass, s."""
MOST_DRIFT = 1.5
"""Accepted ratio of simulated to real differences."""
SAME = "the same nodes, planned from scratch"
DIFFERENCES = {
    "security time": {"security_time": 60},
    "the fault of 2016": {"slots": "2016"},
    "latencies": {"latencies": "measured"},
}


@dataclass(frozen=True)
class Passes:
    """How many recorded passes there are, how many the engine makes alike (starts and nodes), and the same of starts."""

    passes: int
    alike: int
    starts: int
    same_nodes: int


def machine_of(nodes: int) -> Machine:
    """Return this many equal nodes."""
    return Machine((Pool("all", nodes, 1),), (Partition("main", ("all",)),), name=f"{nodes} nodes")


def replay(record: dict[str, Any], every: int = 1) -> Passes:
    """Repeat each recorded pass, or a fraction of them, by the engine from the recorded state."""
    jobs = {int(name): job for name, job in record["jobs"].items()}
    machine, scheduler = machine_of(record["nodes"]), Scheduler(Oar(latencies="none"), None)
    passes = record["passes"][::every]
    alike = starts = same = 0
    for one in passes:
        wanted = {job: sorted(jobs[job]["nodes"]) for job in one["started"]}
        made = _made(jobs, one, machine, scheduler)
        alike += made == wanted
        starts += len(wanted)
        same += sum(made.get(job) == nodes for job, nodes in wanted.items())
    return Passes(len(passes), alike, starts, same)


def _made(jobs: dict[int, dict[str, Any]], one: dict[str, Any], machine: Machine, scheduler: Scheduler) -> dict[int, list[int]]:
    """The jobs that a pass of the engine starts, with their nodes."""
    zero = min([one["now"], *(jobs[job]["start"] for job in one["running"])])
    running, waiting = sorted(one["running"]), sorted(one["waiting"])
    names = [*running, *waiting]
    if not waiting:
        return {}
    now = one["now"] - zero
    since = np.array([jobs[job]["start"] - zero for job in running] + [-1] * len(waiting), np.int64)
    requested = np.array([jobs[job]["walltime"] for job in names], np.int64)
    workload = wt.Workload.from_arrays(
        submit=np.full(len(names), now),
        runtime=requested,
        procs=[len(jobs[job]["nodes"]) for job in names],
        machine_procs=machine.procs,
        columns={"running_since": since},
    )
    problem = run_of(workload, scheduler, machine=machine).problem
    engine = OarEngine(replace(problem, runtime=np.full(len(names), now + LONG)))  # no job ends before the pass, not even a late one
    engine.hold({place: np.array(jobs[job]["nodes"], np.int64) for place, job in enumerate(running)})
    engine.advance(1)
    job, node, *_ = engine.slots
    started = [place for place in range(len(running), len(names)) if engine.start[place] >= 0]
    return {names[place]: node[job == place].tolist() for place in started}


def differences(runs: Sequence[wt.Workload], seeds: int) -> dict[str, Any]:
    """The differences of starts, s, between real runs of one workload, and between each of them and simulations of it."""
    real = [run.submit + run.columns["wait"] for run in runs]
    found: dict[str, Any] = {"real": [_differences(*pair) for pair in itertools.combinations(real, 2)], "simulated": []}
    for run, start in zip(runs, real, strict=True):
        own = [_differences(start, wt.simulate(run, Oar(seed=seed), machine=machine_of(run.machine_procs)).start) for seed in range(seeds)]
        found["simulated"].append(
            {"seeds": seeds}
            | {name: float(np.median([one[name] for one in own])) for name in own[0]}
            | {"worst": max(one["median"] for one in own)}
        )
    return found


def _differences(one: Array, other: Array) -> dict[str, float]:
    apart = np.abs(one - other)
    return {"median": float(np.median(apart)), "mean": float(apart.mean()), "within_60": float((apart <= 60).mean())}


def on_log(workload: wt.Workload, copies: int = 10) -> list[dict[str, Any]]:
    """Mean waits, s, of a log and of copies shaken by 30 s: under conservative backfilling, and under OAR's with each difference alone.

    `change`: the difference to the policy without any of them, s: its mean over the copies, the smallest and the largest.
    """
    plain: dict[str, Any] = {"security_time": 0, "slots": "2023", "latencies": "none"}
    machine = machine_of(workload.machine_procs)
    alone = f"{SAME}, and "
    policies: list[tuple[str, Any, Machine | None]] = [(SAME, Oar(**plain), machine)]
    policies += [("conservative (mualem01)", "conservative", None), ("conservative, planned anew", "conservative-scratch", None)]
    policies += [(alone + name, Oar(**plain | change), machine) for name, change in DIFFERENCES.items()]
    policies += [("OAR, all of them", Oar(), machine)]
    logs = [workload, *(shake(workload, 30, seed) for seed in range(1, copies))]
    waits = {name: np.array([wt.simulate(log, one, machine=on).summary().mean_wait for log in logs]) for name, one, on in policies}
    return [
        {"policy": name, "mean_wait": float(wait.mean()), "change": [float(f(wait - waits[SAME])) for f in (np.mean, np.min, np.max)]}
        for name, wait in waits.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="simulations of each real run (100)")
    parser.add_argument("--log", type=Path, help="compare OAR's scheduling with conservative backfilling on this log")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {"passes": {}, "runs": {}}
    home = published_folder() / "oar"
    if not home.is_dir():
        print(f"{home} is missing; set WALLTIME_PUBLISHED to the folder that has oar/", file=sys.stderr)
        return 2
    for file in sorted(home.glob("passes-*.json.gz")):
        with gzip.open(file) as opened:
            found["passes"][file.name] = vars(replay(json.load(opened)))
    files = sorted(home.glob("run*.swf.gz"))
    found["runs"] = differences([wt.read(file) for file in files], given.seeds) | {"files": [file.name for file in files]}
    if given.log is not None:
        found["log"] = on_log(wt.read(given.log))
    print(json.dumps(found, indent=2) if given.json else shown(found))
    return 0 if all(one["alike"] == one["passes"] for one in found["passes"].values()) and not drifting(found["runs"]) else 1


def drifting(runs: dict[str, Any]) -> list[str]:
    """Return those of median and mean in which a simulated run differs by more than 1.5 times the real difference."""
    most = {name: MOST_DRIFT * max(one[name] for one in runs["real"]) for name in ("median", "mean")} if runs["real"] else {}
    return [name for name, limit in most.items() if any(one[name] > limit for one in runs["simulated"])]


def shown(found: dict[str, Any]) -> str:
    """The tables as text."""
    lines = [f"{'passes':24} {'made alike':>16} {'starts on the same nodes':>26}"]
    lines += [
        f"{name:24} {one['alike']:>7,} of {one['passes']:,} {one['same_nodes']:>16,} of {one['starts']:,}"
        for name, one in found["passes"].items()
    ]
    lines += ["", f"{'differences of starts, s':40} {'median':>8} {'mean':>8} {'within 60 s':>12}"]
    rows = [(f"real runs, {k + 1}", one) for k, one in enumerate(found["runs"]["real"])]
    rows += [(f"simulated, {file}", one) for file, one in zip(found["runs"]["files"], found["runs"]["simulated"], strict=True)]
    lines += [f"{name:40} {one['median']:8.1f} {one['mean']:8.1f} {one['within_60']:12.0%}" for name, one in rows]
    lines += [f"the {name} drifts beyond {MOST_DRIFT} times that of the real runs" for name in drifting(found["runs"])]
    if "log" in found:
        lines += ["", f"{'mean wait on the log, s':48} {'':>8} {'change':>8}   smallest to largest of ten copies"]
        for one in found["log"]:
            mean, least, most = one["change"]
            lines.append(f"{one['policy']:48} {one['mean_wait']:8,.0f} {mean:+8,.0f}   {least:+,.0f} to {most:+,.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
