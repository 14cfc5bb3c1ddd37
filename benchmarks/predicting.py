"""The cost of predictors: EASY with them, and the replay of all schemes of tang13 along a log."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.common import Numbers, Options, Result, lublin, paper_logs, show, take_turns
from walltime.engine.interface.load import load
from walltime.policy import Easy
from walltime.predictors import STATISTICS, WINDOWS, Predictor, Tang13, parse_predictor
from walltime.simulation import simulate
from walltime.simulation.replay import predict
from walltime.workload import Workload

CONFIGURATIONS = 130
"""Approximate number of schemes compared by tang13."""


def predictions(options: Options) -> Result:
    """Million jobs per second of EASY without and with predictors, and seconds for a replay of the schemes of tang13."""
    for name in ("easy", "easy-predicting", "replay"):
        load(name)
    workloads: dict[str, Workload] = {**paper_logs(options)} or {"Lublin'99 at load 0.8": with_users(lublin(30_000, 0.8))}
    result: Result = {"workloads": {}, "replay": {}}
    rows = []
    for name, workload in workloads.items():
        triple = "triple" if has_groups(workload) else "request"
        predictors = {
            "none": None,
            "tsafrir07": parse_predictor("tsafrir07"),
            "p85 triple": Tang13(key=triple, statistic="p85", window=None),
            "p85 triple, 1 month": Tang13(key=triple, statistic="p85", window=1),
        }
        works = {label: _work(workload, predictor) for label, predictor in predictors.items()}
        for work in works.values():
            work()
        taken = take_turns(works, options)
        rates = {label: len(workload) / seconds["median"] for label, seconds in taken.items()}
        result["workloads"][name] = {"jobs": len(workload), "seconds": taken, "jobs_per_second": rates}
        rows.append((name, f"{len(workload):,}", *(f"{rate / 1e6:.2f}" for rate in rates.values())))
        result["replay"][name] = replay(workload, options)
    show("EASY with predictors, million jobs/s", ("workload", "jobs", *predictors), rows)
    lines = [(name, f"{r['jobs']:,}", f"{r['configurations']}", f"{r['seconds']:.1f}") for name, r in result["replay"].items()]
    show("tang13's schemes along a log", ("workload", "jobs", "schemes", "seconds"), lines)
    return result


def _work(workload: Workload, predictor: Predictor | None) -> Callable[[], float]:
    return lambda: float(simulate(workload, Easy(), prediction=predictor).seconds["simulate"])


def replay(workload: Workload, options: Options) -> Numbers:
    """Wall-clock seconds for the replay of the schemes of tang13 on all cores; ends are those of EASY if the log has none."""
    keys = ("user", "project", "double", "triple") if has_groups(workload) else ("user", "request")
    thresholds = (0.0,) if has_groups(workload) else (0.0, 0.5)
    schemes = [Tang13(key=k, statistic=s, window=w, threshold=t) for k in keys for t in thresholds for s in STATISTICS for w in WINDOWS]
    schemes = schemes[: options.size(CONFIGURATIONS, 6)]
    begin = time.perf_counter()
    predict(workload, schemes)
    return {"jobs": len(workload), "configurations": len(schemes), "seconds": time.perf_counter() - begin}


def has_groups(workload: Workload) -> bool:
    """Whether the log records the group or project of jobs."""
    group = workload.columns.get("group")
    return group is not None and bool((group >= 0).any())


def with_users(workload: Workload) -> Workload:
    """The same jobs, of fifty users."""
    return Workload.from_arrays(
        submit=workload.submit,
        runtime=workload.runtime,
        requested=workload.runtime * 3 // 600 * 600 + 600,
        procs=workload.procs,
        machine_procs=workload.machine_procs,
        columns={"user": np.arange(len(workload)) % 50},
    )
