"""Frozen suites of simulations, results that others can check, and leaderboards."""

from walltime.benchmark.result import check_folder, read_result, run_suite, verify_result
from walltime.benchmark.standings import Standing, leaderboard
from walltime.benchmark.suite import SUITES, Subject, Suite, parse_suite, read_suite

__all__ = [
    "SUITES",
    "Standing",
    "Subject",
    "Suite",
    "check_folder",
    "leaderboard",
    "parse_suite",
    "read_result",
    "read_suite",
    "run_suite",
    "verify_result",
]
