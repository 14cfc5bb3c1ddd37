"""The kernel as plain Python (`NUMBA_DISABLE_JIT`) and with its indices checked (`NUMBA_BOUNDSCHECK`) gives the same schedules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle import replay


def run_elsewhere(cases: list[dict], folder: Path, **environment: str) -> dict:
    source, target = folder / "corpus.json", folder / "results.json"
    source.write_text(json.dumps(cases))
    command = [sys.executable, "-W", "error", replay.__file__, str(source), str(target)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(target.read_text())


def assert_equal(cases: list[dict], results: list[dict]) -> None:
    assert len(results) == len(cases)
    for case, result in zip(cases, results, strict=True):
        assert result == replay.replay(case), case


@pytest.mark.nightly
def test_kernel__without_compilation_gives_the_same_schedules(tmp_path):
    cases = replay.corpus(count=250, seed=1)
    found = run_elsewhere(cases, tmp_path, NUMBA_DISABLE_JIT="1")
    assert found["disable_jit"] == 1
    assert_equal(cases, found["results"])


@pytest.mark.nightly
def test_kernel__stays_within_its_arrays(tmp_path):
    cases = replay.corpus(count=600, seed=2, jobs=40)
    found = run_elsewhere(cases, tmp_path, NUMBA_BOUNDSCHECK="1", WALLTIME_CACHE=str(tmp_path / "cache"))
    assert found["boundscheck"] == 1
    assert_equal(cases, found["results"])


@pytest.mark.nightly
def test_kernel__bounds_are_really_checked(tmp_path):
    # Else the test above shows nothing. Room for no job is four blocks of the profile, of 64 steps each; 300 reservations need more.
    script = tmp_path / "beyond.py"
    script.write_text(
        "import numba\n"
        "from walltime.engine.kernel import profile\n"
        "from walltime.engine.kernel.memory import RUN, records\n"
        "@numba.njit(_nrt=False)\n"
        "def fill(plan, running):\n"
        "    profile.profile_of_running(plan, running, 0, 0, 4)\n"
        "    for begin in range(10, 3010, 10):\n"
        "        profile.occupy(plan, begin, begin + 1, 1)\n"
        "fill(profile.new_profile(0), records(RUN, 1))\n"
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "WALLTIME_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "IndexError: index is out of bounds" in done.stderr


def test_corpus__has_every_policy_order_and_mode():
    cases = replay.corpus(count=250, seed=1)
    for name, values in (("policy", replay.POLICIES), ("order", replay.ORDERS), ("coincident", ("batch", "sequential"))):
        assert {case[name] for case in cases} == set(values)
    assert any(r > e for case in cases for r, e in zip(case["runtime"], case["requested"], strict=True))


@pytest.mark.parametrize("seed", [1, 2])
def test_corpus__reference_agrees(seed):
    cases = replay.corpus(count=100, seed=seed)
    assert_equal(cases, [replay.replay(case, engine="reference") for case in cases])
