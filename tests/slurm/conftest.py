"""A real Slurm for tests; where it cannot be started they are skipped, and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.chroot import NoChrootError, folder, is_made, made, version
from tests.slurm.lab import Lab, NoLabError

HALF_RULE = (25, 5, 4)
"""From this version on running jobs, too, are planned by TimeMin where limits are soft."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares a cluster stays together on one worker (--dist loadgroup), each version of it on its own."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            version = item.callspec.params.get("lab", "") if hasattr(item, "callspec") else ""
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {version}"))


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
def started_newer(release: str = "sid", **settings: Any) -> Iterator[Lab]:
    """The same with the Slurm of another Debian, without accounting; skipped where that cannot be had."""
    try:
        root = made(release)
    except NoChrootError as error:
        pytest.skip(f"a newer Slurm cannot be had: {error}")
    with started(root=root, accounting=False, **settings) as lab:
        if release == "sid" and lab.version() < HALF_RULE:
            pytest.skip(f"the newer Slurm is {'.'.join(map(str, lab.version()))}, not 25.05.4 or later")
        yield lab
