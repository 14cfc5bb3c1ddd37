"""Every module can be imported, with nothing installed but what the package asks for."""

import importlib
import pkgutil

import pytest

import walltime

OF_EXTRAS = {"walltime.learn.env": "gymnasium"}
"""Modules that are imported only where an extra is used, and what they need."""
MODULES = sorted(module.name for module in pkgutil.walk_packages(walltime.__path__, "walltime."))


@pytest.mark.parametrize("name", MODULES)
def test_module__can_be_imported(name):
    if name in OF_EXTRAS:
        pytest.importorskip(OF_EXTRAS[name])
    importlib.import_module(name)
