"""What holds for all tests: their profile, and the order in which they run."""

import gc
import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

from tests import profiles  # loads the profile before any test is collected, for tests with no number of examples too
from tests.golden_texts import golden  # noqa: F401 - a fixture
from tests.json_records import records_keep_their_schema  # noqa: F401 - a fixture

os.environ.pop("COLUMNS", None)  # texts are printed for an output without a width
HERE = Path(__file__).parent
SLOW = [HERE / name for name in ("browser", "campaign", "papers", "slurm")]
"""Folders in which every test counts as slow."""
EMPTY_DRAWING = '<svg viewBox="0 0 1 1" aria-hidden="true" focusable="false"></svg>'


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first in each half, which is what a worker begins with: in the end only short ones are left to share out."""
    for item in items:
        if item.path.parent in SLOW:
            item.add_marker("slow")
        if item.path.parent == HERE / "slurm":
            item.add_marker("slurm")
        if item.path.parent == HERE / "browser":
            item.add_marker("drawn")
    _leave_cases_for_the_night(items)
    slow = [item for item in items if item.get_closest_marker("slow")]
    short = [item for item in items if not item.get_closest_marker("slow")]
    a, b = len(slow) // 2, len(short) // 2
    while 0 < a < len(slow) and slow[a].path == slow[a - 1].path:
        a += 1  # what a module has made for its tests is not made again by the other worker
    items[:] = slow[:a] + short[:b] + slow[a:] + short[b:]


def _leave_cases_for_the_night(items: list[pytest.Item]) -> None:
    """Mark as `nightly` all cases of each `sampled` test but one in so many."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("nightly"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        mark = cases[0].get_closest_marker("sampled")
        assert mark is not None
        chosen = random.Random(name).sample(cases, -(-len(cases) // mark.args[0]))
        for case in cases:
            if case not in chosen:
                case.add_marker("nightly")


@pytest.fixture(autouse=True)
def quick_drawings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawings of pages empty, as they take two thirds of the time of a page; not at night, nor in tests marked `drawn`."""
    if profiles.PROFILE != "nightly" and not request.node.get_closest_marker("drawn"):
        monkeypatch.setattr("walltime.report.figure_files.to_svg", lambda figure, prefix: EMPTY_DRAWING)


def pytest_collection_finish() -> None:
    """What thousands of collected tests consist of stays until the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
