"""Averages by groups of jobs: by calendar month, by size and length, by class of user."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from walltime.metrics import bounded_slowdown, month_starts
from walltime.workload import Workload

Array = np.ndarray

LONG = 3600
"""Jobs that run longer than this, s, are long."""
WIDE = 8
"""Jobs of more processors than this are wide."""
HEAVY, MEDIUM = 0.5, 0.9
"""The users with the most processor time, up to these shares of the total, are heavy and medium; the others are light."""
GROUPINGS: Mapping[str, str] = {
    "month": "calendar month in which the job ends",
    "class": f"short or long (over {LONG:,} s), narrow or wide (over {WIDE} processors)",
    "user": "heavy, medium or light users: those with the most processor time that make up the first 50 %, up to 90 %, the rest",
}
MEASURES = ("jobs", "mean_wait", "mean_response", "mean_bounded_slowdown", "median_wait", "p90_wait", "max_wait")


def group_names(workload: Workload, by: str, end: Array) -> Array:
    """The group of each job, shape (jobs,), text; "unknown" if the log lacks the data.

    `end`: int64 seconds, shape (jobs,).
    """
    jobs = len(workload)
    if by == "class":
        length = np.where(workload.runtime > LONG, "long", "short")
        return np.char.add(np.char.add(length, " "), np.where(workload.procs > WIDE, "wide", "narrow"))
    if by == "user":
        users = workload.columns.get("user")
        if users is None or not jobs or (users < 0).all():
            return np.full(jobs, "unknown")
        return _user_classes(workload, users)
    begin = workload.origin.unix_start_time
    if begin is None or not jobs:
        return np.full(jobs, "unknown")
    months = month_starts(begin + int(end.min()), begin + int(end.max()), workload.origin.tzinfo())
    names = np.array([f"{year}-{month:02d}" for year, month, _ in months])
    return names[np.searchsorted([first for _, _, first in months], begin + end, side="right") - 1]


def group_rows(workload: Workload, by: str, start: Array, submit: Array, runtime: Array, measured: Array) -> list[dict[str, object]]:
    """Averages of the measured jobs of each group, sorted by name.

    `start, submit, runtime`: int64 s, `measured`: bool; each of shape (jobs,).
    """
    names = group_names(workload, by, start + runtime)[measured]
    wait, run = (start - submit)[measured], runtime[measured]
    slowdown = bounded_slowdown(wait, run)
    rows: list[dict[str, object]] = []
    for name in np.unique(names):
        inside = names == name
        median, p90 = np.percentile(wait[inside], [50, 90])
        rows.append(
            {
                "by": by,
                "group": str(name),
                "jobs": int(inside.sum()),
                "mean_wait": float(wait[inside].mean()),
                "mean_response": float((wait + run)[inside].mean()),
                "mean_bounded_slowdown": float(slowdown[inside].mean()),
                "median_wait": float(median),
                "p90_wait": float(p90),
                "max_wait": float(wait[inside].max()),
            }
        )
    return rows


def _user_classes(workload: Workload, users: Array) -> Array:
    known, place = np.unique(users, return_inverse=True)
    area = np.bincount(place, weights=(workload.procs * workload.runtime).astype(np.float64))
    order = np.argsort(-area, kind="stable")
    before = np.empty(len(known))
    before[order] = np.concatenate([[0.0], np.cumsum(area[order])[:-1]]) / max(area.sum(), 1.0)
    classes = np.where(before < HEAVY, "heavy", np.where(before < MEDIUM, "medium", "light"))
    return np.where(users < 0, "unknown", classes[place])
