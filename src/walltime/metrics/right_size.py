"""Right-size requests: compute each job's need of each resource, and derive requests from the use of earlier jobs."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from walltime.errors import WorkloadError
from walltime.estimates.suggestion import LEAST, ROUND, exceeded_by
from walltime.metrics.estimates import has_limit, reached_limit
from walltime.wording import counted
from walltime.workload import Array, Workload
from walltime.workload.columns import IDLE_GPU

STEPS = {"memory": 256, "cores": 1, "gpus": 1, "time": ROUND}
"""Units to which suggestions are rounded up: MB, processors, GPUs, s."""
WORDS = {"memory": "memory", "cores": "processors", "gpus": "GPUs", "time": "walltime"}
SUGGESTED, USED = "suggested", "used"
SHORT = "memory_short"
"""Column that is 1 for jobs that run out of memory with a smaller request, else 0."""
RISK = 5.0
"""Percentage of similar jobs that may need more than is suggested."""


_PER_PROC = {"used_mem_mb": "memory", "requested_mem_mb": "requested_memory", "mem_mb": "requested_memory"}


def memory_of(w: Workload, name: str) -> Array:
    """Return a column of the jobs' memory, MB, float64, NaN if unknown; if the log lacks it, computed from SWF's memory per processor."""
    values = w.columns[name] if name in w.columns else w.columns.get(_PER_PROC[name], np.full(len(w), -1.0)) * w.procs / 1024
    return np.where(values > 0, values, np.nan)


def needs(w: Workload) -> dict[str, tuple[Array, Array, Array]]:
    """Return, for each resource, each job's need (float64, NaN if unknown), whether the need is only a lower bound, and the request.

    The resources are those of `STEPS` except time. The need is a lower bound if a job ran out of memory.
    """

    def column(name: str) -> Array:
        values = np.asarray(w.columns.get(name, np.full(len(w), -1.0)), np.float64)
        return np.where(values >= 0, values, np.nan)

    memory, allocated, requested = (memory_of(w, name) for name in ("used_mem_mb", "mem_mb", "requested_mem_mb"))
    gpus, use, idle = (column(name) for name in ("gpus", "gpu_use", "gpus_idle"))
    busy_gpus = np.where(np.isnan(idle), np.where(np.isnan(use), np.nan, np.where(use < IDLE_GPU, 0.0, gpus)), gpus - idle)
    states = w.origin.names.get("state", ())
    killed = column("state") == (states.index("OUT_OF_MEMORY") + 1 if "OUT_OF_MEMORY" in states else -1)
    if not np.isnan(memory).all():  # otherwise only the needs of jobs that ran out of memory would be known
        memory = np.where(killed, np.fmax(memory, allocated), memory)
    busy = np.where(w.runtime > 0, column("cpu_time") * w.procs / np.maximum(w.runtime, 1), np.nan)
    uncut = np.zeros(len(w), bool)
    return {
        "memory": (memory, killed, np.where(np.isnan(requested), allocated, requested)),
        "cores": (busy, uncut, w.procs.astype(np.float64)),
        "gpus": (busy_gpus, uncut, gpus),
    }


def right_sized(workload: Workload, resource: str, how: str | float, risk: float = RISK) -> Workload:
    """Return the jobs with other requests of a resource (`STEPS`), never larger than their own unless by a factor.

    `how`: "used" for each job's own use; "suggested" for `suggested_amounts` at this `risk`, percent; or a factor. Jobs for which this is
    unknown keep their request. So do jobs on several nodes, for processors and GPUs, and jobs on whole nodes, for processors. A job that
    needs more memory than it requests is simulated with twice its runtime: it fails at its end and runs again, with twice the memory or, if
    that does not suffice, with its old request. `SHORT` marks it. Raises WorkloadError if the log does not record the use.
    """
    w = workload
    needed, cut, old = _needs_of(w, resource)
    if isinstance(how, float):
        new = np.ceil(old * how)
    else:
        if np.isnan(needed).all():
            raise WorkloadError(
                f"{w.origin.name} does not record the {WORDS[resource]} that its jobs used; use a log with it, or a factor", "use_unknown"
            )
        if resource == "memory" and not {"mem_mb", "requested_mem_mb"} & set(w.columns):
            raise WorkloadError(
                f"{w.origin.name} records memory by processor, which is not simulated; use a log with the memory of jobs", "use_unknown"
            )
        step = STEPS[resource]
        new = np.ceil(needed / step) * step if how == USED else suggested_amounts(w, resource, risk)
        new = np.where(
            cut & (how == USED), old, np.where(np.isnan(new), old, np.minimum(np.maximum(new, 0 if resource == "gpus" else step), old))
        )
    return _changed(w, resource, new, f"{how}", needed, cut, old)


def with_requests(workload: Workload, resource: str, new: Array, how: str) -> Workload:
    """Return the jobs with these requests of a resource, float64, NaN to keep a request; requests never grow.

    The same jobs keep their requests as in `right_sized`. `how`: the new requests in words, for the workload's list of changes.
    """
    needed, cut, old = _needs_of(workload, resource)
    return _changed(workload, resource, np.where(np.isnan(new), old, np.minimum(new, old)), how, needed, cut, old)


def suggested_amounts(w: Workload, resource: str, risk: float = RISK) -> Array:
    """Return the suggested amount for each job, float64, in the unit of `STEPS`; NaN if fewer than ten earlier jobs are known.

    At most `risk` percent of the earlier jobs with the same user, job name, processors and request exceeded it. Earlier jobs are those that
    had ended before the job was submitted. Jobs that request another amount usually need another amount.
    """
    needed, cut, old = _needs_of(w, resource)
    users, names = (w.columns.get(name, np.zeros(len(w), np.int64)).tolist() for name in ("user", "executable"))
    sizes, requests = w.procs.tolist(), np.nan_to_num(old, nan=-1).tolist()
    lengths = np.where(np.isnan(needed), -1, np.ceil(np.nan_to_num(needed)) + cut).astype(np.int64).tolist()
    wait = w.recorded_wait
    end = w.submit + w.runtime + (0 if wait is None else np.maximum(wait, 0))
    ends, known, place = np.argsort(end, kind="stable").tolist(), defaultdict[tuple[float, ...], list[int]](list), 0
    found = np.full(len(w), np.nan)
    for job in np.argsort(w.submit, kind="stable").tolist():
        while place < len(ends) and end[ends[place]] < w.submit[job]:
            earlier, place = ends[place], place + 1
            if lengths[earlier] >= 0:
                insort(known[users[earlier], names[earlier], sizes[earlier], requests[earlier]], lengths[earlier])
        like = known[users[job], names[job], sizes[job], requests[job]]
        if len(like) >= LEAST:
            found[job] = 0 if resource == "gpus" and like[-1] == 0 else exceeded_by(risk, like, STEPS[resource])
    return found


def _needs_of(w: Workload, resource: str) -> tuple[Array, Array, Array]:
    """Return the result of `needs` for one resource or for time; unknown requests are NaN."""
    if resource == "time":
        return w.runtime.astype(np.float64), reached_limit(w), np.where(has_limit(w), w.requested, np.nan).astype(np.float64)
    needed, cut, requested = needs(w)[resource]
    return needed, cut, np.where(requested > 0, requested, np.nan)


def _changed(w: Workload, resource: str, new: Array, how: str, needed: Array, cut: Array, old: Array) -> Workload:
    one_node = np.asarray(w.columns.get("nodes", np.ones(len(w)))) <= 1
    keeps = np.zeros(len(w), bool) if resource in ("memory", "time") else ~one_node
    if resource == "cores":
        keeps |= np.asarray(w.columns.get("exclusive", np.zeros(len(w)))) == 1
    changed = ~np.isnan(old) & (new != old) & ~keeps
    if not changed.any():
        return w
    changes = {"memory": _memory, "cores": _cores, "gpus": _gpus, "time": _time}
    sized = changes[resource](w, changed, np.where(changed, new, old), old, needed, cut)
    return replace(sized, origin=w.origin.after(f"{WORDS[resource]} requested as {how}: {counted(int(changed.sum()), 'job')}"))


def _scaled(w: Workload, names: tuple[str, ...], changed: Array, share: Array) -> dict[str, Array]:
    """Return the columns of positive amounts, scaled for the changed jobs and rounded up."""
    columns = {name: w.columns[name] for name in names if name in w.columns}
    return {
        name: np.where(changed & (one > 0), np.maximum(np.ceil(one * share), 1), one).astype(one.dtype) for name, one in columns.items()
    }


def _memory(w: Workload, changed: Array, new: Array, old: Array, needed: Array, cut: Array) -> Workload:
    more = np.nan_to_num(needed)
    short = changed & ~cut & (more > new)  # a job that runs out of memory today does so with any smaller request
    held = np.where(short, np.where(more <= 2 * new, np.minimum(2 * new, old), old), new)
    share = np.where(changed, held / np.maximum(old, 1), 1.0)
    columns = _scaled(w, ("mem_mb", "requested_mem_mb", "mem_mb_per_node", "mem_mb_per_cpu", "requested_memory"), changed, share)
    runs = np.where(short, 2, 1)
    energy = {"energy": np.where(w.columns["energy"] > 0, w.columns["energy"] * runs, -1)} if "energy" in w.columns else {}
    same = w.planned is w.requested
    requested = w.requested * runs
    return replace(
        w,
        runtime=w.runtime * runs,
        requested=requested,
        planned=requested if same else w.planned * runs,
        columns={**w.columns, **columns, **energy, SHORT: np.maximum(short, w.columns.get(SHORT, 0)).astype(np.int64)},
    )


def _cores(w: Workload, changed: Array, new: Array, old: Array, needed: Array, cut: Array) -> Workload:
    procs = np.where(changed, new, w.procs).astype(np.int64)
    columns: Mapping[str, Array] = {
        **_scaled(w, ("cpus_per_task",), changed & (w.columns.get("cpus_per_task", np.zeros(len(w))) > 1), new / np.maximum(old, 1)),
        **{name: np.where(changed, procs, w.columns[name]) for name in ("requested_procs", "allocated_procs") if name in w.columns},
        **({"tasks_per_node": np.where(changed, -1, w.columns["tasks_per_node"])} if "tasks_per_node" in w.columns else {}),
    }
    return replace(w, procs=procs, columns={**w.columns, **columns})


def _gpus(w: Workload, changed: Array, new: Array, old: Array, needed: Array, cut: Array) -> Workload:
    gpus = np.nan_to_num(new).astype(np.int64)
    columns = {name: np.where(changed, gpus, w.columns[name]) for name in ("gpus", "requested_gpus") if name in w.columns}
    if "gpus_per_node" in w.columns:
        columns["gpus_per_node"] = np.where(changed & (w.columns["gpus_per_node"] > 0), gpus, w.columns["gpus_per_node"])
    if "gpus_per_task" in w.columns:
        columns["gpus_per_task"] = np.where(changed, -1, w.columns["gpus_per_task"])
    for name in ("gpu_type", "requested_gpu_type"):
        if name in w.columns:
            columns[name] = np.where(changed & (gpus == 0), -1, w.columns[name])
    return replace(w, columns={**w.columns, **columns})


def _time(w: Workload, changed: Array, new: Array, old: Array, needed: Array, cut: Array) -> Workload:
    requested = np.where(changed, new, w.requested).astype(np.int64)
    return replace(w, requested=requested, planned=requested if w.planned is w.requested else np.minimum(w.planned, requested))
