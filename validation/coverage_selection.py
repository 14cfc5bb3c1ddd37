"""How often the intervals of long runs, suites, leaderboards, fitted orders and agents hold the truth.

The truth is that of a formula (autoregressive streams), of much longer runs of the same model, of schedulers made equal, or of the rest
of a long log. Logs are looked for in the folder that WALLTIME_TRACES names; without them their cases are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from benchmarks.common import find_log
from validation.coverage import Sizes, Trials, experiment
from walltime import Easy, read, simulate
from walltime.benchmark.standings import behind_best
from walltime.learn import Task
from walltime.learn.evaluation import SCHEDULERS
from walltime.learn.training import formula_outcomes
from walltime.metrics import BatchMeans, batch_means, halves_differ, jobs_needed, prediction_interval, series_interval, stratified_interval
from walltime.papers.mualem01.models import published_batch_means
from walltime.simulation.windows import log_cost
from walltime.workloads import Lublin99

Array = np.ndarray

LOADS = (0.6, 0.7, 0.8, 1.1)
"""The last one is overloaded: the long run has no mean."""
RUN = 290_000
"""Jobs of a run that is long enough at a load of 0.7; at one of 0.8 it is not, and four times as many are."""
LOGS = {"KTH-SP2": "KTH-SP2-1996-2.1-cln", "SDSC-SP2": "SDSC-SP2-1998-4.x-cln", "LANL-CM5": "LANL-CM5-1994-4.1-cln"}
"""The beginning of each file's name."""
STRETCH = {"KTH-SP2": 30, "SDSC-SP2": 63, "LANL-CM5": 63}
"""Consecutive windows of a trial."""
PAIRS = (
    ("easy:order=saf", "easy"),
    ("easy:order=f4", "easy:order=saf"),
    ("easy:order=sjf", "easy:order=f4"),
    ("easy:backfill-order=sjf", "easy"),
    ("fcfs", "easy"),
)
"""Schedulers that are compared where no agent was trained."""


def autoregressive(share: float, count: int, seed: int) -> Array:
    """A stream in which neighbours correlate by `share`; its mean is 0."""
    noise = np.random.default_rng(seed).normal(size=count + 1000)
    stream = np.empty(len(noise))
    last = 0.0
    for k, one in enumerate(noise.tolist()):
        last = share * last + one
        stream[k] = last
    return stream[1000:]


@experiment("batch-means", of_what="the long run", command="simulate --batch-means", quick=True)
def streams(sizes: Sizes) -> list[Trials]:
    """Autoregressive streams, whose mean is 0."""
    found = []
    for share, count, batch in sizes.some(((0.5, 4000, 40), (0.9, 6000, 60), (0.99, 20_000, 200), (0.999, 20_000, 500))):
        trials = Trials(f"autoregressive, correlation of neighbours {share:g}, {count:,} values")
        for seed in range(sizes.many(600, 60)):
            add(trials, batch_means(autoregressive(share, count, seed), batch=batch), 0.0)
        found.append(trials)
    return found


def add(trials: Trials, found: BatchMeans, truth: float | None, group: int | None = None) -> None:
    """Count a result of batch means; without a truth an interval fails."""
    interval = found.interval
    if interval is None:
        trials.withhold(found.verdict)
    elif truth is None:
        trials.add(1.0, 1.0, 0.0, group)
    else:
        trials.add(interval.low, interval.high, truth, group)


@experiment("batch-means.published", of_what="the long run", command="paper run mualem01")
def published(sizes: Sizes) -> list[Trials]:
    """The rules of the paper, for comparison: batches are taken for independent."""
    found = []
    for share, count, batch in sizes.some(((0.5, 4000, 40), (0.9, 6000, 60), (0.99, 20_000, 200), (0.999, 20_000, 500))):
        trials = Trials(f"autoregressive, correlation of neighbours {share:g}, {count:,} values", meant=False)
        for seed in range(sizes.many(300, 60)):
            interval = published_batch_means(1000 + autoregressive(share, count, seed), batch=batch, precision=0).interval
            trials.add(interval.low, interval.high, 1000.0)
        found.append(trials)
    return found


def responses(load: float, seed: int, jobs: int) -> Array:
    """Response times in order of termination, s, without the first 20,000.

    The model's load is exact over a run as a whole, so its mean varies less than that of as long a piece of a longer run.
    """
    schedule = simulate(Lublin99().generate(jobs + 20_000, 128, load, seed), Easy())
    order = np.lexsort((schedule.start, schedule.end))
    return np.asarray((schedule.end - schedule.submit)[order][20_000:])


@experiment("batch-means:model", of_what="the long run", command="simulate --batch-means")
def generated(sizes: Sizes) -> list[Trials]:
    """Pieces of long runs of the Lublin'99 model under EASY; the truth is the mean of all long runs."""
    seeds = sizes.many(10, 2)
    found = []
    for load in LOADS:
        cases = {jobs: Trials(f"load {load}, {jobs:,} jobs, batches of 3,333") for jobs in (40_000, 140_000, RUN, 4 * RUN)}
        runs = [responses(load, seed, 4 * RUN if load < 1 else 140_000) for seed in range(seeds)]
        truth = float(np.mean([run.mean() for run in runs])) if load < 1 else None
        for jobs, trials in cases.items():
            for seed, run in enumerate(runs):
                for begin in range(0, len(run) - jobs + 1, jobs):
                    add(trials, batch_means(run[begin : begin + jobs], least=jobs_needed(load)), truth, seed)
        found += [trials for trials in cases.values() if trials.held or trials.why]
    return found


def suite(seed: int, behind: Array, subjects: Array, spread: float) -> Array:
    """Costs (logarithms) of schedulers that are so far behind the best: windows of subjects that differ much, and what is their own."""
    draw = np.random.default_rng(seed)
    windows = 2.0 * subjects + 1.5 * draw.normal(size=len(subjects))
    return np.asarray(behind[:, None] + windows + spread * draw.standard_t(4, (len(behind), len(subjects))))


SIX_BY_FIVE, TWO_LOGS = np.repeat(np.arange(6), 5), np.repeat([0, 1], [11, 24])
SHAPES = (("six subjects of five windows", SIX_BY_FIVE), ("two logs of 11 and 24 months", TWO_LOGS))


@experiment("benchmark.total", of_what="sampling of windows", command="benchmark run", quick=True)
def total(sizes: Sizes) -> list[Trials]:
    """The mean over windows of one scheduler."""
    found = []
    for name, subjects in SHAPES:
        trials = Trials(name)
        for seed in range(sizes.many(1000, 100)):
            interval = stratified_interval(suite(seed, np.zeros(1), subjects, 0.3)[0], subjects.tolist())
            trials.add(interval.low, interval.high, 2.0 * float(subjects.mean()))
        found.append(trials)
    return found


@experiment("benchmark.behind", of_what="sampling of windows", command="benchmark leaderboard")
def behind(sizes: Sizes) -> list[Trials]:
    """All rows at once: twelve equal schedulers, two and forty of them, and twelve that differ."""
    apart = np.concatenate([[0.0, 0.0, 0.02, 0.05, 0.1], np.linspace(0.2, 2.0, 7)])
    found = []
    for name, subjects in SHAPES:
        for what, truth in (
            ("12 equal schedulers", np.zeros(12)),
            ("2 equal schedulers", np.zeros(2)),
            ("40 equal schedulers", np.zeros(40)),
            ("12 different schedulers", apart),
        ):
            trials = Trials(f"{what}, {name}, simultaneously")
            for seed in range(sizes.many(300 if len(truth) < 40 else 60, 20)):
                low, high = behind_best(suite(seed, truth, subjects, 0.3), subjects.tolist())
                # the interval that misses by most decides; all others hold where this one does
                worst = float(np.max(np.maximum(low - truth, truth - high)))
                trials.add(worst, np.inf, 0.0) if worst > 0 else trials.add(0.0, 0.0, 0.0)
            found.append(trials)
    return found


@lru_cache
def window_costs(name: str) -> dict[str, Array]:
    """The logarithm of the cost of each window of a log under the schedulers of `PAIRS`; empty where the log is not there."""
    file = find_log(LOGS[name])
    if file is None:
        return {}
    task = Task()
    episodes = task.windows(read(file), "all")
    labels = dict.fromkeys(label for pair in PAIRS for label in pair)
    return {label: log_cost(formula_outcomes(episodes, task.rules, SCHEDULERS[label])[0], task.reward) for label in labels}


def stretches(name: str) -> Iterator[tuple[Array, Array]]:
    """Return the differences of each pair in all windows, and stretches of them, shape (stretches, windows), one every three windows."""
    costs = window_costs(name)
    for one, other in PAIRS if costs else ():
        gain = costs[one] - costs[other]
        size = STRETCH[name]
        yield gain, np.array([gain[begin : begin + size] for begin in range(0, len(gain) - size + 1, 3)])


@experiment("learn.windows", of_what="sampling of windows", command="learn evaluate")
def consecutive(sizes: Sizes) -> list[Trials]:
    """Consecutive windows of long logs; a caveat applies where the halves of a log differ.

    The truth is the mean over all windows of the log, which include them, so the shares are slightly high.
    """
    found = []
    for name in sizes.some(tuple(LOGS)):
        alike = Trials(f"{name}, {STRETCH[name]} consecutive windows, with similar halves of the log")
        other = Trials(f"{name}, {STRETCH[name]} consecutive windows, with the caveat that the halves of the log differ", meant=False)
        for number, (gain, some) in enumerate(stretches(name)):
            trials = other if halves_differ(gain) else alike
            for begin, values in enumerate(some):
                interval = series_interval(values)
                trials.add(interval.low, interval.high, float(gain.mean()), (number, begin * 3 // STRETCH[name]))
        found += [trials for trials in (alike, other) if trials.held]
    return found


@experiment("learn.windows:streams", of_what="sampling of windows", command="learn evaluate", quick=True)
def windows_of_streams(sizes: Sizes) -> list[Trials]:
    """Autoregressive windows, which have a mean."""
    found = []
    for share in (0.0, 0.3, 0.6, 0.8):
        trials = Trials(f"63 windows, correlation of neighbours {share:g}")
        for seed in range(sizes.many(1000, 100)):
            interval = series_interval(autoregressive(share, 63, seed))
            trials.add(interval.low, interval.high, 0.0)
        found.append(trials)
    return found


@experiment("tuning.change", of_what="sampling of windows", command="tune", quick=True)
def months_of_streams(sizes: Sizes) -> list[Trials]:
    """A dozen held-out months and a year of weeks."""
    found = []
    for what, count, share in (("6 months", 6, 0.2), ("12 months", 12, 0.2), ("52 weeks", 52, 0.5)):
        trials = Trials(f"{what}, correlation of neighbours {share:g}")
        for seed in range(sizes.many(1000, 100)):
            interval = series_interval(autoregressive(share, count, seed))
            trials.add(interval.low, interval.high, 0.0)
        found.append(trials)
    return found


@experiment("learn.seeds", of_what="other training runs", command="learn evaluate", quick=True)
def agents(sizes: Sizes) -> list[Trials]:
    """A further agent next to a few, from normal and skewed distributions, because hundreds of trainings are too expensive."""
    found = []
    for count in (3, 5, 10):
        for what in ("normal", "exponential"):
            trials = Trials(f"{count} agents, {what}")
            for seed in range(sizes.many(2000, 200)):
                draw = np.random.default_rng(seed)
                every = draw.normal(size=count + 1) if what == "normal" else draw.exponential(size=count + 1)
                interval = prediction_interval(every[1:])
                trials.add(interval.low, interval.high, float(every[0]))
            found.append(trials)
    return found
