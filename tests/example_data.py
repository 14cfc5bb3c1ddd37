"""The files that the examples of `--help` name, small and made up, each made by the function of its name."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

from tests.sites import MACHINE, jobs_of, recorded_as
from walltime.cli.main import run
from walltime.machine import write_machine
from walltime.slurm import Snapshot, SnapshotJob

OUTPUTS = Path(__file__).parent / "slurm" / "outputs" / "26.05"
JOBS = 300
FIELDS = "JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes"


def sacct() -> str:
    """The jobs of the small site as sacct prints them."""
    site = recorded_as(jobs_of(MACHINE, JOBS), MACHINE, "easy")
    lines = [FIELDS]
    for k in range(len(site)):
        submit = int(site.submit[k]) + (site.origin.unix_start_time or 0)
        start, user = submit + int(site.columns["wait"][k]), site.columns["user"][k]
        end, limit = start + int(site.runtime[k]), -(-int(site.requested[k]) // 60)
        words = [site.job_id[k], f"u{user}", "physics", MACHINE.partitions[site.columns["partition"][k] - 1].name, "normal", "COMPLETED"]
        words += [submit, submit, start, end, end - start, limit, site.procs[k], site.procs[k], -(-int(site.procs[k]) // 8)]
        lines.append("|".join(map(str, words)))
    return "\n".join(lines) + "\n"


def called(words: str) -> Callable[[Path], None]:
    """A maker that calls the command line, with the paths of the file and of its folder."""

    def make(path: Path) -> None:
        assert run([word.replace("FILE", str(path)).replace("FOLDER", str(path.parent)) for word in words.split()]) == 0

    return make


def _snapshot(path: Path) -> None:
    now = 1_795_000_000
    shared = {"partition": "main", "submit": now - 900, "limit": 7200}
    first = SnapshotJob(job=1, state="running", cpus=96, user="u1", start=now - 600, **shared)
    Snapshot(now, MACHINE, (first, SnapshotJob(job=2, state="waiting", cpus=64, user="u2", **shared))).write(path)


PLAN = """
[campaign]
seeds = 2
[fixed]
model = "feitelson96"
jobs = 60
procs = 32
load = 0.9
[grid]
policy = ["fcfs", "easy"]
"""
TABLE = "job,user,submit,start,end,cpus,walltime\n" + "".join(
    f"{k},u{k % 3},2026-01-05 10:{k:02d}:00,2026-01-05 11:{k:02d}:00,2026-01-05 12:{k:02d}:00,{1 + k % 4},02:00:00\n" for k in range(40)
)
PREDICT = "slurm start-times FOLDER/now.json --history FOLDER/jobs.txt.gz --samples 5 --replayed 0 --predictions FILE"
FILES: dict[str, Callable[[Path], object]] = {
    "log.swf.gz": called("generate lublin99 --jobs 400 --users 20 --estimates tsafrir05 --out FILE"),
    "schedule.csv": called("simulate FOLDER/log.swf.gz --out FILE"),
    "ours.csv": called("simulate FOLDER/log.swf.gz --out FILE"),
    "theirs.csv": called("simulate FOLDER/log.swf.gz --policy conservative --out FILE"),
    "jobs.csv": lambda path: path.write_text(TABLE),
    "jobs.txt.gz": lambda path: path.write_bytes(gzip.compress(sacct().encode())),
    "machine.toml": lambda path: path.write_text(write_machine(MACHINE)),
    "cluster.txt": lambda path: path.write_bytes((OUTPUTS / "cluster.txt").read_bytes()),
    "key.txt": lambda path: path.write_text("0123456789abcdef0123456789abcdef"),
    "plan.toml": lambda path: path.write_text(PLAN),
    "plan.results": called("campaign run FOLDER/plan.toml --store FILE"),
    "now.json": _snapshot,
    "predictions": called(PREDICT),
    "long.swf.gz": called("generate lublin99 --jobs 5000 --out FILE"),
    "agent": called("learn train FOLDER/long.swf.gz --episodes 32 --out FILE"),
}
"""The maker of each file or folder, which may use those above it."""


def write_example_files(folder: Path) -> None:
    """Write all of the files into a folder."""
    for name, make in FILES.items():
        make(folder / name)
