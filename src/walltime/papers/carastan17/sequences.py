"""The sequences of jobs on which carastan17 compares queue orders, and the orders.

A sequence has the jobs of 15 days and begins with an empty machine. Its first jobs are started in order of arrival and not measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from walltime import metrics
from walltime.estimates import ExactEstimates
from walltime.logs import read
from walltime.policy import Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

LENGTH = 15 * 86_400
"""Of a sequence, s."""
FIRST = 16
"""Jobs of a sequence that are started in order of arrival, and not measured."""
LEAST = 100
"""Jobs of a sequence at least; there are none so short in a log without gaps."""
TINY, EARLIEST = 1e-20, 0.1
AHEAD = 1e300
"""Score of the first jobs."""


def sequences(workload: Workload) -> list[Workload]:
    """The sequences of the log, one after the other; submit times count from the first job of each.

    The column `queue` is 1 for its first jobs and 0 for the others.
    """
    number = workload.submit // LENGTH
    found = []
    for each in range(int(number[-1]) + 1 if len(workload) else 0):
        mine = np.flatnonzero(number == each)
        if len(mine) < LEAST:
            continue
        jobs = {name: getattr(workload, name)[mine] for name in ("runtime", "requested", "procs", "job_id")}
        columns = {"queue": (np.arange(len(mine)) < FIRST).astype(np.int64)}
        submit = workload.submit[mine] - workload.submit[mine[0]]
        found.append(Workload.from_arrays(submit=submit, **jobs, machine_procs=workload.machine_procs, columns=columns))
    return [replace(one, origin=workload.origin) for one in found]


def fcfs(queue: int, submit: int) -> float:
    """First come, first served."""
    return AHEAD if queue == 1 else -float(submit)


def wfp3(queue: int, wait: int, believed: int, procs: int) -> float:
    """WFP3 of Tang et al. 2009."""
    return AHEAD if queue == 1 else (wait / believed) ** 3 * procs


def unicef(queue: int, wait: int, believed: int, procs: int) -> float:
    """UNICEF of Tang et al. 2009; jobs of one processor come first."""
    return AHEAD if queue == 1 else (wait + TINY) / ((math.log2(procs) + TINY) * believed)


def spt(queue: int, believed: int) -> float:
    """Shortest processing time first."""
    return AHEAD if queue == 1 else -float(believed)


def saf(queue: int, believed: int, procs: int) -> float:
    """Smallest area first."""
    return AHEAD if queue == 1 else -float(believed * procs)


def f2(queue: int, believed: int, procs: int, submit: int) -> float:
    """F2, the paper's best."""
    return AHEAD if queue == 1 else -(math.sqrt(believed) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


ORDERS: Mapping[str, Order] = {
    "fcfs": order(fcfs),
    "wfp3": order(wfp3),
    "unicef": order(unicef),
    "spt": order(spt),
    "saf": order(saf),
    "f2": order(f2),
}


def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
    """The mean bounded slowdown (`slowdown`) of one sequence under one scheduler.

    `task`: `file`, its `sha256` and the machine's `procs` (None for the log's own); `sequence`, from 0; `order`; `backfilling`; `exact`,
    whether the runtimes are known; `dialect`.
    """
    jobs = _sequences(str(task["file"]), task["procs"])[int(task["sequence"])]
    if task["exact"]:
        jobs = jobs.with_estimates(ExactEstimates(), 0)
    kind = Easy if task["backfilling"] else NoBackfilling
    rules = {"dialect": str(task["dialect"]), "overrun": "overrun"}
    schedule = simulate(jobs, kind(order=ORDERS[str(task["order"])]), progress=check, **rules)  # type: ignore[arg-type]
    slowdown = metrics.bounded_slowdown(schedule.wait, schedule.runtime)
    return {"slowdown": float(slowdown[FIRST:].mean())}


@functools.lru_cache(maxsize=2)
def _sequences(file: str, procs: int | None) -> list[Workload]:
    return sequences(read(file, procs=procs))
