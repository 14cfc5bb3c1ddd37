"""Measures the engine: speed of the kernel alone, memory per job, compile time, and how fast the command line answers.

    python benchmarks/run.py [LOG.swf.gz] [--json FILE]

Without a log it makes up a workload. Every number is the median of ten runs, and all of one table come from one process.
Run it while nothing else runs; the load of the machine is printed beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 10
MEMORY_JOBS = 1_000_000

CHILD_IMPORTS = """
import resource, sys, numpy as np
from walltime.engine.run import Simulation, load_kernel
from walltime.policy import parse_policy
from walltime.schedule import simulate
from walltime.workload.demo import demo_workload
load_kernel()
simulate(demo_workload(jobs=100), parse_policy(sys.argv[2]))
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
"""
CHILD_MEMORY = (
    CHILD_IMPORTS
    + """
before = peak()
jobs = int(sys.argv[1])
gap, length = np.int64(20), np.int64(1000)
from walltime.workload import Workload
index = np.arange(jobs, dtype=np.int64)
workload = Workload(
    job_id=index + 1, submit=index * gap, runtime=index * 7919 % length, requested=index * 7919 % length + 60,
    procs=index * 104729 % 64 + 1, machine_procs=2000, believed=index * 7919 % length + 60,
)
schedule = simulate(workload, parse_policy(sys.argv[2]))
assert (schedule.start >= workload.submit).all()
print((peak() - before) / jobs)
"""
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="?", type=Path)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores; {platform.processor() or platform.machine()}")
    numbers = {"load": os.getloadavg()[0], "speed": speed(options.log, options.runs), "memory": memory(), "start": start(options.runs)}
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


def speed(log: Path | None, runs: int) -> dict[str, float]:
    """Jobs per second of the kernel alone, by policy; the policies take turns, so that noise hits all of them."""
    from walltime import read
    from walltime.engine.run import Simulation, load_kernel
    from walltime.policy import SJF, Conservative, Easy, Fcfs, Hybrid
    from walltime.schedule.simulation import effective_times
    from walltime.workload.demo import demo_workload

    workload = read(log) if log else demo_workload(jobs=30_000, load=0.7)
    runtime, believed = effective_times(workload, "kill")
    load_kernel()
    policies = [
        Fcfs(),
        Easy(),
        Easy(backfill_order=SJF),
        Easy(order=SJF),
        Hybrid(depth=3),
        Conservative(),
        Conservative(variant="scratch"),
    ]
    taken: dict[str, list[float]] = {p.label: [] for p in policies}
    for _ in range(runs):
        for policy in policies:
            simulation = Simulation(workload.submit, runtime, believed, workload.procs, workload.machine_procs, policy)
            simulation.run()
            taken[policy.label].append(simulation.seconds)
    print(f"\nkernel alone, one core, {workload.origin.name}, {len(workload):,} jobs, median of {runs}")
    result = {}
    for label, seconds in taken.items():
        middle = statistics.median(seconds)
        result[label] = len(workload) / middle
        spread = f"{min(seconds) * 1e3:.2f} to {max(seconds) * 1e3:.2f} ms"
        print(f"  {label:32} {middle * 1e3:9.2f} ms {result[label] / 1e6:8.2f} million jobs/s   spread {spread}")
    return result


def memory() -> dict[str, float]:
    """Bytes per job above the interpreter with everything imported and the kernel loaded: workload, run and result."""
    print(f"\npeak memory above the loaded engine, {MEMORY_JOBS:,} jobs")
    result = {}
    for policy in ("easy", "conservative"):
        done = subprocess.run([sys.executable, "-c", CHILD_MEMORY, str(MEMORY_JOBS), policy], capture_output=True, text=True, check=True)
        result[policy] = float(done.stdout)
        print(f"  {policy:32} {result[policy]:9.0f} bytes/job")
    return result


def start(runs: int) -> dict[str, float]:
    """Seconds to compile, to load from the cache, and until `walltime --help` answers."""
    load = (
        "import time; t = time.perf_counter(); from walltime.engine.run import load_kernel; load_kernel(); print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"WALLTIME_CACHE": folder}

        def loading() -> float:
            done = subprocess.run([sys.executable, "-c", load], env=environment, capture_output=True, text=True, check=True)
            return float(done.stdout)

        cold = loading()
        warm = statistics.median(loading() for _ in range(runs))
    answers = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "walltime.cli.main", "--help"], capture_output=True, check=True)
        answers.append(time.perf_counter() - begin)
    result = {"compile": cold, "load from cache": warm, "walltime --help": statistics.median(answers)}
    print("\nstart")
    for name, seconds in result.items():
        print(f"  {name:32} {seconds:9.2f} s")
    return result


if __name__ == "__main__":
    main()
