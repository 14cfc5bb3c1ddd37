"""Coverage of intervals over weeks: of models, of a process with a formula, and of real logs.

A model with users is run for a year with each seed; the truth is the mean over all other seeds. An interval is made from stretches of
such a run as `what-if` makes it from a log. The autoregressive process has a known mean.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import find_log
from validation.coverage import Sizes, Trials, experiment
from walltime import Workload, read, simulate
from walltime.estimates import Tsafrir05
from walltime.metrics.series import BLOCKS
from walltime.metrics.weekly_interval import WEEK, mean_over_weeks, no_interval_reason, parts_of, queued_share, weeks_of
from walltime.whatif.simulations import FEWEST_WEEKS
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.resampling import resample_weeks, with_users

Array = np.ndarray
Run = tuple[Array, list[Array]]
"""Submissions, and the start of each job under each setting; int64 seconds."""

LOADS = {0.6: 52, 0.7: 52, 0.8: 52, 1.1: 20}
"""Weeks of a run by load. The last one is overloaded: its queue grows without bound."""
PROCS, MORE_PROCS = 128, 134
LENGTHS = (20, 26, 52)
CHANGES = ("conservative instead of EASY", "5 % more processors")
LOGS = ("KTH-SP2-1996-2.swf", "SDSC-SP2-1998-4.x-cln", "CTC-SP2-1996-3.1-cln", "SDSC-BLUE-2000-4.x-cln")


def runs_of(load: float, seed: int, weeks: int) -> Run:
    """Return a generated log with users of this many weeks, under today's setting and each change."""
    probe = Lublin99().generate(5000, PROCS, load, 1)
    jobs = round(1.15 * len(probe) * weeks * WEEK / int(probe.submit[-1] - probe.submit[0]))
    log = with_users(Lublin99().generate(jobs, PROCS, load, 1000 + seed), 50, seed).with_estimates(Tsafrir05(), seed)
    schedules = [simulate(log, "easy"), simulate(log, "conservative"), simulate(log.with_machine(MORE_PROCS), "easy")]
    return log.submit - log.submit[0], [schedule.start - log.submit[0] for schedule in schedules]


def pool(load: float, seeds: int, weeks: int) -> list[Run]:
    """The runs of all seeds."""
    return [runs_of(load, seed, weeks) for seed in range(seeds)]


def judge(trials: Trials, run: Run, change: int, begin: int, weeks: int, truth: float, group: int) -> None:
    """Make the interval from a stretch of the run, as `what-if` does, and count whether it holds the true relative change."""
    submit, starts = run
    inside = (submit >= begin * WEEK) & (submit < (begin + weeks) * WEEK)
    mine, today, changed = submit[inside], starts[0][inside], starts[change + 1][inside]
    queued = max(queued_share(mine, today), queued_share(mine, changed))
    why = no_interval_reason(mine, queued)
    base = (today - mine).astype(np.float64)
    found = None if why else mean_over_weeks((changed - today).astype(np.float64), weeks_of(mine), parts_of(mine), queued, base)
    if found is None:
        trials.withhold("a lasting queue" if "queue" in why else why)
    else:
        trials.add(found.low / base.mean(), found.high / base.mean(), truth, group)


@experiment("weeks:models", of_what="sampling of weeks", command="what-if, calibrate")
def models(sizes: Sizes) -> list[Trials]:
    """Relative changes of the mean wait from today's setting under two changes."""
    found = []
    for load in sizes.some(list(LOADS)):
        longest = 20 if sizes.quick else LOADS[load]
        runs = pool(load, sizes.many(24, 20), longest)
        for change, said in enumerate(CHANGES):
            sums = np.array([[float((starts[change + 1] - starts[0]).sum()), float((starts[0] - submit).sum())] for submit, starts in runs])
            for weeks in (length for length in LENGTHS if length <= longest):
                trials = Trials(f"load {load}, {weeks} weeks, {said}")
                for seed, run in enumerate(runs):
                    total, waited = np.delete(sums, seed, axis=0).sum(axis=0)
                    for begin in range(0, longest - weeks + 1, weeks):
                        judge(trials, run, change, begin, weeks, total / waited, seed)
                found.append(trials)
    return found


@experiment("weeks:autoregressive", of_what="sampling of weeks", command="what-if, calibrate", quick=True)
def autoregressive(sizes: Sizes) -> list[Trials]:
    """Weekly means that follow a first-order autoregressive process with a mean of 0."""
    found = []
    for correlation in sizes.some((0.0, 0.2, 0.5, 0.8)):
        for weeks in (20, 52, 104):
            trials = Trials(f"autoregressive weeks, correlation of neighbours {correlation}, {weeks} weeks")
            random = np.random.default_rng(weeks)
            for _ in range(sizes.many(1000, 300)):
                values = np.empty(weeks)
                values[0] = random.normal() / np.sqrt(1 - correlation**2)
                for week in range(1, weeks):
                    values[week] = correlation * values[week - 1] + random.normal()
                interval = mean_over_weeks(values, np.arange(weeks), np.arange(weeks) * BLOCKS // weeks)
                assert interval is not None
                trials.add(interval.low, interval.high, 0.0)
            found.append(trials)
    return found


@experiment("weeks:logs", of_what="sampling of weeks", command="what-if, calibrate")
def logs(sizes: Sizes) -> list[Trials]:
    """Relative change of the mean wait from EASY to conservative backfilling in one stretch of a real log, against the rest."""
    found = []
    for weeks in sizes.some((20, 24)):
        trials = Trials(f"real logs, {weeks} weeks, the change in the rest of the log", meant=False)
        for name in LOGS:
            path = find_log(name)
            if path is None:
                continue
            log = read(path)
            submit = log.submit - log.submit[0]
            run = submit, [simulate(log, policy).start - log.submit[0] for policy in ("easy", "conservative")]
            for begin in range(0, int(submit[-1]) // WEEK - weeks + 1, weeks):
                rest = (submit < begin * WEEK) | (submit >= (begin + weeks) * WEEK)
                truth = float((run[1][1] - run[1][0])[rest].sum() / (run[1][0] - submit)[rest].sum())
                judge(trials, run, 0, begin, weeks, truth, group=LOGS.index(name))
        found.append(trials)
    return found


@experiment("weeks.logs", of_what="resampled weeks", command="what-if")
def logs_of_its_weeks(sizes: Sizes) -> list[Trials]:
    """The difference in mean wait in one further log made of the same weeks, and the model's own difference."""
    count, weeks = 5, 20
    further, own = (
        Trials(f"load 0.7, {count} logs: {what}", (count - 1) / (count + 1))
        for what in ("one more resampled log", "another log of the model")
    )
    own.meant = False
    runs = [runs_of(0.7, seed, weeks) for seed in range(sizes.many(40, 20))]
    sums = np.array([[float((starts[1] - starts[0]).sum()), len(submit)] for submit, starts in runs])
    for seed, (submit, _) in enumerate(runs):
        log = with_users(Lublin99().generate(len(submit), PROCS, 0.7, 1000 + seed), 50, seed).with_estimates(Tsafrir05(), seed)
        differences = [_difference(resample_weeks(log, number)) for number in range(count + 1)]
        total, jobs = np.delete(sums, seed, axis=0).sum(axis=0)
        low, high = min(differences[1:]), max(differences[1:])
        further.add(low, high, differences[0])
        own.add(low, high, total / jobs)
    assert weeks >= FEWEST_WEEKS
    return [further, own]


def _difference(log: Workload) -> float:
    easy, other = (simulate(log, policy).summary().mean_wait for policy in ("easy", "conservative"))
    return other - easy
