"""Requested, allocated and used hours of each job by resource, and the causes of lost hours. The glossary defines each number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from walltime.metrics.estimates import FAILED, has_limit, reached_limit
from walltime.metrics.right_size import memory_of
from walltime.usage.records import CAUSES
from walltime.workload import Array, Workload

_OF_STATE = {
    **{"OUT_OF_MEMORY": "out_of_memory", "NODE_FAIL": "node_failure", "BOOT_FAIL": "node_failure"},
    **{"PREEMPTED": "preempted", "REQUEUED": "earlier_runs", "CANCELLED": "cancelled", "REVOKED": "cancelled"},
}
"""The causes of lost hours by Slurm's state; jobs in other states count as failed if their status is failed."""
_CANCELLED = 5
_MB = 1024


@dataclass(frozen=True, eq=False)
class JobHours:
    """Hours of each job by resource (`RESOURCES`), float64, shape (jobs,), nan where unknown.

    Resources without any known hours are left out. `asked`: amount requested x time requested. `allocated`: amount allocated x runtime; if
    the log does not record the allocated memory, as in SWF, the larger of the request and the use. `used`: processor time; GPUs x runtime x
    mean use; peak memory x runtime. The use of nodes is not recorded.
    """

    asked: Mapping[str, Array]
    allocated: Mapping[str, Array]
    used: Mapping[str, Array]


def job_hours(workload: Workload) -> JobHours:
    """Return the requested, allocated and used hours of each job, by resource."""
    w = workload
    ran = w.runtime / 3600
    limit = np.where(has_limit(w), w.requested / 3600, np.nan)
    gpus, cpu_time = _known(w, "gpus"), _known(w, "cpu_time")
    if "gpus" in w.columns:
        gpus = np.nan_to_num(gpus)  # jobs without GPUs
    asked_gpus = _known(w, "requested_gpus")
    if not np.isnan(asked_gpus[gpus > 0]).all():  # else zeros of jobs without GPUs would be the whole sum
        asked_gpus = np.where(gpus == 0, 0.0, asked_gpus)
    asked = {
        "cores": _positive(w, "requested_procs") * limit,
        "gpus": asked_gpus * limit,
        "memory": memory_of(w, "requested_mem_mb") / _MB * limit,
        "nodes": _positive(w, "requested_nodes") * limit,
    }
    memory = memory_of(w, "mem_mb")
    if "mem_mb" not in w.columns:
        memory = np.where(memory_beyond(w), memory_of(w, "used_mem_mb"), memory)
    allocated = {
        "cores": w.procs * ran,
        "gpus": gpus * ran,
        "memory": memory / _MB * ran,
        "nodes": _positive(w, "nodes") * ran,
    }
    used = {
        "cores": cpu_time * w.procs / 3600,
        "gpus": np.where(gpus > 0, gpus * _known(w, "gpu_use") / 100, np.nan) * ran,
        "memory": memory_of(w, "used_mem_mb") / _MB * ran,
        "nodes": np.full(len(w), np.nan),
    }
    known = [name for name, hours in allocated.items() if (hours > 0).any()]
    return JobHours(*({name: kind[name] for name in known} for kind in (asked, allocated, used)))


def memory_beyond(workload: Workload) -> Array:
    """Return a mask (bool) of the jobs that used more memory than allocated or, if the log lacks the column `mem_mb`, than requested."""
    return memory_of(workload, "used_mem_mb") > memory_of(workload, "mem_mb")


def lost_by(workload: Workload) -> Array:
    """Return the cause of each job's lost hours, int64: its index in `CAUSES`, or -1 if the job lost none.

    For a job that reached its limit, this is the cause in any state. Otherwise the cause follows from the state or, if unknown, the status.
    """
    names = list(CAUSES)
    status = workload.columns.get("status", np.full(len(workload), -1))
    cause = np.where(status == FAILED, names.index("failed"), np.where(status == _CANCELLED, names.index("cancelled"), -1))
    if "state" in workload.columns:
        texts = workload.origin.names.get("state", ())
        table = np.array([-1, *(names.index(_OF_STATE[text]) if text in _OF_STATE else -1 for text in texts)], np.int64)
        states = np.maximum(workload.columns["state"], 0)
        by_state = np.where(states < len(table), table[np.minimum(states, len(table) - 1)], -1)
        cause = np.where(by_state >= 0, by_state, cause)
    return np.where(reached_limit(workload), names.index("limit"), cause)


def _known(workload: Workload, name: str) -> Array:
    """Return a column as float64, nan where unknown."""
    values = np.asarray(workload.columns.get(name, np.full(len(workload), -1.0)), np.float64)
    return np.where(values >= 0, values, np.nan)


def _positive(workload: Workload, name: str) -> Array:
    values = _known(workload, name)
    return np.where(values > 0, values, np.nan)
