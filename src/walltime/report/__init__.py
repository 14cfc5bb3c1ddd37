"""Reports: figures and one self-contained page that compares the schedules of a workload."""

from walltime.report.page import write_report
from walltime.report.text import answer, human_number, human_percent, human_time, labels

__all__ = ["answer", "human_number", "human_percent", "human_time", "labels", "write_report"]
