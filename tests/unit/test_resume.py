"""An interrupted nightly run continues with the tests that have not passed."""

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_nightly__leaves_out_what_passed_before(tmp_path):
    (tmp_path / "test_two.py").write_text("def test_one():\n    pass\n\n\ndef test_other():\n    assert False\n")
    passed, passing = tmp_path / "before", tmp_path / "passing"
    passed.touch()
    environment = os.environ | {"WALLTIME_PASSED": str(passed), "WALLTIME_PASSING": str(passing)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.resume",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    first = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 failed, 1 passed" in first.stdout
    assert passing.read_text() == "test_two.py::test_one\n"
    passed.write_text(passing.read_text())
    second = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 failed, 1 deselected" in second.stdout
