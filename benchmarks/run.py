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
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RUNS = 10
MEMORY_JOBS = 1_000_000

CHILD_IMPORTS = """
import resource, sys, numpy as np
from walltime.engine.run import Simulation, load_kernel
from walltime.policy import parse_policy
from walltime.schedule import simulate
from walltime.workload.models import MODELS
load_kernel()
simulate(MODELS["lublin99"].generate(100, 64), parse_policy(sys.argv[2]))
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
    numbers = {
        "load": os.getloadavg()[0],
        "speed": speed(options.log, options.runs),
        "memory": memory(),
        "making": making(),
        "start": start(options.runs),
    }
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


def speed(log: Path | None, runs: int) -> dict[str, float]:
    """Jobs per second of the kernel alone, by policy; the policies take turns, so that noise hits all of them."""
    from walltime import read
    from walltime.engine.run import Simulation, load_kernel
    from walltime.policy import SJF, Conservative, Easy, Fcfs, Hybrid
    from walltime.schedule.simulation import effective_times
    from walltime.workload.models import MODELS

    workload = read(log) if log else MODELS["lublin99"].generate(30_000, 128, 0.7)
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


def making() -> dict[str, float]:
    """Seconds to make up a million jobs by each model, and to draw a million estimates."""
    from walltime.estimates import FModel, Mualem01, Tsafrir05
    from walltime.workload.models import MODELS

    def taken(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    result = {f"generate {name}": taken(lambda name=name: MODELS[name].generate(MEMORY_JOBS, 512, 0.7, 1)) for name in MODELS}
    jobs = MODELS["lublin99"].generate(MEMORY_JOBS, 512, 0.7, 1)
    for model in (FModel(4), FModel(4, deterministic=True), Mualem01(), Tsafrir05(emax=200_000)):
        result[f"estimates {type(model).__name__}{' deterministic' if getattr(model, 'deterministic', False) else ''}"] = taken(
            lambda model=model: model.draw(jobs, 1)
        )
    print(f"\n{MEMORY_JOBS:,} jobs, median of 3")
    for name, seconds in result.items():
        print(f"  {name:32} {seconds:9.2f} s")
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
    result = {"compile": cold, "load from cache": warm, "walltime --help": statistics.median(answers), "Ctrl-C to the end": interruption()}
    print("\nstart")
    for name, seconds in result.items():
        print(f"  {name:32} {seconds:9.2f} s")
    return result


def interruption() -> float:
    """Seconds from Ctrl-C to the end of the command, in the middle of a long conservative run."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "long.swf"
        call = [sys.executable, "-m", "walltime.cli.main"]
        generate = ["generate", "lublin99", "--jobs", "100000", "--procs", "64", "--load", "1.5", "--estimates", "f:4", "--out", str(log)]
        subprocess.run([*call, *generate], capture_output=True, check=True)
        running = subprocess.Popen(
            [*call, "simulate", str(log), "--policy", "conservative"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(6)
        begin = time.perf_counter()
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130, "it was to be in the middle of the run"
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
