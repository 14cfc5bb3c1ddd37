"""What is compiled together, and what of it is kept for another process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from walltime.engine.compiler.libraries import Part, _with_parts

KERNELS = """
import numba

from walltime.engine.kernel.jit import called_kernel, entry, kernel

@kernel
def doubled(number):
    return 2 * number

@called_kernel
def total(numbers):
    found = 0
    for i in range(len(numbers)):
        found += doubled(numbers[i])
    return found

@kernel
def never(numbers):
    return doubled(numbers[0])

@entry
def first(numbers):
    return total(numbers) + doubled(1)

@entry
def second(numbers, nothing):
    if nothing is not None:
        return never(numbers)
    return total(numbers) - doubled(1)

@numba.njit
def users(numbers):
    return total(numbers) + 1
"""
SCRIPT = """
import sys
import numpy as np
from numba.core import event
import kernels
with event.install_recorder("numba:compile") as recorder:
    numbers = np.arange(4)
    for name in sys.argv[1:]:
        print(getattr(kernels, name)(*(numbers, None)[: 1 + (name == "second")]))
functions = [one.data["dispatcher"].py_func for _, one in recorder.buffer]
print(*sorted({function.__name__ for function in functions if function.__module__ == "kernels"}))
"""


def part(name, *calls, inlined=True):
    """A part that calls these."""
    made = object.__new__(Part)
    made._name, made._linking_libraries, made.inlined = name, list(calls), inlined
    return made


def names(parts):
    return [one._name for one in parts]


def run(folder, *entries, before=""):
    """What another process prints that runs these entries, and which functions it compiles; `before`: what it does first."""
    environment = os.environ | {"WALLTIME_CACHE": str(folder / "cache"), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-c", before + SCRIPT, *entries], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_parts__come_behind_all_that_call_them():
    last = part("last")
    middle = part("middle", last)
    assert names(_with_parts([part("first", middle), last])) == ["first", "middle", "last"]
    assert names(_with_parts([last, part("first", middle, last)])) == ["first", "middle", "last"]
    assert names(_with_parts([middle, last, middle])) == ["middle", "last"]


def test_parts_of_a_kernel_that_is_called__are_not_looked_for_in_what_is_inlined():
    called = part("called", part("inside"), inlined=False)
    assert names(_with_parts([part("first", called)], through=lambda one: one.inlined)) == ["first", "called"]


@pytest.mark.slow
def test_kernels__are_kept_for_other_processes_and_work_there(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    assert run(tmp_path, "first") == ["14", "doubled first total"]
    assert run(tmp_path, "second") == ["10", "second"]
    assert run(tmp_path, "first", "second") == ["14", "10", ""]


@pytest.mark.slow
def test_kernels__serve_several_functions_in_one_process(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    assert run(tmp_path, "second", "first") == ["10", "14", "doubled first second total"]


@pytest.mark.slow
def test_kernels__are_called_by_functions_of_users(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    assert run(tmp_path, "users") == ["13", "doubled total users"]
    assert run(tmp_path, "users") == ["13", "users"]


@pytest.mark.slow
def test_kernels__are_kept_whole_where_numba_keeps_functions_in_another_way(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    another = "from numba.core import caching\ndel caching._CacheLocator\n"
    assert run(tmp_path, "first", before=another) == ["14", "doubled first total"]
    assert run(tmp_path, "second", before=another) == ["10", "second"]
    assert run(tmp_path, "users", before=another) == ["13", "users"]
