"""A real Slurm for tests; where it cannot be started they are skipped, and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.slurm.lab import Lab, NoLabError


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
