"""What holds for all tests: their profile, and the order in which they run."""

import gc
import os
from pathlib import Path

import pytest

from tests import profiles  # noqa: F401 - loads the profile before any test is collected, for tests with no number of examples too
from tests.golden_texts import golden  # noqa: F401 - a fixture
from tests.json_records import records_keep_their_schema  # noqa: F401 - a fixture

os.environ.pop("COLUMNS", None)  # texts are printed for an output without a width
HERE = Path(__file__).parent
SLOW = [HERE / name for name in ("browser", "campaign", "papers", "slurm")]
"""Folders in which every test counts as slow."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first in each half, which is what a worker begins with: in the end only short ones are left to share out."""
    for item in items:
        if item.path.parent in SLOW:
            item.add_marker("slow")
        if item.path.parent == HERE / "slurm":
            item.add_marker("slurm")
    slow = [item for item in items if item.get_closest_marker("slow")]
    short = [item for item in items if not item.get_closest_marker("slow")]
    a, b = len(slow) // 2, len(short) // 2
    while 0 < a < len(slow) and slow[a].path == slow[a - 1].path:
        a += 1  # what a module has made for its tests is not made again by the other worker
    items[:] = slow[:a] + short[:b] + slow[a:] + short[b:]


def pytest_collection_finish() -> None:
    """What thousands of collected tests consist of stays until the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
