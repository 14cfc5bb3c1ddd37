"""Workloads: the jobs of a simulation as columns, models that generate them, and ways to vary them."""

from walltime.workload.columns import (
    BATCH_COLUMNS,
    INTERRUPTED,
    LIMIT,
    MISSING,
    PLANNED,
    PROCS,
    SCHEDULE_COLUMNS,
    SWF_BY_NAME,
    SWF_COLUMNS,
    Column,
)
from walltime.workload.origin import Origin
from walltime.workload.workload import MAX_TIME, Array, Workload, check_workload

__all__ = [
    "BATCH_COLUMNS",
    "INTERRUPTED",
    "LIMIT",
    "MAX_TIME",
    "MISSING",
    "PLANNED",
    "PROCS",
    "SCHEDULE_COLUMNS",
    "SWF_BY_NAME",
    "SWF_COLUMNS",
    "Array",
    "Column",
    "Origin",
    "Workload",
    "check_workload",
]
