"""Measurements in a separate process: peak memory, and CPU time before the kernel runs.

    python -m benchmarks.child NAME ARGUMENT ...

prints one line of JSON. Each function takes and returns plain numbers and strings, and does its own imports, so that it
measures only what it names.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import time
from typing import Any
from unittest import mock

from benchmarks.campaigns import campaign_memory, campaign_share
from benchmarks.published import published_steps


def load_entry(name: str) -> dict[str, float]:
    """Seconds to import the engine and load one of its entries, compiled now or from the cache; CPU seconds of the process."""
    begin = time.perf_counter()
    from walltime.engine.interface.load import load

    load(name)
    return {"seconds": time.perf_counter() - begin, "processor": _processor_seconds()}


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def up_to_the_kernel(log: str) -> dict[str, float]:
    """CPU seconds of `walltime simulate` until the simulation begins: imports, the log, the kernel from the cache."""
    from walltime.cli.main import run
    from walltime.engine.interface.number import NumberEngine

    used: list[float] = []
    simulate = NumberEngine.run

    def noted(simulation: NumberEngine, *arguments: Any) -> None:
        used.append(_processor_seconds())
        simulate(simulation, *arguments)

    with mock.patch.object(NumberEngine, "run", noted), contextlib.redirect_stdout(io.StringIO()):
        status = run(["simulate", log, "--policy", "easy", "--json"])
    assert status == 0
    return {"seconds": used[0]}


def slurm_memory(log: str, nodes: str, procs: str) -> dict[str, float]:
    """Return the peak memory of a simulation under Slurm's scheduling, less the memory of the process with log and kernel."""
    from pathlib import Path

    from benchmarks.common import peak_bytes, read_log
    from benchmarks.nodes import machine_of
    from walltime.engine.interface.load import load as load_kernel
    from walltime.policy import Slurm
    from walltime.simulation import simulate

    load_kernel("slurm")
    workload, before = read_log(Path(log)), peak_bytes()
    simulate(workload, Slurm(), machine=machine_of(int(nodes), int(procs)))
    peak = peak_bytes() - before
    return {"peak_bytes": peak, "bytes_per_job": peak / len(workload), "bytes_per_node": peak / int(nodes)}


def slurm_million(jobs: str, nodes: str, waiting: str) -> dict[str, float]:
    """Return seconds and memory until this many jobs have started under Slurm's scheduling, and the mean queue length.

    Jobs come from a closed system: each user submits a job soon after the end of the last one, so the queue depth stays constant.
    """
    from benchmarks.common import peak_bytes
    from benchmarks.nodes import closed_system, machine_of, say
    from walltime.engine.interface.load import load as load_kernel
    from walltime.simulation.run import run_of
    from walltime.simulation.specification import Scheduler

    load_kernel("slurm")
    count = int(jobs)
    workload = closed_system(int(waiting), count + count // 4, int(nodes))
    before = peak_bytes()
    run = run_of(workload, Scheduler.of("slurm"), machine=machine_of(int(nodes), 1))
    engine, depths, mark = run.engine("kernel"), [], 0
    while engine.started < count and not engine.advance(count // 2):
        state = engine.state()
        depths.append(len(state.queue))
        if engine.started >= mark:
            say(f"  {engine.started:,} jobs have started: {engine.seconds:.0f} s; {depths[-1]:,} wait, {len(state.running):,} run")
            mark += count // 10
    peak = peak_bytes() - before
    return {
        "jobs": engine.started,
        "seconds": engine.seconds,
        "waiting": sum(depths) / len(depths),
        "peak_bytes": peak,
        "bytes_per_job": peak / len(workload),
        "bytes_per_node": peak / int(nodes),
    }


def compression_work(name: str, count: str) -> dict[str, int]:
    """Count the work of conservative backfilling in its compressions, without the compiler."""
    from numba import config

    from benchmarks.compression import work

    assert config.DISABLE_JIT

    return work(name, int(count))


def generate_and_simulate(jobs: str, load: str) -> dict[str, float]:
    """Peak memory of a process that generates a workload and simulates it under EASY."""
    from benchmarks.common import lublin, peak_bytes
    from walltime.engine.interface.load import load as load_kernel
    from walltime.policy import Easy
    from walltime.simulation import simulate

    load_kernel("easy")
    before = peak_bytes()
    simulate(lublin(int(jobs), float(load)), Easy())
    peak = peak_bytes()
    return {"jobs": int(jobs), "load": float(load), "peak_bytes": peak, "bytes_per_job": (peak - before) / int(jobs)}


def memory(jobs: str, policy: str) -> dict[str, float]:
    """Bytes per job above the interpreter with everything imported and the kernel loaded: workload, run and result."""
    import numpy as np

    from benchmarks.common import lublin, peak_bytes
    from walltime.policy import parse_policy
    from walltime.simulation import simulate
    from walltime.workload import Workload

    chosen, count = parse_policy(policy), int(jobs)
    simulate(lublin(100, 0.7), chosen)
    before = peak_bytes()
    index = np.arange(count, dtype=np.int64)
    runtime = index * 7919 % 1000
    requested = runtime + 60
    workload = Workload(
        job_id=index + 1,
        submit=index * 20,
        runtime=runtime,
        requested=requested,
        procs=index * 104729 % 64 + 1,
        machine_procs=2000,
        planned=requested,
    )
    del index, runtime, requested
    schedule = simulate(workload, chosen)
    assert (schedule.start >= workload.submit).all()
    return {"bytes_per_job": (peak_bytes() - before) / count}


def read_a_log(path: str) -> dict[str, float]:
    """Seconds to read a log as a workload, and the peak memory of the process."""
    from benchmarks.common import peak_bytes
    from walltime.logs import read

    begin = time.perf_counter()
    read(path, procs=4096, time_zone="Europe/Stockholm")
    return {"seconds": time.perf_counter() - begin, "peak_bytes": peak_bytes()}


def batch(log: str, badness: str, seeds: str, kind: str) -> dict[str, float]:
    """Wall seconds and peak memory of a batch on all cores."""
    from benchmarks.batches import make_cases
    from benchmarks.common import LOGS, find_log, peak_bytes, read_log
    from walltime.engine.interface.load import load
    from walltime.simulation import simulate_many

    path = find_log(LOGS[log])
    assert path is not None
    workload = read_log(path)
    cases = make_cases(int(badness), int(seeds), kind)
    load("easy")
    begin = time.perf_counter()
    slowdowns = simulate_many(workload, cases, trim="tsafrir06").values("mean_bounded_slowdown")
    seconds = time.perf_counter() - begin
    assert len(slowdowns) == len(cases)
    return {
        "cases": len(cases),
        "jobs": len(workload),
        "procs": workload.machine_procs,
        "seconds": seconds,
        "simulations_per_second": len(cases) / seconds,
        "peak_bytes": peak_bytes(),
    }


MEASURED = (
    load_entry,
    up_to_the_kernel,
    generate_and_simulate,
    memory,
    slurm_memory,
    slurm_million,
    compression_work,
    read_a_log,
    batch,
    campaign_share,
    campaign_memory,
    published_steps,
)
FUNCTIONS = {f.__name__: f for f in MEASURED}

if __name__ == "__main__":
    print(json.dumps(FUNCTIONS[sys.argv[1]](*sys.argv[2:])))
