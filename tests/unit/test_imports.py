"""Every module can be imported, with nothing installed but what the package asks for."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import walltime

OF_EXTRAS = {"walltime.learn.env": "gymnasium", "walltime.assistant.server": "mcp"}
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


SIMULATION = """
import walltime as wt
from walltime.machine import Machine, Partition, Pool
machine = Machine((Pool("a", 2, 1),), (Partition("1", ("a",)),))
jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[5, 5], procs=[1, 1], machine_procs=2, columns={"user": [1, 1]})
for policy, one in (("easy:predictor=tsafrir07", None), ("conservative", machine), ("slurm", machine)):
    wt.simulate(jobs, policy, machine=one).summary()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "without"),
    [
        (SIMULATION, "logs auditor report cli slurm whatif explanation polars typer rich matplotlib scipy.special"),
        ("import walltime.slurm.sidecar.loop", "logs simulation engine schedule report numpy polars numba"),
    ],
    ids=["simulation", "side-car"],
)
def test_part__loads_nothing_that_it_does_not_need(code, without):
    names = {f"walltime.{name}" for name in without.split()} | set(without.split())
    code += f"\nimport sys\nprint(sorted({names} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
