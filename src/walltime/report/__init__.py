"""Pages, tables and figures: of the schedules of a workload, of replications, of campaigns, and of everything else that is simulated."""

from typing import TYPE_CHECKING, Any

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.report.accuracy import write_accuracy_report as write_accuracy_report
    from walltime.report.answers import answer as answer
    from walltime.report.calibration import write_calibration_report as write_calibration_report
    from walltime.report.campaign import write_campaign_report as write_campaign_report
    from walltime.report.comparison import write_report as write_report
    from walltime.report.replicated import write_replicated_report as write_replicated_report
    from walltime.report.what_if import write_what_if_report as write_what_if_report
    from walltime.report.windows import write_leaderboard as write_leaderboard
    from walltime.report.windows import write_learned_report as write_learned_report
    from walltime.report.windows import write_tuning_report as write_tuning_report

_HOMES = {
    "report.accuracy": ("write_accuracy_report",),
    "report.answers": ("answer",),
    "report.calibration": ("write_calibration_report",),
    "report.campaign": ("write_campaign_report",),
    "report.comparison": ("write_report",),
    "report.replicated": ("write_replicated_report",),
    "report.what_if": ("write_what_if_report",),
    "report.windows": ("write_leaderboard", "write_learned_report", "write_tuning_report"),
}
_get, _names, __all__ = lazy(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Import a page on first use: those of many runs need the campaigns."""
    return _get(name)
