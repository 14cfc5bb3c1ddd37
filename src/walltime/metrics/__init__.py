"""Measure: one definition per function, with the paper it comes from. Everything here works on plain arrays."""

from walltime.metrics.confidence import (
    BatchMeans,
    Interval,
    batch_means,
    bootstrap,
    mean_interval,
    paired_difference,
    percentile_band,
    relative_spread,
)
from walltime.metrics.dynamics import Dynamics, DynamicsSummary, summarize_dynamics
from walltime.metrics.jobs import (
    BackfillStatistics,
    backfill_statistics,
    bounded_slowdown,
    relative_difference,
    response,
    slowdown,
    wait,
    weighted_wait,
)
from walltime.metrics.machine import busy_processors, levels_at, offered_load, queue_length, steps, utilization
from walltime.metrics.months import Month, month_starts, monthly
from walltime.metrics.summary import Summary, nothing_to_measure, summarize
from walltime.metrics.trim import TRIMS, measured

__all__ = [
    "TRIMS",
    "BackfillStatistics",
    "BatchMeans",
    "Dynamics",
    "DynamicsSummary",
    "Interval",
    "Month",
    "Summary",
    "backfill_statistics",
    "batch_means",
    "bootstrap",
    "bounded_slowdown",
    "busy_processors",
    "levels_at",
    "mean_interval",
    "measured",
    "month_starts",
    "monthly",
    "nothing_to_measure",
    "offered_load",
    "paired_difference",
    "percentile_band",
    "queue_length",
    "relative_difference",
    "relative_spread",
    "response",
    "slowdown",
    "steps",
    "summarize",
    "summarize_dynamics",
    "utilization",
    "wait",
    "weighted_wait",
]
