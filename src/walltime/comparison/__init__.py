"""Schedules side by side: the commands simulate, compare and demo, their tables and pages."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.comparison.answers import answer as answer
    from walltime.comparison.combination_means import (
        CombinationMean as CombinationMean,
        compare_cells as compare_cells,
        replication_cells as replication_cells,
    )
    from walltime.comparison.many_runs_page import curves as curves, replicated_page as replicated_page
    from walltime.comparison.page import write_comparison_page as write_comparison_page

__getattr__, __dir__, __all__ = lazy(__name__)
