"""Every module can be imported, with nothing installed but what the package asks for."""

import importlib
import pkgutil

import pytest

import walltime

MODULES = sorted(module.name for module in pkgutil.walk_packages(walltime.__path__, "walltime."))


@pytest.mark.parametrize("name", MODULES)
def test_module__can_be_imported(name):
    importlib.import_module(name)
