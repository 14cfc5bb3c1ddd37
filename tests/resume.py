"""Lets an interrupted nightly run continue: tests that passed at the same commit are not repeated.

`tools/test.sh` names two files in the environment: `WALLTIME_PASSED`, the tests that passed before, as they were at the start, so that all
workers leave out the same ones; and `WALLTIME_PASSING`, to which the tests that pass now are added.
"""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that have passed before."""
    passed = set(Path(os.environ["WALLTIME_PASSED"]).read_text(encoding="utf-8").splitlines())
    left_out = [item for item in items if item.nodeid in passed]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a test that has passed; called for all tests in the process that shares them out."""
    if report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ["WALLTIME_PASSING"]).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")
