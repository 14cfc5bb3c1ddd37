"""Benchmarks: suites of simulations that never change, verifiable results, and leaderboards."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.benchmark.result import read_result as read_result
    from walltime.benchmark.result import result_files as result_files
    from walltime.benchmark.result import run_suite as run_suite
    from walltime.benchmark.result import verify_result as verify_result
    from walltime.benchmark.standings import Standing as Standing
    from walltime.benchmark.standings import leaderboard as leaderboard
    from walltime.benchmark.suite import SUITES as SUITES
    from walltime.benchmark.suite import Subject as Subject
    from walltime.benchmark.suite import Suite as Suite
    from walltime.benchmark.suite import parse_suite as parse_suite
    from walltime.benchmark.suite import read_suite as read_suite

__getattr__, __dir__, __all__ = lazy(__name__)
