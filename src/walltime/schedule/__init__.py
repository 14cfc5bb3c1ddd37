"""Schedules: the starts and ends of jobs, as columns, files and groups."""

from walltime.schedule.files import read_schedule
from walltime.schedule.schedule import PredictionRecord, Schedule
from walltime.schedule.side_by_side import Comparison, compare

__all__ = ["Comparison", "PredictionRecord", "Schedule", "compare", "read_schedule"]
