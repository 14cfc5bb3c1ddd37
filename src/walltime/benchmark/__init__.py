"""Frozen suites of simulations, results that others can check, and leaderboards."""

from walltime.benchmark.result import read_result, result_files, run_suite, verify_result
from walltime.benchmark.standings import Standing, leaderboard
from walltime.benchmark.suite import SUITES, Subject, Suite, parse_suite, read_suite

__all__ = [
    "SUITES",
    "Standing",
    "Subject",
    "Suite",
    "leaderboard",
    "parse_suite",
    "read_result",
    "read_suite",
    "result_files",
    "run_suite",
    "verify_result",
]
