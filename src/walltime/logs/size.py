"""How large a machine must have been, from the jobs that ran on it."""

from __future__ import annotations

from dataclasses import dataclass

from walltime.logs.joblog import JobLog, highest_use, widest


@dataclass(frozen=True)
class SizeEstimate:
    """A lower bound of the size of a machine.

    `procs`: the most processors that were busy at once, and `seconds` how long they were in sum; None if the log does not say when jobs
    ran, and then `procs` is the widest job. `nodes`, `nodes_seconds`: the same of nodes, None if the log has none.
    """

    procs: int
    seconds: int | None
    nodes: int | None = None
    nodes_seconds: int | None = None


def estimated_size(log: JobLog) -> SizeEstimate | None:
    """How large the machine of a log must have been at least; None if no job of it has a size.

    >>> log = JobLog(2, {"submit": [0, 5], "wait": [0, 0], "runtime": [9, 9], "allocated_procs": [4, 2], "nodes": [2, 1]})
    >>> estimated_size(log)
    SizeEstimate(procs=6, seconds=4, nodes=3, nodes_seconds=4)
    """
    procs = highest_use(log)
    if procs is None:
        most = widest(log)
        return SizeEstimate(most, None) if most > 0 else None
    nodes = highest_use(log, "nodes") if "nodes" in log.columns else None
    return SizeEstimate(procs.most, procs.seconds, *(nodes or (None, None)))
