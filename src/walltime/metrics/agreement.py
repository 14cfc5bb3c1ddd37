"""How recorded and simulated waits of a group of jobs agree, and which differences on a simulation can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from walltime.metrics.recorded import recorded_waits
from walltime.metrics.summary import Averages
from walltime.metrics.weekly_interval import FEWEST_WEEKS, LogWeeks, largest_of_parts
from walltime.wording import human_time

Array = np.ndarray
FEW_JOBS = 50
"""A group of fewer jobs cannot be trusted."""
POOR_RANKS = 0.2
"""Nor one whose rank correlation is below this: the jobs that wait long are not those that did."""
NEAR = (60, 600, 3600)
"""A simulated start within this of the recorded one, s, is counted."""


@dataclass(frozen=True)
class Agreement(Averages):
    """Recorded and simulated waits of a group of jobs, s, and from which difference of mean waits on a simulation says something.

    `bias`: mean simulated minus mean recorded wait; `low, high`: the interval of its mean over such weeks, nan where there is none.
    `threshold`: the largest absolute value of the bias in that interval, or in a fifth of the log where there is none. `doubt`: why no
    difference can be trusted, empty if some can.
    `within`: shares of the jobs whose simulated start is within 1 min, 10 min, 1 h of the recorded one.
    """

    by: str
    group: str
    jobs: int
    mean_recorded: float
    mean_simulated: float
    median_recorded: float
    median_simulated: float
    p90_recorded: float
    p90_simulated: float
    correlation: float
    rank_correlation: float
    within: tuple[float, ...]
    bias: float
    low: float
    high: float
    threshold: float
    doubt: str = ""


def agreement(by: str, group: str, recorded: Array, simulated: Array, weeks: LogWeeks, inside: Array) -> Agreement:
    """Compare recorded with simulated waits, int64 s, of the jobs of a group.

    `weeks`: of the whole log; `inside`: the jobs of the group among those of the log, bool.
    """
    waits = recorded_waits(recorded, simulated)
    off = (simulated - recorded).astype(np.float64)
    bias = float(off.mean())
    low, high = weeks.ends(off, inside)
    row = Agreement(
        by=by,
        group=group,
        within=tuple(float(np.mean(np.abs(off) <= near)) for near in NEAR),
        bias=bias,
        low=low,
        high=high,
        threshold=largest_of_parts(off, weeks.parts[inside]) if math.isnan(low) else max(abs(low), abs(high), abs(bias)),
        **{f.name: getattr(waits, f.name) for f in fields(waits) if f.name in Agreement.__dataclass_fields__},
    )
    return replace(row, doubt=_doubt(row, len(np.unique(weeks.weeks[inside])) >= FEWEST_WEEKS))


def _doubt(row: Agreement, weeks: bool) -> str:
    """Why no difference of this group can be trusted; empty if some can."""
    if row.jobs < FEW_JOBS:
        return f"only {row.jobs:,} job{'' if row.jobs == 1 else 's'}"
    if not weeks:
        return "under 4 weeks"
    if row.mean_recorded and row.threshold > row.mean_recorded:
        return f"off by up to {human_time(row.threshold)}, more than the recorded mean wait of {human_time(row.mean_recorded)}"
    if row.rank_correlation < POOR_RANKS:
        return f"the jobs that wait long are not those that did: rank correlation {row.rank_correlation:.2f}"
    return ""
