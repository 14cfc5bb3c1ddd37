"""Speed of the kernel alone, on one core: by policy, log and load, by the number of jobs, and by the depth of the queue."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.common import (
    MODEL_PROCS,
    Numbers,
    Options,
    Result,
    child,
    find_log,
    kernel_run,
    kernel_seconds,
    log_files,
    log_name,
    lublin,
    read_log,
    show,
    spread,
    take_turns,
)
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.estimates import FModel, effective_times
from walltime.policy import SJF, Conservative, Easy, Hybrid, NoBackfilling, Policy
from walltime.workload import Workload

POLICIES: dict[str, Policy] = {
    "fcfs": NoBackfilling(),
    "easy": Easy(),
    "easy, backfill SJF": Easy(backfill_order=SJF),
    "hybrid:3": Hybrid(depth=3),
    "conservative": Conservative(),
    "conservative-scratch": Conservative(variant="scratch"),
}
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5)
DEEP = 1.0
"""Above this load the queue grows without bound, and policies that consider all of it at every event are left out."""
SLOW_ON_DEEP = ("easy, backfill SJF", "hybrid:3", "conservative-scratch")
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
DEPTHS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
DEEPEST_CONSERVATIVE = 3_000
ALSO_RUNNING = 10
"""Jobs that run or are about to be submitted, roughly, in a closed system on the machine of the model."""


def throughput(options: Options) -> Result:
    """Jobs per second by log, by policy and by load."""
    jobs = options.size(30_000, 2_000)
    workloads: dict[str, Workload] = {f"Lublin'99 at load {load}": lublin(jobs, load) for load in LOADS}
    logs = [path for path in log_files() if not options.quick or path.name.startswith("KTH-SP2-1996-2.")]
    rates: Result = {}
    for path in logs:
        rates[log_name(path)] = _rates(log_name(path), read_log(path), POLICIES, options)
    for (name, workload), load in zip(workloads.items(), LOADS, strict=True):
        policies = {p: policy for p, policy in POLICIES.items() if load <= DEEP or p not in SLOW_ON_DEEP}
        rates[name] = _rates(name, workload, policies, options) | {"load": load}
    kth = find_log("KTH-SP2-1996-2")
    if kth is not None:
        name = "KTH-SP2-1996-2 with f = 301"
        bad = read_log(kth).with_estimates(FModel(301), seed=1)
        rates[name] = _rates(name, bad, {p: POLICIES[p] for p in ("easy", "conservative")}, options)
    return {"policies": list(POLICIES), "workloads": rates, "model_procs": MODEL_PROCS}


def _rates(name: str, workload: Workload, policies: dict[str, Policy], options: Options) -> Numbers:
    """Seconds and jobs per second of each policy on a workload; the policies take turns."""
    works = {label: partial(kernel_seconds, workload, policy) for label, policy in policies.items()}
    seconds = take_turns(works, options)
    rows = [
        (p, f"{s['median'] * 1e3:.2f}", f"{s['low'] * 1e3:.2f} to {s['high'] * 1e3:.2f}", f"{len(workload) / s['median'] / 1e6:.3g}")
        for p, s in seconds.items()
    ]
    show(f"{name}, {len(workload):,} jobs", ("policy", "ms", "spread", "million jobs/s"), rows)
    return {
        "jobs": len(workload),
        "procs": workload.machine_procs,
        "seconds": seconds,
        "jobs_per_second": {p: len(workload) / s["median"] for p, s in seconds.items()},
    }


def growth(options: Options) -> Result:
    """Time per job under EASY for increasing numbers of jobs of one model, and the memory for the largest number."""
    sizes = [size for size in SIZES if not options.quick or size <= SIZES[1]]
    points = [(size, 0.8) for size in sizes] + [(options.size(1_000_000, 10_000), 0.9)]
    result: Result = {"points": []}
    rows = []
    for size, load in points:
        workload = lublin(size, load)
        seconds = _repeat(workload)
        per_job = seconds["median"] / size
        waiting = mean_depth(workload.submit, kernel_run(workload, Easy()).start, 0, size)
        result["points"].append({"jobs": size, "load": load, "seconds": seconds, "seconds_per_job": per_job, "depth": waiting})
        rows.append((f"{size:,}", load, f"{seconds['median']:.4f}", f"{per_job * 1e9:.0f}", f"{waiting:.0f}", seconds["runs"]))
        del workload
    show("EASY on Lublin'99", ("jobs", "load", "s", "ns/job", "waiting jobs", "runs"), rows)
    result["memory"] = child("generate_and_simulate", sizes[-1], 0.8)
    memory = result["memory"]
    row = (f"{memory['jobs']:,}", f"{memory['peak_bytes'] / 1e9:.2f}", f"{memory['bytes_per_job']:.0f}")
    show("peak memory of a process that generates and simulates", ("jobs", "GB", "bytes/job"), [row])
    return result


def _repeat(workload: Workload) -> Numbers:
    """Seconds of at least three runs, and of at least one second altogether."""
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < 1:
        seconds.append(kernel_seconds(workload, Easy()))
    return spread(seconds)


def depth(options: Options) -> Result:
    """Time per job against the number of waiting jobs, and the time of complete runs of an overloaded machine."""
    depths = [d for d in DEPTHS if not options.quick or d <= 100]
    result: Result = {"points": [], "overload": []}
    rows = []
    for label, policy, most, jobs in (
        ("easy", Easy(), DEPTHS[-1], options.size(20_000, 500)),
        ("conservative", Conservative(), DEEPEST_CONSERVATIVE, options.size(5_000, 500)),
    ):
        for waiting in depths:
            if waiting > most:
                continue
            point: Numbers = {"policy": label, **at_depth(policy, waiting, jobs, options)}
            result["points"].append(point)
            per_job = point["seconds_per_job"]["median"]
            rows.append((label, f"{waiting:,}", f"{point['depth']:,.0f}", f"{per_job * 1e6:.2f}"))
    show("time per job at a steady depth of the queue", ("policy", "aimed at", "waiting jobs", "us/job"), rows)
    result["overload"] = _overload(options)
    return result


def at_depth(policy: Policy, waiting: int, jobs: int, options: Options) -> Numbers:
    """Seconds per started job while about `waiting` jobs wait, over `jobs` starts of the workload of `steady_queue`.

    Timing begins when a tenth of them has started, after the burst at time 0, and ends before the queue begins to empty.
    """
    workload = steady_queue(policy, waiting, jobs * 11 // 10)
    per_job, depths = [], []
    for _ in range(options.long_runs):
        begin, end, start = _timed_part(workload, policy, waiting, jobs // 10, jobs)
        per_job.append((end[1] - begin[1]) / (end[0] - begin[0]))
        depths.append(mean_depth(workload.submit, start, begin[0], end[0]))
    return {"aim": waiting, "depth": statistics.median(depths), "jobs": jobs, "seconds_per_job": spread(per_job)}


def steady_queue(policy: Policy, waiting: int, starts: int, procs: int = MODEL_PROCS) -> Workload:
    """Jobs whose queue holds about `waiting` of them under the policy, from time 0 until `starts` jobs have started.

    They come from a closed system: as many users, and a few more for the running jobs, each submit a job at time 0, and the
    next one at most ten minutes after the last has ended. These submit times are then replayed like a log, so that an ordinary
    run is timed. Sizes and runtimes are from lublin99, estimates are up to 4 times the runtime.
    """
    users = waiting + ALSO_RUNNING
    many = 4 * users + 2 * starts
    model = lublin(many, 1.0, procs).with_estimates(FModel(4), seed=1)
    after = np.maximum(np.arange(many) - users, -1)
    think = np.random.default_rng(1).integers(1, 600, many)
    unknown = np.where(after < 0, 0, -1)
    columns = (unknown, model.runtime, model.planned, model.procs, model.machine_procs)
    closed = NumberEngine(Problem(*columns, policy, after=after, think=think))
    while closed.started < starts and not closed.advance(200_000):
        pass
    came = np.flatnonzero(closed.submit >= 0)
    came = came[np.argsort(closed.submit[came], kind="stable")]
    return Workload.from_arrays(
        submit=closed.submit[came],
        runtime=model.runtime[came],
        requested=model.requested[came],
        procs=model.procs[came],
        machine_procs=model.machine_procs,
    )


def _timed_part(
    workload: Workload, policy: Policy, waiting: int, first: int, last: int
) -> tuple[tuple[int, float], tuple[int, float], np.ndarray]:
    """Started jobs and seconds when at least `first` jobs have started, and when `last` have; and the starts until then."""
    runtime, planned = effective_times(workload, "kill")
    simulation = NumberEngine(Problem(workload.submit, runtime, planned, workload.procs, workload.machine_procs, policy))
    piece = last * (min(waiting, 512) + 2) // 20  # steps: a small part of the whole, and still many jobs
    marks = []
    for mark in (first, last):
        while simulation.started < mark and not simulation.advance(piece):
            pass
        marks.append((simulation.started, simulation.seconds))
    return marks[0], marks[1], simulation.start


def mean_depth(submit: np.ndarray, start: np.ndarray, first: int, last: int) -> float:
    """Mean number of jobs left waiting by the starts number `first` to `last`."""
    begun = np.sort(start[start >= 0])
    arrived = np.searchsorted(submit, begun, side="right")
    waiting = arrived - np.arange(1, len(begun) + 1)
    return float(waiting[first:last].mean())


def _overload(options: Options) -> list[Numbers]:
    jobs, fewer = options.size(300_000, 3_000), options.size(100_000, 1_000)
    cases: Sequence[tuple[str, Policy, Workload, float, str]] = [
        ("easy", Easy(), lublin(jobs, 0.8), 0.8, "exact"),
        ("easy", Easy(), lublin(jobs, 1.5), 1.5, "exact"),
        ("conservative", Conservative(), lublin(fewer, 1.2), 1.2, "exact"),
        ("conservative", Conservative(), lublin(fewer, 1.2).with_estimates(FModel(4), seed=1), 1.2, "f = 4"),
    ]
    result, rows = [], []
    for label, policy, workload, load, estimates in cases:
        seconds = spread([kernel_seconds(workload, policy) for _ in range(options.long_runs)])
        per_job = seconds["median"] / len(workload)
        result.append(
            {
                "policy": label,
                "load": load,
                "estimates": estimates,
                "jobs": len(workload),
                "seconds": seconds,
                "seconds_per_job": per_job,
            }
        )
        rows.append((label, load, estimates, f"{len(workload):,}", f"{seconds['median']:.3f}", f"{per_job * 1e6:.2f}"))
    show("whole runs of an overloaded machine, Lublin'99", ("policy", "load", "estimates", "jobs", "s", "us/job"), rows)
    return result
