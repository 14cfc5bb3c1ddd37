"""Many simulations at once: batches of the papers' sizes, their scaling with cores, and the cost of instrumentation."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from benchmarks.common import (
    LOGS,
    Numbers,
    Options,
    Result,
    child,
    cores,
    find_log,
    lublin,
    paper_logs,
    read_log,
    show,
    spread,
    take_turns,
    wall_seconds,
)
from walltime import Workload
from walltime.engine.interface.load import load
from walltime.policy import Easy
from walltime.simulation import simulate

MISSING = "this version of walltime has no simulate_many"
LARGEST_F = 10
"""Largest badness f of a batch, as in tsafrir06; the values of f are spaced evenly from 0 to it."""


def batch(options: Options) -> Result:
    """Wall seconds, simulations per second and peak memory of batches on all cores, each in its own process."""
    if not has_batches():
        print(f"skipped: {MISSING}")
        return {"skipped": MISSING}
    sizes: list[tuple[str, int, int, str]] = [("KTH", 3, 2, "random")] if options.quick else [("KTH", 21, 10, "random")]
    if not options.quick:
        sizes.append(("KTH", 101, 100, "random"))
    if options.full and not options.quick:
        sizes += [(log, 101, 100, "paper") for log in LOGS]
    result: Result = {"batches": []}
    rows = []
    for log, badness, seeds, kind in sizes:
        if find_log(LOGS[log]) is None:
            print(f"skipped: {log}, whose log is not there")
            continue
        measured = child("batch", log, badness, seeds, kind)
        point: Numbers = {"log": log, "badness": badness, "seeds": seeds, "kind": kind} | measured
        result["batches"].append(point)
        what = f"{log}, {badness} f x {seeds} seeds, {kind}"
        gigabytes = f"{point['peak_bytes'] / 1e9:.2f}"
        rows.append((what, f"{point['cases']:,}", f"{point['seconds']:.2f}", f"{point['simulations_per_second']:,.0f}", gigabytes))
    if not result["batches"]:
        return {"skipped": "none of the logs is there"}
    show(f"batches under EASY, {cores()} cores", ("batch", "simulations", "s", "simulations/s", "peak GB"), rows)
    return result


def has_batches() -> bool:
    """Whether this version can simulate many cases at once."""
    try:
        from walltime.simulation import Case, simulate_many  # noqa: F401
    except ImportError:
        return False
    return True


def make_cases(badness: int, seeds: int, kind: str) -> list[Any]:
    """EASY with random estimates for each f and seed; for `paper` also each f deterministic, and user estimates."""
    from walltime.estimates import FModel
    from walltime.simulation import Case

    values = [LARGEST_F * i / max(badness - 1, 1) for i in range(badness)]
    cases: list[Any] = [Case(policy=Easy(), estimates=FModel.of_badness(f), seed=seed) for f in values for seed in range(seeds)]
    if kind == "paper":
        cases += [Case(policy=Easy(), estimates=FModel.of_badness(f, deterministic=True)) for f in values]
        cases.append(Case(policy=Easy()))
    return cases


def threads(options: Options) -> Result:
    """Wall seconds of one batch with 1, 2, ... workers, in turn; speed-up and efficiency."""
    if not has_batches():
        print(f"skipped: {MISSING}")
        return {"skipped": MISSING}
    from walltime.simulation import simulate_many

    path = find_log(LOGS["KTH"])
    name, workload = ("KTH", read_log(path)) if path else ("Lublin'99 at load 0.8", lublin(30_000, 0.8))
    cases = make_cases(*((2, 4) if options.quick else (21, 10)), "random")
    load("easy")
    counts = worker_counts(cores())

    def run(workers: int) -> float:
        return wall_seconds(lambda: simulate_many(workload, cases, trim="tsafrir06", workers=workers))

    run(counts[-1])
    seconds = take_turns({str(count): partial(run, count) for count in counts}, options)
    alone = seconds["1"]["median"]
    points = []
    for count in counts:
        faster = alone / seconds[str(count)]["median"]
        points.append({"workers": count, "seconds": seconds[str(count)], "speedup": faster, "efficiency": faster / count})
    rows = [(p["workers"], f"{p['seconds']['median']:.2f}", f"{p['speedup']:.2f}", f"{100 * p['efficiency']:.0f} %") for p in points]
    show(f"{len(cases):,} simulations of {name} under EASY", ("workers", "s", "speed-up", "efficiency"), rows)
    return {"workload": name, "jobs": len(workload), "cases": len(cases), "points": points}


def worker_counts(available: int) -> list[int]:
    """1, 2, 3, ... up to 8 cores; beyond, doubled each time, and all of them."""
    counts = [*range(1, min(available, 8) + 1)]
    while counts[-1] * 2 < available:
        counts.append(counts[-1] * 2)
    return counts if counts[-1] == available else [*counts, available]


def dynamics(options: Options) -> Result:
    """Seconds of EASY without and with recording of the dynamics, by log."""
    if "dynamics" not in inspect.signature(simulate).parameters:
        reason = "this version of walltime does not record dynamics"
        print(f"skipped: {reason}")
        return {"skipped": reason}
    load("easy")
    workloads: dict[str, Workload] = {**paper_logs(options)} or {"Lublin'99 at load 0.8": lublin(30_000, 0.8)}
    result: Result = {"workloads": {}}
    rows = []
    for name, workload in workloads.items():
        seconds = dynamics_of(workload, options)
        result["workloads"][name] = seconds
        shown = [f"{seconds[stage]['median'] * 1e3:.2f}" for stage in ("without", "kernel", "analysis")]
        rows.append((name, f"{len(workload):,}", *shown, f"{seconds['ratio']:.2f}"))
    show("EASY with dynamics, ms", ("workload", "jobs", "without", "kernel", "analysis", "with / without"), rows)
    return result


def dynamics_of(workload: Workload, options: Options) -> Numbers:
    """Seconds of the kernel without, of the kernel with, and of the analysis."""
    instrumented: Any = simulate
    analysis: list[float] = []

    def with_dynamics() -> float:
        seconds = instrumented(workload, Easy(), dynamics=True).seconds
        analysis.append(seconds["dynamics"])
        return float(seconds["simulate"])

    with_dynamics()
    analysis.clear()
    works = {"without": lambda: float(simulate(workload, Easy()).seconds["simulate"]), "kernel": with_dynamics}
    taken = take_turns(works, options)
    taken["analysis"] = spread(analysis)
    both = taken["kernel"]["median"] + taken["analysis"]["median"]
    return taken | {"jobs": len(workload), "ratio": both / taken["without"]["median"]}
