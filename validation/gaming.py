"""Gains of users who game the side-car, and losses of others: the side-car itself with a simulated cluster.

    python validation/gaming.py [--jobs N] [--small] [--out FILE]

A stretch of a log is simulated under EASY with 0, 1 and 5 gamers: without the side-car, with it and its bounds, and with it but without the
bounds. Without bounds, predictions count jobs instead of processor-seconds, and neither jobs that outlive their TimeMin nor the slip of
heads are limited. A gamer has run ten jobs of a second on one processor, with a limit of a day. From then on it sends a job every six hours
that requests a tenth of the machine for a day and uses half of the time. Limits are soft: nothing is restored. The results are stored in
docs/generators/gaming.json, the source of docs/validation/gaming.md; stored cases are not simulated again. Logs are read from the folder
that WALLTIME_TRACES names. One core takes about 10 minutes. `--small` compares several values of the predictor's `small`, with 0 and 5
gamers, on other logs, so that its default is not chosen by the logs of the table. The ten jobs of a gamer are then just large enough to
count.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, find_log
from tests.adjust.fake import BEGIN, FakeSlurm, Job
from walltime.logs import read
from walltime.predictors import parse_predictor
from walltime.slurm.client import Client
from walltime.slurm.commands.adjust import PREDICTOR
from walltime.slurm.sidecar.host import Host
from walltime.slurm.sidecar.ledger import Ledger
from walltime.slurm.sidecar.round import Sidecar
from walltime.slurm.sidecar.selection import time_min_of
from walltime.slurm.sidecar.settings import SidecarSettings

OUT = ROOT / "docs" / "generators" / "gaming.json"
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln", 20_373),
    "ALCF-Theta": ("ALCF-Theta-2022", 20_000),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.x-cln", 100_000),
}
"""The beginning of each file's name, and the first job of the stretch."""
OTHERS = {
    f"{name} {first}": (prefix, first)
    for name, prefix in (("CTC-SP2", "CTC-SP2-1996-3.1-cln"), ("SDSC-SP2", "SDSC-SP2-1998-4"))
    for first in range(10_000, 46_000, 5000)
}
"""Stretches of other logs, by which `small` is chosen."""
GAMED = 25_000
"""The stretches that are also played with gamers."""
SMALL = (0.0, 0.001, 0.01, 0.03, 0.1)
EVERY = 300.0
DAY = 86_400
HISTORY = 20_000
"""Number of jobs before the stretch that are used for learning."""
LOOSE = "tang13:key=request,statistic=p95,window=3"
BOUNDED = SidecarSettings(every=EVERY, floor=25, share=1.0, changes=1000)
UNBOUNDED = SidecarSettings(every=EVERY, floor=25, share=1.0, changes=1000, slip=1e9, overdue=1e9, misses=10**9)


def stretch(log: Any, first: int, count: int, gamers: int) -> tuple[list[Job], int]:
    """Return the jobs, including the gamers' jobs, and the number of processors."""
    procs = log.machine_procs
    zero = int(log.submit[first])
    jobs = []
    for k in range(first, min(first + count, len(log))):
        limit = max(int(log.requested[k]) // 60, 1)
        size = min(int(log.procs[k]), procs)
        jobs.append(
            Job(len(jobs) + 1, f"u{log.columns['user'][k]}", size, max(int(log.runtime[k]), 10), limit, BEGIN + int(log.submit[k]) - zero)
        )
    last = jobs[-1].submit
    for gamer in range(gamers):
        for submit in range(BEGIN + 3600 * (gamer + 1), last, 6 * 3600):
            jobs.append(Job(len(jobs) + 1, f"gamer{gamer}", max(procs // 10, 1), DAY // 2, 1440, submit))
    return sorted(jobs, key=lambda job: job.submit), procs


def learned(log: Any, first: int, gamers: int, text: str, junk: tuple[int, int] = (1, 1)) -> Any:
    """A prediction of jobs of the fake cluster by the log before the stretch, and by ten junk jobs of each gamer.

    `junk`: their processors and runtime, s.
    """
    learner = parse_predictor(text).begin()
    zero = int(log.submit[first])
    wait = log.columns.get("wait", np.zeros(len(log), int))  # without waits if the log lacks them
    for k in range(max(first - HISTORY, 0), first):
        end = int(log.submit[k]) + max(int(wait[k]), 0) + int(log.runtime[k]) - zero
        if end < 0 < int(log.runtime[k]):
            limit = max(int(log.requested[k]) // 60, 1) * 60
            one = {
                "user": int(log.columns["user"][k]),
                "requested": limit,
                "procs": int(log.procs[k]),
                "runtime": int(log.runtime[k]),
                "end": end,
            }
            learner.observe(SimpleNamespace(**one))
    for gamer in range(gamers):
        for k in range(10):
            learner.observe(SimpleNamespace(user=10**6 + gamer, requested=DAY, procs=junk[0], runtime=junk[1], end=-100 * (k + 1)))

    def predict(job: Any, now: float) -> float | None:
        user = 10**6 + int(job.user[5:]) if job.user.startswith("gamer") else int(job.user[1:])
        found = learner.predict(SimpleNamespace(user=user, requested=job.limit * 60, procs=job.procs, now=int(now) - BEGIN))
        return None if found is None else float(found.seconds)

    return predict


def worth(log: Any, first: int, count: int, predict: Any) -> int:
    """How many jobs of the stretch are predicted to take so little of their limits that they would be adjusted."""
    jobs, _ = stretch(log, first, count, 0)
    found = [predict(SimpleNamespace(user=job.user, limit=job.wanted, procs=job.nodes), job.submit) for job in jobs]
    return sum(time_min_of(seconds, job.wanted, BOUNDED) is not None for seconds, job in zip(found, jobs, strict=True))


def play(log: Any, first: int, count: int, gamers: int, how: str, small: float | None = None) -> dict[str, Any]:
    """Waits, in hours: of the gamers, of the others, and the longest by which a head's first reserved start was missed; jobs worth it."""
    jobs, procs = stretch(log, first, count, gamers)
    cluster = FakeSlurm(procs, jobs, soft=True)
    with TemporaryDirectory() as folder:
        one, jobs_worth = None, 0
        if how != "none":
            text = PREDICTOR if small is None else f"{LOOSE},weight=work,small={small:g}"
            junk = (max(procs // 10, 1), int(small * DAY) + 1) if small else (1, 1)
            predict = learned(log, first, gamers, text if how == "bounds" else LOOSE, junk)
            jobs_worth = worth(log, first, count, predict)
            bounds = BOUNDED if how == "bounds" else UNBOUNDED
            ledger = Ledger(Path(folder))
            ledger._base.execute("PRAGMA synchronous=OFF")
            one = Sidecar(Client(cluster), predict, bounds, Host(cluster.clock, "sidecar", lambda text: None), ledger)
        last = jobs[-1].submit
        while cluster.coming or any(job.submit <= last for job in cluster.waiting()):
            if one is not None and cluster.waiting():
                one.round()
            cluster.advance(EVERY)
        if one is not None:
            one.ledger.close()
    assert not cluster.violations
    waits = {
        gamer: [cluster.begun[job.key] - job.submit for job in jobs if job.user.startswith("gamer") == gamer] for gamer in (True, False)
    }
    late = [max(cluster.begun[key] - promised, 0) for key, promised in cluster.promised.items() if key in cluster.begun]
    return {
        "gamers": round(float(np.mean(waits[True])) / 3600, 2) if waits[True] else None,
        "others": round(float(np.mean(waits[False])) / 3600, 2),
        "longest": round(max(waits[False]) / 3600, 1),
        "late head": round(max(late, default=0) / 3600, 1),
        "worth": jobs_worth,
    }


def main() -> None:
    """Play all of them and store the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--small", action="store_true", help="compare values of small on other logs")
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {"jobs": options.jobs, "rows": []}
    rows = found.setdefault("small" if options.small else "rows", [])
    ways = [(how, None) for how in ("none", "no bounds", "bounds")]
    if options.small:
        ways = [("none", None), ("no bounds", None), *(("bounds", small) for small in SMALL)]
    done = {(row["log"], row["count"], row["how"], row.get("small")) for row in rows}
    for name, (prefix, first) in (OTHERS if options.small else LOGS).items():
        log = read(find_log(prefix))
        numbers = (0, 1, 5) if not options.small else (0, 5) if first == GAMED else (0,)
        for gamers, (how, small) in ((gamers, way) for gamers in numbers for way in ways):
            if (name, gamers, how, small) not in done:
                of = {"log": name, "count": gamers, "how": how} | ({"small": small} if options.small else {})
                rows.append({**of, **play(log, first, options.jobs, gamers, how, small)})
                print(rows[-1], flush=True)
                options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
