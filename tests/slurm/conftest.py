"""A real Slurm for tests; where it cannot be started they are skipped, and say why."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.slurm.chroot import NoChrootError, folder, is_made, made, version
from tests.slurm.lab import Lab, NoLabError

HALF_RULE = (25, 5, 4)
"""From this version on running jobs, too, are planned by TimeMin where limits are soft."""


LONGEST = ("test_adjust_failures", "test_adjust", "test_prolog", "test_kinds", "test_unlucky")
"""Files that take the longest; with --no-loadscope-reorder the workers begin with them."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What matters mostly where limits are shortened is tried at night with soft limits, but for the named cases."""
    if all(item.path.parent == Path(__file__).parent for item in items):
        items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    for item in items:
        mark = item.get_closest_marker("mostly_short")
        if mark is not None and "[26.05-" in item.nodeid and not any(item.nodeid.endswith(f"-{case}]") for case in mark.args):
            item.add_marker("nightly")


SHARED = "test_a_killed_sidecar"
"""Tests of which there are many on 22.05: they have a cluster without the others of their file."""


class ByCluster(LoadScopeScheduling):
    """Tests that share a cluster stay together on one worker, each version of it on its own, and the many of SHARED in two parts."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        which = re.search(r"22\.05|24\.11|26\.05|no prolog", test)
        return f"{file} {which.group() if which else ''} {test.startswith(SHARED) and '22.05' in test}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster | None:
    """Of --dist loadscope only."""
    return ByCluster(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_report_header() -> str:
    """Which newer Slurm the tests meet: that of Debian sid moves."""
    return f"newer Slurm: {version(folder()) if is_made(folder()) else 'made when the first test needs it, if it can be'}"


@contextmanager
def started(**settings: Any) -> Iterator[Lab]:
    """A running cluster; where there can be none, the test is skipped, but fails if the environment says that it must run."""
    lab = Lab(**settings)
    try:
        lab.__enter__()
    except NoLabError as error:
        if os.environ.get("WALLTIME_MUST_RUN"):
            pytest.fail(f"Slurm cannot be started: {error}")
        pytest.skip(f"Slurm cannot be started: {error}")
    try:
        yield lab
    finally:
        lab.stop()


@contextmanager
def started_newer(release: str = "sid", accounting: bool = False, **settings: Any) -> Iterator[Lab]:
    """The same with the Slurm of another Debian, usually without accounting; skipped where that cannot be had."""
    try:
        root = made(release)
    except NoChrootError as error:
        pytest.skip(f"a newer Slurm cannot be had: {error}")
    with started(root=root, accounting=accounting, **settings) as lab:
        if release == "sid" and lab.version() < HALF_RULE:
            pytest.skip(f"the newer Slurm is {'.'.join(map(str, lab.version()))}, not 25.05.4 or later")
        yield lab


@pytest.fixture
def adjusters(lab: Lab) -> Iterator[list[Any]]:
    """The side-cars that a test starts, which end with it; `lab`: of the test's file."""
    from tests.slurm.beside import end_all

    running: list[Any] = []
    yield running
    end_all(lab, running)
