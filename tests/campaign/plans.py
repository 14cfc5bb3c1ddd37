"""What tests of whole campaigns share: a large plan of small cells, the command as a process of its own, tables as bytes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from walltime.campaign import Store

TIMEOUT = 300
"""Seconds after which a process that should have ended counts as stuck."""


def many_cells(folder: Path, seeds: int, name: str = "plan") -> Path:
    """A plan of 20 cells for each seed, of 60 jobs each, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(
        f"""
        [campaign]
        seeds = {seeds}
        groups = ["class"]

        [fixed]
        model = "feitelson96"
        jobs = 60
        procs = 32
        load = 0.9

        [grid]
        policy = ["fcfs", "easy", "conservative", "hybrid:2"]
        estimates = ["exact", "double", "f:2", "f:11", "badness:3"]
        """
    )
    return path


def command(*arguments: object) -> subprocess.Popen[str]:
    """The command as a process of its own, which Ctrl-C reaches whatever started this one."""
    return subprocess.Popen(
        [sys.executable, "-m", "walltime.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


PASSING = re.compile(r"walltime: (compiling the engine|.*, about .* left$|.*: 0 of [0-9,]+ cells$)")
"""What a slow machine says on the way."""


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, standard output, and standard error without the words on compilation and progress."""
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, "".join(line for line in err.splitlines(keepends=True) if not PASSING.match(line))


def run_plan(plan: Path, *arguments: object) -> None:
    """Run the plan to its end as a process of its own, which has nothing to complain of."""
    status, _, err = ended(command("campaign", "run", plan, *arguments))
    assert (status, err) == (0, "")


def files(store: Path) -> int:
    """How many files with rows of cells are there."""
    return len(list((store / "cells").glob("*.parquet")))


def wait_for_files(process: subprocess.Popen[str], store: Path, count: int) -> bool:
    """Wait until so many files are there; whether the process was still running then."""
    deadline = time.monotonic() + TIMEOUT
    while files(store) < count and process.poll() is None:
        assert time.monotonic() < deadline, "no cell was run"
        time.sleep(0.005)
    return process.poll() is None


def tables(store: Path) -> tuple[bytes, bytes]:
    """The sorted tables of the cells and of the groups, as the bytes of CSV files."""
    found = Store(store)
    return found.table().write_csv().encode(), found.group_table().write_csv().encode()


@contextmanager
def dask_cluster(workers: int) -> Iterator[Any]:
    """A Dask cluster on this machine: so many processes with one thread each, started again when they die."""
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(n_workers=workers, **options) as cluster:
        yield cluster
