"""Averages by groups of jobs: who waits, and how long."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.metrics import bounded_slowdown
from walltime.schedule.groups import Groups

Array = np.ndarray
MEASURES = ("jobs", "share_of_use", "mean_wait", "median_wait", "p90_wait", "max_wait", "mean_response", "mean_bounded_slowdown")
"""What a breakdown says of each group."""


def breakdown(groups: Groups, wait: Array, runtime: Array, procs: Array, measured: Array) -> list[dict[str, Any]]:
    """Averages of the measured jobs of each group that has any, in the order of the groups.

    `wait, runtime`: int64 s, `procs`: int64 processors, `measured`: bool; each of shape (jobs,). A row has the `group`, the number of
    `jobs`, its `share_of_use` (of the processor time of all measured jobs), and waits, responses (s) and bounded slowdowns.
    """
    use = procs.astype(np.float64) * runtime
    total = float(use[measured].sum())
    slowdown = bounded_slowdown(wait, runtime)
    rows = []
    for name, inside in groups.members(measured):
        waits = wait[inside]
        median, p90 = np.percentile(waits, [50, 90])
        rows.append(
            {
                "group": name,
                "jobs": len(inside),
                "share_of_use": float(use[inside].sum()) / total if total else float("nan"),
                "mean_wait": float(waits.mean()),
                "median_wait": float(median),
                "p90_wait": float(p90),
                "max_wait": float(waits.max()),
                "mean_response": float((waits + runtime[inside]).mean()),
                "mean_bounded_slowdown": float(slowdown[inside].mean()),
            }
        )
    return rows
