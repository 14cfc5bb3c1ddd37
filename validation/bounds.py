"""Runs tests with kernels that check every index: an index below zero or beyond the end is an error that names the access.

    python validation/bounds.py [--profile quick|default|nightly] [--cache FOLDER] [TEST ...]

Kernels take an index as a place counted from zero (compiled/indices.py), so a negative one would read what lies elsewhere in memory.
The kernels with checks are compiled into a folder of their own, which is removed afterwards unless `--cache` names one. Takes about ten
minutes, three for compiling; ends with the status of the tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/oracle", "tests/golden", "tests/unit/engine", "tests/unit/predictors", "tests/unit/simulation", "tests/unit/auditor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; returns their exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help=f"folders, files or tests, and options of pytest after -- ({' '.join(TESTS)})"
    )
    parser.add_argument("--profile", choices=("quick", "default", "nightly"), default="quick", help="how many examples (quick)")
    parser.add_argument("--cache", type=Path, help="keep the compiled kernels in this folder for the next run")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"NUMBA_BOUNDSCHECK": "1", "WALLTIME_CACHE": str(given.cache or folder), "WALLTIME_PROFILE": given.profile}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slurm and not nightly",
            *(given.tests or TESTS),
        ]
        return subprocess.run(command, cwd=ROOT, env=os.environ | settings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
