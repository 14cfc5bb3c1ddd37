"""Loads the profile before any test is collected, so that tests without a number of examples of their own follow it too."""

from tests import profiles  # noqa: F401
