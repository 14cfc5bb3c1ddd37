"""How much the tests try is said in one place, and the Makefile has a target for each profile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json
from tests.profiles import SCALES, examples, scaled, seeds
from hypothesis import settings
now = settings()
print(json.dumps([list(SCALES), now.max_examples, now.derandomize, examples(60).max_examples, len(seeds(4)), scaled(1)]))
"""


def profile(name: str) -> subprocess.CompletedProcess[str]:
    """What the profile of this name gives."""
    environment = os.environ | {"WALLTIME_PROFILE": name}
    return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("quick", "6, true, 3, 1, 1"),
        ("default", "6, true, 3, 1, 1"),
        ("nightly", "100, false, 60, 4, 1"),
        ("", "6, true, 3, 1, 1"),
    ],
)
def test_profile__scales_examples_and_seeds(name, numbers):
    assert profile(name).stdout == f'[["quick", "default", "nightly"], {numbers}]\n'


@pytest.mark.slow
def test_profile__of_another_name_is_an_error():
    assert "WALLTIME_PROFILE is 'nigthly'; known are quick, default, nightly" in profile("nigthly").stderr


def test_makefile__has_a_target_for_each_profile():
    text = (ROOT / "Makefile").read_text()
    assert re.findall(r"^(\w+): setup .*\n\t@bash tools/test\.sh (\w+) ", text, re.MULTILINE) == [
        ("quick", "quick"),
        ("test", "default"),
        ("slurm", "slurm"),
        ("nightly", "nightly"),
    ]
