"""Shared by all sections: workloads, medians of interleaved runs, child processes, and information about the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from walltime import read
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.estimates import ExactEstimates, effective_times
from walltime.policy import Policy
from walltime.provenance import version
from walltime.workload import Workload
from walltime.workload.models import MODELS

ROOT = Path(__file__).resolve().parents[1]
LONG = 5.0
"""Measurements that take more seconds than this are run only `Options.long_runs` times."""
MODEL_PROCS = 128
"""Default machine size for generated workloads."""
LOGS = {
    "KTH": "KTH-SP2-1996-2",
    "CTC": "CTC-SP2-1996-3.1-cln",
    "SDSC": "SDSC-SP2-1998-4.x-cln",
    "BLUE": "SDSC-BLUE-2000-4.x-cln",
}
"""The four logs of tsafrir06, by the prefix of their file names."""

Numbers = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Command line options: the number of runs, and whether small sizes or the longest measurements are wanted."""

    runs: int = 10
    long_runs: int = 3
    quick: bool = False
    full: bool = False

    def size(self, usual: int, quick: int) -> int:
        """The usual size, or the small one."""
        return quick if self.quick else usual


def spread(values: Sequence[float]) -> Numbers:
    """Median, lowest and highest of some runs, and their number."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "runs": len(values)}


def take_turns(works: Mapping[str, Callable[[], float]], options: Options) -> dict[str, Numbers]:
    """Run all functions in turn, several times, so that noise affects all of them; each returns its seconds."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(options.runs):
        for name, work in works.items():
            if turn < options.long_runs or statistics.median(taken[name]) <= LONG:
                taken[name].append(work())
    return {name: spread(seconds) for name, seconds in taken.items()}


def wall_seconds(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def kernel_run(workload: Workload, policy: Policy) -> NumberEngine:
    """One run of the compiled kernel; its `.seconds` exclude the preparation of its arrays."""
    runtime, planned = effective_times(workload, "kill")
    simulation = NumberEngine(Problem(workload.submit, runtime, planned, workload.procs, workload.machine_procs, policy))
    simulation.run()
    return simulation


def kernel_seconds(workload: Workload, policy: Policy) -> float:
    """Seconds of one run of the compiled kernel."""
    return kernel_run(workload, policy).seconds


def lublin(jobs: int, load: float, procs: int = MODEL_PROCS) -> Workload:
    """A workload of the Lublin'99 model."""
    return MODELS["lublin99"].generate(jobs, procs, load, 1)


def log_files() -> list[Path]:
    """Return the logs in WALLTIME_TRACES, else in ../shared/traces next to the checkout, else none."""
    folder = Path(os.environ.get("WALLTIME_TRACES") or ROOT.parent / "shared" / "traces")
    return sorted(folder.glob("*.swf*"))


def find_log(beginning: str) -> Path | None:
    """The log whose file name has this prefix, the shortest name first; None if it is missing."""
    found = [path for path in log_files() if path.name.startswith(beginning)]
    return min(found, key=lambda path: (len(path.name), path.name)) if found else None


def log_name(path: Path) -> str:
    """A log's file name without its extension."""
    return path.name.removesuffix(".gz").removesuffix(".swf")


def read_log(path: Path) -> Workload:
    """The log as in its file; CM5's requests are not limits, so its jobs are given exact estimates."""
    workload = read(path)
    return workload.with_estimates(ExactEstimates()) if path.name.startswith("LANL-CM5") else workload


def paper_logs(options: Options) -> dict[str, Workload]:
    """Those of the four logs of tsafrir06 that are available; only the smallest for quick measurements."""
    names = [name for name in LOGS if not options.quick or name == "KTH"]
    found = {name: find_log(LOGS[name]) for name in names}
    return {name: read_log(path) for name, path in found.items() if path is not None}


def peak_bytes() -> int:
    """Peak memory of this process since its program was loaded, in bytes (Linux).

    The value of `getrusage` would include the memory of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def child(name: str, *arguments: object, variables: Mapping[str, str] | None = None) -> Numbers:
    """Call a function of benchmarks/child.py in a separate process, with more variables of the environment; returns its measurements."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    call = [sys.executable, "-m", "benchmarks.child", name, *map(str, arguments)]
    done = subprocess.run(
        call, env=os.environ | {"PYTHONPATH": path} | dict(variables or {}), stdout=subprocess.PIPE, text=True, check=True
    )
    numbers: Numbers = json.loads(done.stdout.splitlines()[-1])
    return numbers


def environment() -> Numbers:
    """Information about the machine and the software, without the host name."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "load_before": round(os.getloadavg()[0], 2),
        "cores": cores(),
        "cpu": cpu_model(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
        "walltime": version(),
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model() -> str:
    """The processor's name, or its architecture if the system gives no more."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: the first column left-aligned, the others right-aligned."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    print(f"\n{title}")
    for row in cells:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))
    sys.stdout.flush()
