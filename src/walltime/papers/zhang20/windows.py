"""The windows on which zhang20 compares schedulers, and the formulas that it compares.

Read in the published program, RLScheduler. A window has 1,024 jobs and begins with an empty machine; times are those of the log. A job
needs the larger one of the processors that it had and that it asked for, and its request is its runtime where the log has none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from walltime.logs import read
from walltime.policy import FCFS, SJF, Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

JOBS = 1024
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
"""The jobs that the ten windows begin with, from 0, of those that have a runtime."""
TINY = 1e-20
EARLIEST = 0.1
"""Stands for a submit time of 0 in logarithms, s."""


def windows(workload: Workload) -> list[Workload]:
    """The ten windows; of a log with fewer jobs than theirs, windows at equal distances; of one with less than a window, all jobs."""
    used = np.flatnonzero(workload.runtime > 0)
    last = max(len(used) - JOBS, 0)
    starts = STARTS if max(STARTS) <= last else np.linspace(0, last, min(len(STARTS), 1 + last)).astype(int).tolist()
    requested = workload.columns.get("requested_procs", workload.procs)
    procs = np.maximum(workload.procs, requested)
    found = []
    for start in starts:
        mine = used[start : start + JOBS]
        columns = {name: values[mine] for name, values in workload.columns.items() if name != "preceding_job"}
        jobs = {name: getattr(workload, name)[mine] for name in ("submit", "runtime", "requested", "job_id")}
        machine = workload.machine_procs
        found.append(Workload.from_arrays(**jobs, procs=procs[mine], machine_procs=machine, columns=columns, origin=workload.origin))
    return found


def f1(believed: int, procs: int, submit: int) -> float:
    """F1 of carastan17."""
    return -(math.log10(believed) * procs + 870 * math.log10(max(submit, EARLIEST)))


def f2(believed: int, procs: int, submit: int) -> float:
    """F2 of carastan17."""
    return -(math.sqrt(believed) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


def f3(believed: int, procs: int, submit: int) -> float:
    """F3 of carastan17."""
    return -(believed * procs + 6_860_000 * math.log10(max(submit, EARLIEST)))


def f4(believed: int, procs: int, submit: int) -> float:
    """F4 of carastan17."""
    return -(believed * math.sqrt(procs) + 530_000 * math.log10(max(submit, EARLIEST)))


def saf(believed: int, procs: int) -> float:
    """Smallest area first."""
    return -float(believed * procs)


def wfp3(wait: int, believed: int, procs: int) -> float:
    """WFP3, with the time that the job has waited."""
    return (wait / believed) ** 3 * procs


def unicep(wait: int, believed: int, procs: int) -> float:
    """UNICEP, with the time that the job has waited; jobs of one processor come first."""
    return (wait + TINY) / ((math.log2(procs) + TINY) * believed)


def wfp3_in_print(believed: int, procs: int, submit: int) -> float:
    """WFP3 as in the program, whose waiting time is -1 - submit, as the start of a waiting job is -1."""
    return ((-1 - submit) / believed) ** 3 * procs


def unicep_in_print(believed: int, procs: int, submit: int) -> float:
    """UNICEP as in the program, with the same waiting time; jobs of one processor come last."""
    return (-1 - submit + TINY) / ((math.log2(procs) + TINY) * believed)


FORMULAS: Mapping[str, Order] = {
    "fcfs": FCFS,
    "wfp3": order(wfp3_in_print),
    "unicep": order(unicep_in_print),
    "sjf": SJF,
    "f1": order(f1),
}
"""What Table V compares, as the program computes it."""
MEANT: Mapping[str, Order] = {"wfp3": order(wfp3), "unicep": order(unicep)}
"""With the waiting time as it was meant."""
OTHERS: Mapping[str, Order] = {"f2": order(f2), "f3": order(f3), "f4": order(f4), "saf": order(saf)}
"""What the paper does not print."""
AS_MEANT: Mapping[str, Order] = {**FORMULAS, **MEANT, **OTHERS}
ORDERS: Mapping[str, Mapping[str, Order]] = {"printed": FORMULAS, "meant": AS_MEANT}


def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
    """The mean bounded slowdown (`slowdown`) of one window under one scheduler.

    `task`: `file` and its `sha256`; `window`, from 0; `backfilling`; `formula`, and `as`, whether it is the one `printed` or as `meant`;
    `dialect`.
    """
    check(0)
    jobs = _windows(str(task["file"]))[int(task["window"])]
    kind = Easy if task["backfilling"] else NoBackfilling
    chosen = ORDERS[str(task["as"])][str(task["formula"])]
    schedule = simulate(jobs, kind(order=chosen), dialect=str(task["dialect"]), overrun="overrun")
    return {"slowdown": schedule.summary().mean_bounded_slowdown}


@functools.lru_cache(maxsize=4)
def _windows(file: str) -> list[Workload]:
    return windows(read(file))
