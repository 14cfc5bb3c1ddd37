"""`walltime paper run` whose output nobody reads to the end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.nightly
def test_closed_pipe__does_not_keep_the_page_from_being_written(tmp_path):
    words = ["paper", "run", "feitelson98", "--quick", "--item", "F3", "--out", tmp_path / "made"]
    read, write = os.pipe()
    os.close(read)
    try:
        subprocess.run([sys.executable, "-m", "walltime", *map(str, words)], stdout=write, stderr=subprocess.DEVNULL, check=False)
    finally:
        os.close(write)
    assert (tmp_path / "made" / "index.html").is_file()
