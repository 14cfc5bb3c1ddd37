"""Other simulators on the same logs: the same schedule of EASY or the first difference, seconds, and memory.

    python -m benchmarks.peers [--log NAME ...] [--jobs N] [--pyss FOLDER] [--python2 PYTHON] [--accasim PYTHON]

AccaSim runs in a Python that has it, by default in a temporary environment into which it is installed; pybatsim's EASY runs through
`walltime serve --protocol batsim`; pyss from the folder with its sources, by Python 2. A peer that cannot run is in the table with its
reason, as is a log that cannot be read. Jobs are killed at their requests. Seconds and memory are those of a process from its start to
its end, with walltime's kernel and Python's modules compiled before; of pybatsim, those of walltime's side. The table of
`docs/background/others.md` is this output.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import walltime as wt
from walltime.errors import WalltimeError

BIN = Path(sys.executable).parent
LOGS = ("KTH-SP2", "SDSC-SP2")
PATIENCE = 600
"""Seconds that a peer may take."""
WATCH = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
with open("cost", "w") as file:
    json.dump([time.perf_counter() - begin, usage.ru_maxrss / 1000], file)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""
"""Starts a command from a small process, because Linux counts the memory of the process that forks in the maximum of the command."""
ACCASIM = """
import collections, collections.abc
for name in ("Iterable", "Mapping", "MutableMapping", "Sequence"):
    setattr(collections, name, getattr(collections.abc, name))  # which they were until Python 3.9
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
Simulator("jobs.swf", "machine.json", EASYBackfilling(FirstFit()), RESULTS_FOLDER_NAME="results", show_statistics=False,
          statistics_output=False).start_simulation()
"""
PYSS = """
import sys
sys.path.insert(0, sys.argv[1])
from base.prototype import _job_inputs_to_jobs
from base.workload_parser import parse_lines
from schedulers.easy_scheduler import EasyBackfillScheduler
from schedulers.simulator import Simulator
procs = int(sys.argv[2])
simulator = Simulator(list(_job_inputs_to_jobs(parse_lines(open("jobs.swf")), procs)), procs, EasyBackfillScheduler(procs))
simulator.run()
with open("starts", "w") as out:
    for job in simulator.terminated_jobs:
        out.write("%d %d\\n" % (job.id, job.start_to_run_at_time))
"""


class NotAvailable(Exception):  # noqa: N818
    """Why a peer cannot run here."""


@dataclass(frozen=True)
class Run:
    """The start of each job by its number, the seconds, and the largest resident memory in MB."""

    starts: Mapping[int, int]
    seconds: float
    megabytes: float


Peer = Callable[[wt.Workload, Path], Run]


def measured(command: Sequence[str | Path], folder: Path) -> tuple[float, float]:
    """Run a command in a folder, and return its seconds and memory in MB; raises NotAvailable if it fails."""
    watched = [sys.executable, "-S", "-c", WATCH, *command]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"TZ": "UTC"}
    with (folder / "printed").open("w") as printed:
        child = subprocess.Popen(watched, cwd=folder, stdout=printed, stderr=subprocess.STDOUT, env=variables, start_new_session=True)
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise NotAvailable(f"not finished after {PATIENCE} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if child.returncode:
        lines = [line.strip() for line in (folder / "printed").read_text(errors="replace").splitlines() if line.strip()]
        raise NotAvailable(lines[-1] if lines else f"exit status {child.returncode}")
    seconds, megabytes = json.loads((folder / "cost").read_text())
    return seconds, megabytes


def ours(*options: str) -> Peer:
    """The run of `walltime simulate` with these options."""

    def run(jobs: wt.Workload, folder: Path) -> Run:
        cost = measured([BIN / "walltime", "simulate", "jobs.swf", "--policy", "easy", *options, "--out", "ours.csv"], folder)
        with (folder / "ours.csv").open() as file:
            return Run({int(row["job_id"]): int(row["start"]) for row in csv.DictReader(file)}, *cost)

    return run


def pybatsim(jobs: wt.Workload, folder: Path) -> Run:
    """The run of pybatsim's EASY against `walltime serve`."""
    program = shutil.which("pybatsim", path=str(BIN))
    if program is None:
        raise NotAvailable("pybatsim is not installed; pip install pybatsim")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{one.getsockname()[1]}"
    with (folder / "client").open("w") as printed:
        client = subprocess.Popen([program, "easyBackfill", "-s", endpoint, "-v", "error"], cwd=folder, stdout=printed, stderr=printed)
        try:
            cost = measured([BIN / "walltime", "serve", "jobs.swf", "--endpoint", endpoint, "--out", "peer"], folder)
        finally:
            client.kill()
            client.wait()
    with (folder / "peer_jobs.csv").open() as file:
        return Run({int(row["job_id"]): int(float(row["starting_time"])) for row in csv.DictReader(file)}, *cost)


def accasim(python: Path) -> Peer:
    """The run of AccaSim's EASY on as many nodes as processors, with a core each."""

    def run(jobs: wt.Workload, folder: Path) -> Run:
        machine = {"groups": {"node": {"core": 1}}, "resources": {"node": jobs.machine_procs}}
        (folder / "machine.json").write_text(json.dumps(machine | {"equivalence": {"processor": {"core": 1}}, "start_time": 0}))
        cost = measured([python, "-c", ACCASIM], folder)
        starts = {}
        for line in (folder / "results" / "sched-jobs.swf").read_text().splitlines():
            job, _, rest = line.split(";", 2)
            starts[int(job)] = int(datetime.fromisoformat(f"{rest.rpartition('__')[2].split(';')[0]}+00:00").timestamp())
        return Run(starts, *cost)

    return run


def pyss(source: Path, python: str) -> Peer:
    """The run of pyss's EASY."""

    def run(jobs: wt.Workload, folder: Path) -> Run:
        if shutil.which(python) is None:
            raise NotAvailable(f"there is no {python}; name a Python 2 with --python2")
        cost = measured([python, "-c", PYSS, source.resolve(), str(jobs.machine_procs)], folder)
        return Run({int(job): int(start) for job, start in map(str.split, (folder / "starts").read_text().splitlines())}, *cost)

    return run


def missing(reason: str) -> Peer:
    """A peer that cannot run for this reason."""

    def run(jobs: wt.Workload, folder: Path) -> Run:
        raise NotAvailable(reason)

    return run


def compared(peer: Run, mine: Run) -> str:
    """Return whether the schedules are the same, or the first job in order of its start that starts at another time."""
    different = [job for job in mine.starts if peer.starts.get(job) != mine.starts[job]]
    if not different:
        return "the same schedule"
    first = min(different, key=lambda job: min(mine.starts[job], peer.starts.get(job, mine.starts[job])))
    there = f"at {peer.starts[first]:,} s" if first in peer.starts else "never"
    return f"{len(different):,} jobs start at other times, first job {first}: {there}, not {mine.starts[first]:,} s"


def killed_at_request(name: str, head: int) -> wt.Workload:
    """The first jobs of a log, with runtimes up to their requests, numbered from 1, and times from the first arrival."""
    log = wt.read(name)
    first = slice(head)
    runtime = np.minimum(log.runtime, log.requested)[first]
    return wt.Workload.from_arrays(
        submit=log.submit[first] - log.submit[0],
        runtime=runtime,
        requested=log.requested[first],
        procs=log.procs[first],
        machine_procs=log.machine_procs,
    )


def rows(logs: Sequence[str], head: int, peers: Mapping[str, tuple[Peer, tuple[str, ...]]]) -> Iterator[list[str]]:
    """Yield a row for each log and peer; one with the reason for a log that cannot be read."""
    for path in logs:
        name = Path(path).name.partition(".swf")[0]
        try:
            jobs = killed_at_request(path, head)
        except WalltimeError as reason:
            yield [name, "", "", f"not available: {reason}", "", ""]
            continue
        with tempfile.TemporaryDirectory() as kept:
            folder = Path(kept)
            wt.logs.write_swf(folder / "jobs.swf", jobs)
            mine = {options: ours(*options)(jobs, folder) for options in {(), *(one for _, one in peers.values())}}
            mine = {options: ours(*options)(jobs, folder) for options in mine}  # now compiled
            yield [name, "walltime", f"{len(jobs):,}", "", f"{mine[()].seconds:.1f}", f"{mine[()].megabytes:,.0f}"]
            for peer, (run, options) in peers.items():
                try:
                    one = run(jobs, folder)
                    same = compared(one, mine[options])
                    found = f"{same}, with `{' '.join(options)}`" if options else same
                    yield [name, peer, f"{len(one.starts):,}", found, f"{one.seconds:.1f}", f"{one.megabytes:,.0f}"]
                except NotAvailable as reason:
                    yield [name, peer, "", f"not available: {str(reason)[:150]}", "", ""]


def main() -> None:
    """Print the table in Markdown, with the day."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--log", action="append", help=f"a log, by its name or path; by default {' and '.join(LOGS)}")
    parser.add_argument("--jobs", type=int, default=2000, help="jobs from the begin of each log, by default 2000")
    parser.add_argument("--pyss", type=Path, help="the folder src of pyss")
    parser.add_argument("--python2", default="python2", help="a Python 2, for pyss")
    parser.add_argument("--accasim", type=Path, help="a Python with AccaSim")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        python, first = given.accasim or Path(kept) / "bin" / "python", accasim(given.accasim or Path(kept) / "bin" / "python")
        if given.accasim is None:
            try:
                measured([sys.executable, "-m", "venv", kept], Path(kept))
                measured([python, "-m", "pip", "install", "--quiet", "accasim"], Path(kept))
            except NotAvailable as reason:
                first = missing(f"cannot be installed ({reason})")
        peers: dict[str, tuple[Peer, tuple[str, ...]]] = {"AccaSim": (first, ()), "pybatsim, by walltime serve": (pybatsim, ())}
        third = missing("name its folder with --pyss") if given.pyss is None else pyss(given.pyss, given.python2)
        peers["pyss"] = (third, ("--simultaneous", "sequential"))
        print(f"Measured on {datetime.now(UTC):%Y-%m-%d}, EASY:\n")
        print("| log | program | jobs | schedule | seconds | MB |\n| --- | --- | ---: | --- | ---: | ---: |")
        for row in rows(given.log or LOGS, given.jobs, peers):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
