"""Pages, tables and figures: of the schedules of a workload, of replications, of campaigns, and of everything else that is simulated."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.report.accuracy import accuracy_page as accuracy_page
    from walltime.report.answers import answer as answer
    from walltime.report.calibration import calibration_page as calibration_page
    from walltime.report.campaign import campaign_page as campaign_page
    from walltime.report.comparison_page import write_comparison_page as write_comparison_page
    from walltime.report.html import write_page as write_page
    from walltime.report.replicated import replicated_page as replicated_page
    from walltime.report.what_if import what_if_page as what_if_page
    from walltime.report.windows import leaderboard_page as leaderboard_page
    from walltime.report.windows import learned_page as learned_page
    from walltime.report.windows import tuning_page as tuning_page

__getattr__, __dir__, __all__ = lazy(__name__)
