"""Schedules: when every job started, by which columns, files and groups."""

from walltime.schedule.comparison import Comparison, compare
from walltime.schedule.files import read_schedule
from walltime.schedule.schedule import PredictionRecord, Schedule

__all__ = [
    "Comparison",
    "PredictionRecord",
    "Schedule",
    "compare",
    "read_schedule",
]
