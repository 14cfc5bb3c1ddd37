"""Compares the policy `slurm` with a real Slurm that ran the same jobs on this machine.

    python validation/real_slurm.py FOLDER [--repetitions 5] [--only NAME ...] [--at-once 2] [--jobs 300] [--span 510] [--out FILE]

Each scenario is run on a real Slurm that many times, in real time: twelve minutes each. FOLDER keeps Slurm's output of each run, and
existing runs are not repeated. Then each run is simulated from its own job log and cluster description, and the results are stored in
docs/generators/slurm.json for docs/validation/real-slurm.md. Needs the packages that tests/slurm/lab.py
names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from getpass import getuser
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from tests.slurm.lab import SETTINGS, Lab
from tests.slurm.replay import WHOLE, miniature, replay, save, shared_out
from walltime.slurm import read_cluster
from walltime.slurm_values import seconds_of

Array = np.ndarray
Numbers = dict[str, Any]
OUT = Path(__file__).resolve().parents[1] / "docs" / "generators" / "slurm.json"
LATE = "slurm, nodes free 0.5 s later"
WAYS = {
    "slurm": "slurm",
    LATE: "slurm",
    "slurm:bf_max_job_test=1": "slurm:bf_max_job_test=1",
    "easy": "easy",
    "conservative-scratch": "conservative-scratch",
    "fcfs": "fcfs",
}
"""The policy in question; the same where nodes come back half a second after the end of a job; the same with a wrong parameter; and what
one would take without it."""
SECONDS = ("bf_interval", "bf_resolution", "sched_interval")
"""Parameters that are times in seconds."""
SPANS = {"PriorityDecayHalfLife", "PriorityCalcPeriod", "PriorityMaxAge"}
"""Settings that are spans of time."""
LATER = 0.7
"""s by which each repetition begins later after the start of its Slurm than the one before: passes fall differently."""
LONG = 10
"""s; jobs that run longer are long here."""
LOGGED = {"SlurmctldDebug": "debug", "DebugFlags": "Backfill"}
"""Has slurmctld log when its passes begin and end; validation/slurm_noise.py reads it."""
WITHIN = (10, 60)
"""s between a simulated start and the real one."""


@dataclass(frozen=True)
class Scenario:
    """`whole`: jobs get whole nodes. `tested`: bf_max_job_test. `settings`, `partitions`: further lines of slurm.conf.

    `kinds`: options of sbatch, with the weights with which jobs have them; `accounts`: makes what these name.
    """

    whole: bool
    tested: int = 500
    settings: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    kinds: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    accounts: Callable[[Lab], None] | None = None

    def lab(self, nodes: int, cpus: int) -> Lab:
        """A cluster for it."""
        parameters = SETTINGS["SchedulerParameters"].replace("bf_max_job_test=500", f"bf_max_job_test={self.tested}")
        more = {"partitions": (*WHOLE, *self.partitions)} if self.whole else {}
        return Lab(
            nodes=nodes, cpus=cpus, settings={"SchedulerParameters": parameters, **LOGGED, **self.settings}, before=self.accounts, **more
        )


SMALL_FIRST = {"PriorityType": "priority/multifactor", "PriorityWeightJobSize": "1000", "PriorityFavorSmall": "YES"}
ENFORCE = {"AccountingStorageEnforce": "associations,limits,qos", "PriorityType": "priority/multifactor"}
HALF_LIFE = 120
"""s; a quarter of the time in which jobs are submitted."""
DECAY = {"PriorityWeightFairShare": "10000", "PriorityDecayHalfLife": f"00:{HALF_LIFE // 60:02}:00", "PriorityCalcPeriod": "00:01:00"}
SHARES = {"physics": 6, "biology": 3, "history": 1}
"""Shares of the accounts; all submit as many jobs."""


def make_qualities(lab: Lab) -> None:
    """A quality of service of a high priority, for jobs, and one for a partition, where a user may have three jobs running."""
    lab.run("sacctmgr", "-iQ", "add", "qos", "quick", "Priority=10")
    lab.run("sacctmgr", "-iQ", "add", "qos", "few", "MaxJobsPerUser=3")
    lab.run("sacctmgr", "-iQ", "add", "account", "physics")
    lab.run("sacctmgr", "-iQ", "add", "user", getuser(), "account=physics")
    lab.run("sacctmgr", "-iQ", "modify", "user", getuser(), "set", "defaultaccount=physics", "qos=normal,quick,few", "defaultqos=normal")


def make_accounts(lab: Lab) -> None:
    """Accounts that differ in their shares."""
    for name, shares in SHARES.items():
        lab.run("sacctmgr", "-iQ", "add", "account", name, f"fairshare={shares}")
        lab.run("sacctmgr", "-iQ", "add", "user", getuser(), f"account={name}")


SCENARIOS = {
    "whole": Scenario(whole=True),
    "shared": Scenario(whole=False),
    "small-first": Scenario(whole=True, settings=SMALL_FIRST),
    "untested": Scenario(whole=True, tested=1),
    "tiers": Scenario(
        whole=True,
        settings={**ENFORCE, "PriorityWeightQOS": "1000"},
        partitions=("PartitionName=urgent Nodes=ALL MaxTime=1-00:00:00 PriorityTier=9 QoS=few OverSubscribe=EXCLUSIVE State=UP",),
        kinds={("--partition=main",): 6, ("--partition=urgent",): 2, ("--partition=main", "--qos=quick"): 2},
        accounts=make_qualities,
    ),
    "fair-share": Scenario(
        whole=True, settings={**ENFORCE, **DECAY}, kinds={(f"--account={name}",): 1 for name in SHARES}, accounts=make_accounts
    ),
}


@dataclass(frozen=True)
class Run:
    """One repetition: the jobs in the order of their names; waits, starts from the first submission, runtimes (s)."""

    jobs: wt.Workload
    machine: wt.machine.Machine
    order: Array
    wait: Array
    start: Array
    runtime: Array
    procs: Array

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Slurm's output of the run."""
        machine = read_cluster(folder / "cluster.txt").machine
        jobs = wt.read(folder / "jobs.txt.gz", time_zone="UTC", procs=machine.procs)
        names = np.array([int(jobs.origin.names["executable"][number - 1]) for number in jobs.columns["executable"]])
        order = np.argsort(names)
        wait = jobs.columns["wait"]
        start = jobs.submit + wait - jobs.submit[0]
        return cls(jobs, machine, order, wait[order], start[order], jobs.runtime[order], jobs.procs[order])

    def simulated(self, way: str) -> Array:
        """The waits that one of WAYS gives the jobs, s."""
        jobs, machine = self.in_parts(2, 1) if way == LATE else (self.jobs, self.machine)
        schedule = wt.simulate(jobs, WAYS[way], machine=machine)
        assert len(schedule) == len(self.jobs)
        return (schedule.start - jobs.submit)[self.order] / (2 if way == LATE else 1)

    def in_parts(self, parts: int, longer: int) -> tuple[wt.Workload, wt.machine.Machine]:
        """Return the same in parts of seconds, with each job `longer` parts longer."""
        requested = self.jobs.requested * parts
        times = {"submit": self.jobs.submit * parts, "runtime": self.jobs.runtime * parts + longer}
        return replace(self.jobs, **times, requested=requested, planned=requested), replace(self.machine, slurm=self.settings_in(parts))

    def settings_in(self, parts: int) -> dict[str, str]:
        """Return Slurm's settings scaled to parts of seconds."""
        parameters = []
        for one in self.machine.slurm["SchedulerParameters"].split(","):
            name, _, value = one.partition("=")
            parameters.append(f"{name}={parts * int(value)}" if name in SECONDS else one)
        settings = {**self.machine.slurm, "SchedulerParameters": ",".join(parameters)}
        for name in settings.keys() & SPANS:
            seconds = parts * seconds_of(settings[name])
            settings[name] = f"{seconds // 86_400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return settings


def classes(run: Run, cpus: int) -> dict[str, Array]:
    """Groups of jobs by width and length, as masks."""
    wide, long = run.procs > cpus, run.runtime > LONG
    widths = {"one node": ~wide, "several nodes": wide}
    lengths = {f"up to {LONG} s": ~long, f"over {LONG} s": long}
    groups = {f"{width}, {length}": a & b for width, a in widths.items() for length, b in lengths.items()}
    return {"all": np.ones(len(wide), bool), **groups}


def closeness(one: Array, other: Array) -> list[float]:
    """The shares of starts that are within WITHIN of each other, and the median difference, s."""
    apart = np.abs(one - other)
    return [*(float(np.mean(apart <= limit)) for limit in WITHIN), float(np.median(apart))]


def compared(runs: Sequence[Run], cpus: int) -> Numbers:
    """Real and simulated waits of the repetitions of a scenario."""
    groups = classes(runs[0], cpus)  # the same jobs in each
    waits = {way: [run.simulated(way) for run in runs] for way in WAYS}

    def means(of: Sequence[Array], group: Array) -> list[float]:
        return [float(wait[group].mean()) for wait in of]

    return {
        "repetitions": len(runs),
        "jobs": len(runs[0].wait),
        "nodes": sum(pool.nodes for pool in runs[0].machine.pools),
        "version": runs[0].machine.slurm["SLURM_VERSION"],
        "parameters": runs[0].machine.slurm["SchedulerParameters"],
        "runtime": float(np.mean([run.runtime.mean() for run in runs])),
        "queue": [float(run.wait.sum() / (run.start + run.runtime).max()) for run in runs],
        "backfilled": [float(np.mean(run.jobs.columns["sched_backfill"] == 1)) for run in runs],
        "classes": {
            name: {
                "jobs": int(group.sum()),
                "real": means([run.wait for run in runs], group),
                "simulated": {way: means(waits[way], group) for way in WAYS},
            }
            for name, group in groups.items()
            if group.any()
        },
        "starts": {
            "another real run": [closeness(a.start, b.start) for a, b in combinations(runs, 2)],
            **{way: [closeness(run.wait, wait) for run, wait in zip(runs, waits[way], strict=True)] for way in WAYS},
        },
    }


def make(scenario: Scenario, folder: Path, given: argparse.Namespace) -> None:
    """Run a scenario once on a real Slurm, if that was not done before. `folder`: named by the number of the repetition."""
    if (folder / "cluster.txt").exists():
        return
    nodes, cpus = given.nodes, given.cpus
    jobs = miniature(given.jobs, nodes * cpus, given.span, given.load, given.seed, whole=cpus if scenario.whole else 1)
    if scenario.kinds:
        jobs = shared_out(jobs, scenario.kinds, given.seed)
    with scenario.lab(nodes, cpus) as lab:
        time.sleep(LATER * (int(folder.name) - 1))
        late = replay(lab, jobs)
        save(lab, folder)
    print(f"{folder.parent.name} {folder.name}: submissions late by {max(late):.3f} s at most", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs that are missing, compare, store and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=2, help="clusters that run at the same time; each takes about a tenth of a core")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--span", type=float, default=510, help="s, the period of submissions")
    parser.add_argument("--load", type=float, default=1.0, help="their work, over what the machine has in that time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    with ThreadPoolExecutor(given.at_once) as pool:
        runs = [
            pool.submit(make, SCENARIOS[name], given.folder / name / str(k), given)
            for name in given.only
            for k in range(1, given.repetitions + 1)
        ]
        for run in runs:
            run.result()
    stored: Numbers = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name in given.only:
        folders = sorted((given.folder / name).glob("[0-9]*"), key=lambda one: int(one.name))
        stored[name] = compared([Run.read(folder) for folder in folders], given.cpus)
        show(name, stored[name])
    ordered = {name: stored[name] for name in SCENARIOS if name in stored}
    given.out.write_text(json.dumps(rounded(ordered), indent=1) + "\n")
    return 0


def rounded(value: Any) -> Any:
    """With four digits that count, which is more than the runs can say."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(name: str, result: Numbers) -> None:
    """Print the waits by class, and how close the starts are."""
    print(f"{name}: {result['repetitions']} runs of {result['jobs']} jobs, mean queue {np.mean(result['queue']):.0f}")
    for group, part in result["classes"].items():
        real, simulated = part["real"], part["simulated"]
        means = ", ".join(f"{way} {np.mean(simulated[way]):.1f}" for way in WAYS)
        print(f"  {group} ({part['jobs']}): {np.mean(real):.1f} ({min(real):.1f} to {max(real):.1f}) s; {means}")
    for what, rows in ((what, rows) for what, rows in result["starts"].items() if rows):
        near, nearer, median = np.mean(rows, axis=0)
        print(f"  {what}: {100 * near:.0f} % within {WITHIN[0]} s, {100 * nearer:.0f} % within {WITHIN[1]} s, median {median:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
