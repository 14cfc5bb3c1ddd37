"""Benchmarks: suites of simulations that never change, verifiable results, and leaderboards."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.benchmark.result import (
        read_result as read_result,
        result_files as result_files,
        run_suite as run_suite,
        verify_result as verify_result,
    )
    from walltime.benchmark.standings import Standing as Standing, leaderboard as leaderboard
    from walltime.benchmark.suite import (
        SUITES as SUITES,
        Subject as Subject,
        Suite as Suite,
        parse_suite as parse_suite,
        read_suite as read_suite,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
