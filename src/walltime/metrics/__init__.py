"""Measure: one definition per function, with the paper it comes from. Everything here works on plain arrays."""

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
from walltime.metrics.summary import Summary, summarize
from walltime.metrics.trim import TRIMS, measured

__all__ = [
    "TRIMS",
    "BackfillStatistics",
    "Month",
    "Summary",
    "backfill_statistics",
    "bounded_slowdown",
    "busy_processors",
    "levels_at",
    "measured",
    "month_starts",
    "monthly",
    "offered_load",
    "queue_length",
    "relative_difference",
    "response",
    "slowdown",
    "steps",
    "summarize",
    "utilization",
    "wait",
    "weighted_wait",
]
