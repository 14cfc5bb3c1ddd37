"""What a shell sets, and the compiler does not take, is one line."""

import os
import resource
import subprocess
import sys

import pytest

from tests.cli import HEADER, record


def ran(tmp_path, **options):
    """Run `walltime simulate` on two jobs in a process of its own."""
    log = tmp_path / "log.swf"
    log.write_text(HEADER + record(1, 0, 60, 2, 100) + record(2, 5, 60, 2, 100))
    command = [sys.executable, "-c", "from walltime.cli.main import main; main()", "simulate", str(log)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_threads_of_numba__that_are_none(tmp_path):
    done = ran(tmp_path, env=os.environ | {"NUMBA_NUM_THREADS": "0"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "NUMBA_*" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_virtual_memory__of_too_little(tmp_path):
    done = ran(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600_000_000, resource.RLIM_INFINITY)))
    assert (done.returncode, done.stdout) == (2, "")
    assert "ulimit -v" in done.stderr
    assert len(done.stderr.splitlines()) == 1
