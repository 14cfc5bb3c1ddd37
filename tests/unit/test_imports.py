"""Every module can be imported, with nothing installed but what the package asks for."""

import importlib
import pkgutil
import subprocess
import sys

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


@pytest.mark.slow
def test_help__loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['walltime', '--help']\n"
        "from walltime.cli.main import run\n"
        "run(sys.argv[1:])\n"
        "print(sorted({'numpy', 'polars', 'numba', 'matplotlib', 'llvmlite'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"
