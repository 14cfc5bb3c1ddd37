"""Durations of a real Slurm's passes and launches, and the error of simulations that use them.

    python validation/slurm_noise.py FOLDER [--out FILE]

FOLDER is that of `validation/real_slurm.py`, whose runs keep what slurmctld and all slurmd logged. Read of these logs: from the beginning
of a pass to each start in it, from the start to the launch on the node, from the end of a job to the next pass, and how long passes take.
Then each run is simulated in tenths of seconds, with the submissions and the ends of that log and the mean delays of that run, and the
starts are compared, as those of two real runs are with each other. Stored in docs/generators/slurm-noise.json, the source of a table in
docs/validation/real-slurm.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from validation.real_slurm import SCENARIOS, Array, Numbers, Run, rounded
from walltime.policy import Slurm

OUT = Path(__file__).resolve().parents[1] / "docs" / "generators" / "slurm-noise.json"
PARTS = 10
"""Fractions of a second in simulations."""
LINE = re.compile(r"\[(\S+)\] (.*)")
MAIN = re.compile(r"debug:  sched: Running job scheduler")
BACKFILL = re.compile(r"sched/backfill: _attempt_backfill: beginning")
COMPLETED = re.compile(r"sched/backfill: _attempt_backfill: completed testing .* usec=(\d+)")
SUBMITTED = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+) ")
MULTIFACTOR = re.compile(r"debug:  priority/multifactor: init: ")
STARTED = re.compile(r"sched: Allocate JobId=(\d+) |sched/backfill: _start_job: Started JobId=(\d+) ")
ENDED = re.compile(r"_job_complete: JobId=(\d+) done")
LAUNCHED = re.compile(r"Launching batch job (\d+) ")


@dataclass(frozen=True)
class Log:
    """Times logged by a run's daemons, in s since 1970. `passes`: when passes of the main scheduler began; the others by the job's number.

    `in_pass`: from the beginning of the pass, of whichever scheduler, to each start in it; `testing`: how long cycles of backfilling with
    jobs to test took; `main`: the mean and the longest pass of the main scheduler. All s. `priority`: at submission, and `since`: the begin
    of the computed priorities, nan if they were not.
    """

    passes: Array
    submitted: dict[int, float]
    started: dict[int, float]
    ended: dict[int, float]
    launched: dict[int, float]
    in_pass: Array
    testing: Array
    main: tuple[float, float]
    priority: dict[int, int]
    since: float

    @classmethod
    def read(cls, folder: Path) -> Log:
        """Data of a folder written by `tests.slurm.replay.save`."""
        passes, in_pass, testing = [], [], []
        submitted: dict[int, float] = {}
        started: dict[int, float] = {}
        ended: dict[int, float] = {}
        priority: dict[int, int] = {}
        begun = since = np.nan
        for when, text in lines(folder / "log.txt.gz"):
            if MAIN.match(text):
                passes.append(when)
                begun = when
            elif BACKFILL.match(text):
                begun = when
            elif match := STARTED.match(text):
                started[int(match[1] or match[2])] = when
                in_pass.append(when - begun)
            elif match := SUBMITTED.match(text):
                submitted[int(match[1])] = when
                priority[int(match[1])] = int(match[2])
            elif MULTIFACTOR.match(text):
                since = when
            elif match := ENDED.match(text):
                ended[int(match[1])] = when
            elif match := COMPLETED.match(text):
                testing.append(int(match[1]) / 1e6)
        launched = {int(match[1]): when for when, text in lines(folder / "nodes.txt.gz") if (match := LAUNCHED.match(text))}
        told = (folder / "sdiag.txt").read_text().partition("Main schedule statistics")[2].partition("Backfilling stats")[0]
        mean, most = (int(re.search(rf"{what} cycle: +(\d+)", told)[1]) / 1e6 for what in ("Mean", "Max"))  # type: ignore[index]
        return cls(
            np.array(passes), submitted, started, ended, launched, np.array(in_pass), np.array(testing), (mean, most), priority, since
        )

    def until_pass(self, times: dict[int, float]) -> Array:
        """From each of these times to the beginning of the next pass of the main scheduler, s."""
        when = np.array(list(times.values()))
        after = np.searchsorted(self.passes, when)
        known = after < len(self.passes)
        return self.passes[after[known]] - when[known]

    @property
    def launches(self) -> Array:
        """From each start to the launch on the node, s."""
        return np.array([self.launched[job] - self.started[job] for job in self.started if job in self.launched])

    @property
    def over(self) -> Array:
        """How much longer than the whole seconds that it slept slurmctld had each job, s; less than one."""
        return np.array([(self.ended[job] - self.started[job]) % 1 for job in self.ended])


def lines(file: Path) -> list[tuple[float, str]]:
    """The lines of a daemon's log that have a time (of UTC), with it."""
    found = [LINE.match(line) for line in gzip.decompress(file.read_bytes()).decode(errors="replace").splitlines()]
    return [(datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp(), match[2]) for match in found if match]


def with_latencies(run: Run, log: Log) -> Array:
    """Return the starts, s from the first submission, simulated with the latencies in the log of this run, by jobs' names."""
    numbers = run.jobs.job_id.tolist()
    first = min(log.submitted.values())
    noticed, returned = float(log.until_pass(log.submitted).mean()), float(log.until_pass(log.ended).mean())
    submit = in_parts([log.submitted[job] - first + noticed for job in numbers])
    runtime = in_parts([log.ended[job] - log.started[job] + returned for job in numbers])
    requested = np.maximum(run.jobs.requested * PARTS, runtime)  # a job may end late
    jobs = replace(run.jobs, submit=submit, runtime=runtime, requested=requested, planned=requested)
    schedule = wt.simulate(jobs, "slurm", machine=replace(run.machine, slurm=run.settings_in(PARTS)))
    return schedule.start[run.order] / PARTS


def shares_in_order(run: Run, log: Log) -> tuple[int, int]:
    """How many periods of PriorityCalcPeriod order the accounts as their use of their shares does, and how many there are with submissions.

    Use is of the real starts and ends, and halved as the policy halves it; the order is that of priorities at submission.
    """
    settings = Slurm().settings(run.machine.slurm)
    period, names = settings["priority_calc_period"], run.jobs.origin.names["group"]
    shares = {one.account: one.shares for one in run.machine.shares if one.user is None}
    account = {job: names[group - 1] for job, group in zip(run.jobs.job_id.tolist(), run.jobs.columns["group"].tolist(), strict=True)}
    procs = dict(zip(run.jobs.job_id.tolist(), run.jobs.columns["allocated_procs"].tolist(), strict=True))
    used = dict.fromkeys(account.values(), 0.0)
    alike = there = 0
    for begin in np.arange(log.since, max(log.submitted.values()), period):
        ranks: dict[int, set[str]] = {}
        for job, when in log.submitted.items():
            if begin <= when < begin + period:
                ranks.setdefault(log.priority[job], set()).add(account[job])
        if begin > log.since and ranks:
            there += 1
            real = [name for rank in sorted(ranks, reverse=True) for name in sorted(ranks[rank])]
            alike += real == sorted(real, key=lambda name: used[name] / shares[name])
        used = {name: value * settings.decay for name, value in used.items()}
        for job, start in log.started.items():
            used[account[job]] += procs[job] * max(0.0, min(log.ended[job], begin + period) - max(start, begin))
    return alike, there


def in_parts(seconds: Sequence[float]) -> Array:
    """Whole parts."""
    return np.rint(np.array(seconds) * PARTS).astype(np.int64)


def real_starts(run: Run, log: Log) -> Array:
    """Return the starts in the log, in the form of `with_latencies`."""
    first = min(log.submitted.values())
    return np.array([log.started[job] - first for job in run.jobs.job_id.tolist()])[run.order]


def apart(pairs: Sequence[tuple[Array, Array]]) -> list[float]:
    """The median and the mean difference of starts, over jobs, then over pairs of runs, s."""
    both = [np.abs(one - other) for one, other in pairs]
    return [float(np.mean([np.median(one) for one in both])), float(np.mean([one.mean() for one in both]))]


def middle(logs: Sequence[Log], of: Callable[[Log], Array]) -> list[float]:
    """The median, the mean and the 95th percentile over all runs, s."""
    values = np.concatenate([of(log) for log in logs])
    return [float(np.median(values)), float(values.mean()), float(np.percentile(values, 95))]


def latencies_of(logs: Sequence[Log]) -> dict[str, list[float]]:
    """The median, the mean and the 95th percentile of what passes and launches take, s, over all runs."""
    return {
        "from the beginning of a pass to a start in it": middle(logs, lambda log: log.in_pass),
        "from a start to the launch on the node": middle(logs, lambda log: log.launches),
        "a job's time beyond its sleep": middle(logs, lambda log: log.over),
        "from a submission to the next pass of the main scheduler": middle(logs, lambda log: log.until_pass(log.submitted)),
        "from the end of a job to the next pass of the main scheduler": middle(logs, lambda log: log.until_pass(log.ended)),
        "a cycle of backfilling with jobs to test": middle(logs, lambda log: log.testing),
    }


def measured(folders: Sequence[Path]) -> Numbers:
    """All numbers of a scenario."""
    runs, logs = [Run.read(folder) for folder in folders], [Log.read(folder) for folder in folders]
    real = [real_starts(run, log) for run, log in zip(runs, logs, strict=True)]
    plain = [run.simulated("slurm") - run.wait + run.start for run in runs]
    known = [with_latencies(run, log) for run, log in zip(runs, logs, strict=True)]
    fair = Slurm().settings(runs[0].machine.slurm)["priority_weight_fairshare"] > 0
    return {
        **({"shares in order": [shares_in_order(run, log) for run, log in zip(runs, logs, strict=True)]} if fair else {}),
        "runs": len(runs),
        "jobs": len(runs[0].wait),
        "seconds": latencies_of(logs),
        "main": [float(np.mean([log.main[0] for log in logs])), max(log.main[1] for log in logs)],
        "apart": {
            "two real runs": apart(list(combinations(real, 2))),
            "simulated, passes and launches take no time": apart([(a, run.start) for a, run in zip(plain, runs, strict=True)]),
            "simulated with the run's latencies": apart(list(zip(known, real, strict=True))),
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, simulate, store and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    stored: Numbers = {}
    for name in SCENARIOS:
        folders = sorted(file.parent for file in (given.folder / name).glob("*/nodes.txt.gz") if (file.parent / "cluster.txt").exists())
        if len(folders) > 1:
            stored[name] = measured(folders)
            show(name, stored[name])
    if not stored:
        parser.error(f"{given.folder} has no scenario with two runs and their logs; validation/real_slurm.py makes them")
    given.out.write_text(json.dumps(rounded(stored), indent=1) + "\n")
    return 0


def show(name: str, result: Numbers) -> None:
    """Print what was found of a scenario."""
    print(f"{name}: {result['runs']} runs of {result['jobs']} jobs")
    for what, (median, mean, high) in result["seconds"].items():
        print(f"  {what}: median {1000 * median:.1f} ms, mean {1000 * mean:.1f}, 95 % below {1000 * high:.1f}")
    print(f"  a pass of the main scheduler: mean {1000 * result['main'][0]:.2f} ms, at most {1000 * result['main'][1]:.2f}")
    for alike, there in result.get("shares in order", []):
        print(f"  the use of shares orders the accounts as Slurm did in {alike} of {there} periods")
    real = result["apart"]["two real runs"]
    for what, values in result["apart"].items():
        shares = ", ".join(f"{value / one:.2f}" if one else "-" for value, one in zip(values, real, strict=True))
        print(f"  {what}: starts differ by {values[0]:.1f} s (median), {values[1]:.1f} s (mean); in units of two real runs {shares}")


if __name__ == "__main__":
    sys.exit(main())
