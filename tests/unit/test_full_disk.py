"""Files that cannot be written whole, in every format: one line, and nothing left."""

from __future__ import annotations

import resource
import signal

import pytest

from tests.cli import HEADER, call, one_line, record

JOBS = 3000
ROOM = 4096


@pytest.fixture
def no_room():
    """Every file ends at some kilobytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("full") / "log.swf"
    path.write_text(HEADER + "".join(record(k, 7 * k, 1 + k * k % 97, 1 + k % 4, 100 + k % 89) for k in range(1, JOBS)))
    return path


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.swf", "out.swf.gz"])
@pytest.mark.parametrize("command", ["simulate", "convert"])
def test_full_disk__is_one_line_and_leaves_nothing(capsys, tmp_path, log, no_room, command, name):
    out = tmp_path / name
    words = ["simulate", log, "--policy", "fcfs", "--out", out] if command == "simulate" else ["convert", log, "--out", out]
    err = one_line(*call(capsys, *words))
    assert err.startswith(f"walltime: {out}: cannot be written (file too large")
    assert list(tmp_path.iterdir()) == []
