"""Averages by groups of jobs, as rows of a campaign's store."""

from __future__ import annotations

import numpy as np

from walltime.schedule.breakdown import breakdown
from walltime.schedule.groups import group_jobs
from walltime.workload import Workload

Array = np.ndarray

MEASURES = ("jobs", "mean_wait", "mean_response", "mean_bounded_slowdown", "median_wait", "p90_wait", "max_wait")


def group_rows(workload: Workload, by: str, start: Array, submit: Array, runtime: Array, measured: Array) -> list[dict[str, object]]:
    """Averages of the measured jobs of each group, sorted by name.

    `start, submit, runtime`: int64 s, `measured`: bool; each of shape (jobs,).
    """
    groups = group_jobs(workload, by, submit, start + runtime, runtime=runtime)
    rows = breakdown(groups, start - submit, runtime, workload.procs, measured)
    return [
        {"by": by, "group": row["group"], **{name: row[name] for name in MEASURES}} for row in sorted(rows, key=lambda row: row["group"])
    ]
