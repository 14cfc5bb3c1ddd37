"""What holds for all tests: their profile, and the order in which they run."""

import pytest

from tests import profiles  # noqa: F401 - loads the profile before any test is collected, for tests with no number of examples too

SLOW = ("campaign", "papers")
"""Folders in which every test counts as slow."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that in the end no worker waits for another one that has begun a long test."""
    for item in items:
        if item.path.parent.name in SLOW:
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
