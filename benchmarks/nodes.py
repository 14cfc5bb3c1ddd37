"""Machines of nodes: real logs under each policy, on a plain number of processors, on one pool, and on Slurm's single nodes."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.common import Options, Result, child, find_log, log_name, read_log, show, take_turns
from walltime.machine import Machine, Partition, Pool
from walltime.policy import Slurm
from walltime.simulation import simulate
from walltime.workload import Workload

CASES = {
    "KTH, 100 nodes x 1": ("KTH-SP2-1996-2.swf", 100, 1),
    "Gaia, 2,004 x 1": ("UniLu-Gaia", 2_004, 1),
    "Theta, 4,392 x 1": ("ALCF-Theta", 4_392, 1),
    "Mira, 49,152 x 1": ("ALCF-Mira", 49_152, 1),
    "BLUE, 144 x 8": ("SDSC-BLUE", 144, 8),
    "BLUE, 1,152 x 1": ("SDSC-BLUE", 1_152, 1),
}
"""By name: how the log's file begins, nodes, and processors of each."""
POLICIES = ("easy", "conservative")


def nodes(options: Options) -> Result:
    """Seconds of simulation on each kind of machine, as a ratio to EASY on a number of processors; peak memory of Slurm's."""
    result: Result = {}
    rows = []
    for name, (beginning, count, procs) in list(CASES.items())[: options.size(len(CASES), 1)]:
        file = find_log(beginning)
        if file is None:
            continue
        works = _works(read_log(file), count, procs)
        for work in works.values():
            work()  # compiles
        seconds = take_turns(works, options)
        plain = seconds["number, easy"]["median"]
        peak = child("slurm_memory", file, count, procs)["peak_bytes"]
        result[name] = {"log": log_name(file), "seconds": seconds, "peak_bytes": peak}
        rows += [(name, what, f"{one['median']:.4f}", f"{one['median'] / plain:.1f}") for what, one in seconds.items()]
        rows.append((name, "memory of slurm, MB", f"{peak / 1e6:.0f}", ""))
    show("seconds of simulation", ("log and nodes", "machine, policy", "s", "of plain EASY"), rows)
    return result


def machine_of(nodes: int, procs: int) -> Machine:
    """A machine of equal nodes in one partition."""
    return Machine((Pool("all", nodes, procs),), (Partition("all", ("all",)),))


def _works(workload: Workload, nodes: int, procs: int) -> dict[str, Callable[[], float]]:
    machine = machine_of(nodes, procs)
    works: dict[str, Callable[[], float]] = {}
    for policy in POLICIES:
        works[f"number, {policy}"] = lambda policy=policy: simulate(workload, policy).seconds["simulate"]
        works[f"one pool, {policy}"] = lambda policy=policy: simulate(workload, policy, machine=machine).seconds["simulate"]
    works["nodes, slurm"] = lambda: simulate(workload, Slurm(), machine=machine).seconds["simulate"]
    return works
