"""Reports: figures and self-contained pages, of the schedules of a workload, of replications, and of campaigns."""

from typing import TYPE_CHECKING, Any

from walltime.lazy import lazy
from walltime.report.page import write_report
from walltime.report.text import answer, human_number, human_percent, human_time, labels

if TYPE_CHECKING:
    from walltime.report.accuracy import write_accuracy_report as write_accuracy_report
    from walltime.report.benchmark import write_leaderboard as write_leaderboard
    from walltime.report.calibration import write_calibration_report as write_calibration_report
    from walltime.report.campaign import write_campaign_report as write_campaign_report
    from walltime.report.learned import write_learned_report as write_learned_report
    from walltime.report.replicated import write_replicated_report as write_replicated_report
    from walltime.report.tuning import write_tuning_report as write_tuning_report
    from walltime.report.what_if import write_what_if_report as write_what_if_report

__all__ = [
    "answer",
    "human_number",
    "human_percent",
    "human_time",
    "labels",
    "write_accuracy_report",
    "write_calibration_report",
    "write_campaign_report",
    "write_leaderboard",
    "write_learned_report",
    "write_replicated_report",
    "write_report",
    "write_tuning_report",
    "write_what_if_report",
]

_LATER = {
    "report.accuracy": ("write_accuracy_report",),
    "report.benchmark": ("write_leaderboard",),
    "report.calibration": ("write_calibration_report",),
    "report.campaign": ("write_campaign_report",),
    "report.learned": ("write_learned_report",),
    "report.replicated": ("write_replicated_report",),
    "report.tuning": ("write_tuning_report",),
    "report.what_if": ("write_what_if_report",),
}
_get = lazy(__name__, _LATER)[0]


def __getattr__(name: str) -> Any:
    """Import the other pages on first use: those of many runs need the campaigns."""
    return _get(name)
