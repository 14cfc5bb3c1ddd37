"""Random workloads on nodes, on several pools and on a number of processors: the kernel equals the reference, the auditor finds nothing.

    python validation/random_workloads.py [--nodes 10000] [--pools 10000] [--number 5000] [--held 600] [--bounds 1000] [--seed 0]

Workloads on nodes are those of tests/oracle/test_slurm.py, a quarter of each kind. Workloads on pools are those of
tests/oracle/test_machines.py, under each of its policies in turn. Workloads on one number of processors are those of
tests/oracle/replay.py. `--held` ones are those on pools, every other one on a single pool, with a machine file that has eligible times of
some jobs. `--bounds` workloads of each kind are run with kernels that check every index (validation/bounds.py), in a process of its own,
which compiles them first; the rest with the kernels as they are. Prints what differs with its kind and seed; ends with status 1 if anything
did. About twenty minutes on one core.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.oracle import test_machines as pools
from tests.oracle.replay import corpus, schedule_of
from tests.oracle.test_slurm import KINDS, columns_of, policy_of, ran, site_of
from walltime.machine import Machine, write_held
from walltime.schedule import Schedule
from walltime.workload import Workload

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ("start", "end", "kind", "reserved_start")
ON_A_NUMBER, ON_POOLS, HELD = "a number", "pools, ", "held, "


class Counts(NamedTuple):
    """How many workloads of each kind."""

    nodes: int
    pools: int
    number: int
    held: int


def on_nodes(kind: str, seed: int) -> str:
    """Return the fault of one workload on nodes, or an empty text; a rejection by both engines is not a fault."""
    draw = random.Random(f"{kind} {seed}")
    machine, workload = site_of(draw, kind)
    policy = policy_of(draw, kind)
    overrun = draw.choice(("kill", "extend", "continue"))
    return compared(columns_of, *(ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference")))


def on_pools(policy: str, seed: int) -> str:
    """Return the fault of one workload on several pools."""
    draw = random.Random(f"{policy} {seed}")
    machine = pools.machine_of(draw)
    return both_engines(pools.workload_of(draw, machine), policy, machine, draw)


def with_held_jobs(policy: str, seed: int) -> str:
    """Return the fault of one workload with a table of eligible times."""
    draw = random.Random(f"{HELD}{policy} {seed}")
    machine = pools.machine_of(draw)
    workload = pools.workload_of(draw, machine)
    if seed % 2:
        machine = Machine.one_pool(draw.choice((4, 8, 16)))
        workload = replace(workload, columns={name: values for name, values in workload.columns.items() if name != "partition"})
    held = {job: draw.choice((0, 1, 7, 40)) for job in workload.job_id.tolist() if draw.random() < 0.4}
    with tempfile.TemporaryDirectory() as folder:
        table = write_held(Path(folder) / "machine.held.csv", held)
        return both_engines(workload, policy, replace(machine, eligible=str(table)), draw)


def both_engines(workload: Workload, policy: str, machine: Machine, draw: random.Random) -> str:
    """Return the fault of the schedules on a machine of pools."""
    overrun = draw.choice(("kill", "extend", "continue"))
    return compared(
        pools.columns_of, *(pools.ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
    )


def compared(columns_of: Callable[[Any], dict[str, Any]], kernel: Any, reference: Any) -> str:
    """Return the fault of both engines' schedules on a machine, or of their errors."""
    if isinstance(kernel, type) or isinstance(reference, type):
        return "" if kernel is reference else f"{kernel} in the kernel, {reference} in the reference"
    different = [name for name, values in columns_of(kernel).items() if values != columns_of(reference)[name]]
    return judged(different, kernel)


def on_a_number(seed: int) -> str:
    """Return the fault of one workload on a single pool."""
    (case,) = corpus(1, seed)
    kernel, reference = schedule_of(case), schedule_of(case, "reference")
    return judged([name for name in COLUMNS if getattr(kernel, name).tolist() != getattr(reference, name).tolist()], kernel)


def judged(different: Sequence[str], kernel: Schedule) -> str:
    """The columns that differ, and what the auditor finds."""
    report = kernel.audit()
    return "; ".join(filter(None, (", ".join(different), str(report) if report.violations else "")))


def trials(counts: Counts, seed: int) -> Iterator[tuple[str, int]]:
    """Yield the kind and the seed of each workload."""
    for k in range(counts.nodes):
        yield KINDS[k % len(KINDS)], seed + k // len(KINDS)
    for k in range(counts.pools):
        yield ON_POOLS + pools.POLICIES[k % len(pools.POLICIES)], seed + k // len(pools.POLICIES)
    for k in range(counts.number):
        yield ON_A_NUMBER, seed + k
    for k in range(counts.held):
        yield HELD + pools.POLICIES[k % len(pools.POLICIES)], seed + k // len(pools.POLICIES)


def check(counts: Counts, seed: int) -> int:
    """Run the workloads; return the number of faults."""
    wrong = 0
    for count, (kind, own) in enumerate(trials(counts, seed), 1):
        if kind == ON_A_NUMBER:
            found = on_a_number(own)
        elif kind.startswith(HELD):
            found = with_held_jobs(kind.removeprefix(HELD), own)
        else:
            found = on_pools(kind.removeprefix(ON_POOLS), own) if kind.startswith(ON_POOLS) else on_nodes(kind, own)
        if found:
            wrong += 1
            print(f"{kind}, seed {own}: {found}", flush=True)
        if count % 1_000 == 0:
            print(f"  {count:,} of {sum(counts):,} workloads, {wrong} wrong", file=sys.stderr, flush=True)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000, help="workloads on nodes under Slurm's scheduling (10000)")
    parser.add_argument("--pools", type=int, default=10_000, help="workloads on several pools (10000)")
    parser.add_argument("--number", type=int, default=5_000, help="workloads on a number of processors (5000)")
    parser.add_argument("--held", type=int, default=600, help="workloads with held jobs, from a table next to the machine file (600)")
    parser.add_argument("--bounds", type=int, default=1_000, help="workloads of each kind with checks of every index; 0: none (1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    given = parser.parse_args(arguments)
    asked = Counts(given.nodes, given.pools, given.number, given.held)
    checked = Counts(*(min(given.bounds, count) for count in asked))
    status = 0
    if any(checked):
        with tempfile.TemporaryDirectory() as folder:
            call = [sys.executable, __file__, "--bounds", "0", "--seed", str(given.seed)]
            call += [text for name, count in checked._asdict().items() for text in (f"--{name}", str(count))]
            settings = {"NUMBA_BOUNDSCHECK": "1", "WALLTIME_CACHE": folder}
            status = subprocess.run(call, cwd=ROOT, env=os.environ | settings, check=False).returncode
    counts = Counts(*(count - own for count, own in zip(asked, checked, strict=True)))
    wrong = check(counts, given.seed + max(checked))
    told = (
        f"{counts.nodes:,} workloads on nodes, {counts.pools:,} on pools, {counts.number:,} on a number and {counts.held:,} with held jobs"
    )
    print(f"{told}: {wrong} wrong{', indices checked' if _checks() else ''}")
    return 1 if wrong or status else 0


def _checks() -> bool:
    from numba import config

    return bool(config.BOUNDSCHECK)


if __name__ == "__main__":
    sys.exit(main())
