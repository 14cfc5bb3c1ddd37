"""Shared by the three parts: sizes, progress, a line of a comparison with theory, and the available logs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import ROOT, find_log, log_name, read_log
from walltime.metrics import mean_interval
from walltime.schedule import Schedule
from walltime.workload import Workload
from walltime.workload.scaling import head

Array = np.ndarray
Numbers = dict[str, Any]
Simulate = Callable[..., Schedule]
"""As `walltime.simulate`; a check takes it as an argument, so that a broken one can be given to it."""

OUT = ROOT / "docs" / "generators" / "validation.json"
"""The file with the results."""
LIMIT = 3.5
"""Standard errors by which a mean may deviate from theory."""
LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.swf",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln",
    "SDSC-SP2": "SDSC-SP2-1998-4.x-cln",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.x-cln",
    "UniLu-Gaia": "UniLu-Gaia-2014",
    "ALCF-Mira": "ALCF-Mira-2018",
    "ALCF-Theta": "ALCF-Theta-2022",
}
"""Logs with user estimates, by the prefix of their file names."""
PAPER_PROCS = {"CTC-SP2": 512}
"""Machine sizes used in the papers, if the log's header has another number."""


@dataclass(frozen=True)
class Sizes:
    """How much to run: jobs and seeds of each queue, jobs of a log's beginning, random workloads, shakes of a log."""

    jobs: int = 200_000
    seeds: int = 40
    head: int = 80_000
    workloads: int = 300
    shakes: int = 20
    reference: int = 60_000
    """Largest number of jobs for which the slow reference engine is also run under conservative backfilling."""
    logs: tuple[str, ...] = tuple(LOGS)
    quick: bool = False


QUICK = Sizes(jobs=10_000, seeds=20, head=2_000, workloads=20, shakes=5, reference=2_000, logs=("KTH-SP2", "ALCF-Theta"), quick=True)


@dataclass(frozen=True)
class Line:
    """A theoretical value and the mean of independent replications."""

    queue: str
    load: float
    what: str
    theory: float
    ours: float
    low95: float
    high95: float
    low99: float
    high99: float
    standard_error: float
    deviation: float
    """ours less theory, in standard errors"""
    passed: bool


def compare(queue: str, load: float, what: str, theory: float, values: Array) -> Line:
    """Theory against one value of each replication (float64), by a confidence interval of their mean (Student's t)."""
    values = np.asarray(values, np.float64)
    narrow, wide = mean_interval(values, 0.95), mean_interval(values, 0.99)
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    difference = narrow.mean - theory
    deviation = difference / error if error > 0 else 0.0 if difference == 0 else sys.float_info.max
    passed = abs(deviation) <= LIMIT
    return Line(queue, load, what, theory, narrow.mean, narrow.low, narrow.high, wide.low, wide.high, error, deviation, passed)


def find_logs(sizes: Sizes) -> dict[str, Workload]:
    """The available logs; of long ones the first jobs."""
    found = {}
    for name in sizes.logs:
        path = find_log(LOGS[name])
        if path is None:
            tell(f"log {name} is not available")
            continue
        log = read_log(path)
        log = log.with_machine(PAPER_PROCS.get(name, log.machine_procs))
        whole = len(log) <= sizes.head
        found[name] = log if whole else head(log, sizes.head)
    return found


def describe_logs(logs: dict[str, Workload]) -> dict[str, Numbers]:
    """Jobs and processors of each log, and the file that it is from."""
    return {
        name: {"jobs": len(log), "procs": log.machine_procs, "file": log_name(path)}
        for name, log in logs.items()
        if (path := find_log(LOGS[name])) is not None
    }


def tell(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr, flush=True)
