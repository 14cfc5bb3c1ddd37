"""Which scheduler makes a schedule: usual ones are tried until two schedules part, and those that fit on the whole log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from walltime.declared import meaning_of
from walltime.dialects.dialects import matters, readings_alone
from walltime.errors import PolicyError, WorkloadError
from walltime.policy import DIALECTS, PAPERS, READINGS, Dialect
from walltime.simulation.run import run_of, simulate
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload
from walltime.workload.scaling import with_submits

Array = np.ndarray
WHAT_DIFFERS = "; what differs: "
"""In the rule that explains a difference, ahead of the readings that are not the same."""
USUAL = (
    "easy",
    "easy:backfill-order=sjf",
    "easy++",
    "fcfs",
    "conservative",
    "easy:predictor=exact",
    "easy:backfill-order=sjf,predictor=exact",
    "easy:order=sjf",
    "easy:predictor=tsafrir07",
    "easy:order=wfp",
    "easy:order=saf",
    "easy:order=f4",
    "easy:backfill-order=saf",
    "hybrid:depth=4",
    "conservative-scratch",
    "relaxed",
    "selective",
    "los",
    "slack",
)
"""Schedulers that are tried, the most usual first."""
NEAREST = 2
"""Of each file so many schedulers are tried in every dialect, those that follow it longest."""
MOST_WHOLE = 16
"""Of those that explain a file so far, so many are simulated on the whole log."""
BY_REFERENCE = 50_000
"""Jobs up to which that is done under one that only the reference engine can run, if no other explains it."""
WITH_MEMORY = ("selective",)
"""Policies that go by more than who waits and who runs."""


@dataclass(frozen=True)
class SchedulerTrial:
    """A scheduler in a dialect, and how it fits both files.

    `follows`: for each file whether it gives the same schedule up to and including the instant of the first difference. `jobs`: for each
    file how many jobs start at the same time, of those whose start is known by then, or of all if `whole`.
    """

    scheduler: str
    dialect: str
    follows: tuple[bool, bool]
    jobs: tuple[int, int]
    whole: bool = False

    @property
    def label(self) -> str:
        """The scheduler, and the dialect if it is not that of the papers."""
        return self.scheduler + ("" if self.dialect == "papers" else f" in the dialect {self.dialect}")


class SchedulerTrials:
    """Schedulers, tried until the first difference, and those that explain it on the whole log."""

    def __init__(
        self,
        workload: Workload,
        starts: tuple[Array, Array],
        ends: tuple[Array, Array],
        time: int,
        overrun: str,
        progress: Callable[[int], None] | None,
    ):
        self._w, self._starts, self._time, self._overrun, self._progress = workload, starts, time, overrun, progress
        self._chosen = workload.submit <= time
        self._head = workload.take(self._chosen, f"the jobs that arrive until {time} s")
        self._recent, self._late = _since_nobody_waited(self._head, starts[0][self._chosen], ends[0][self._chosen], time)
        self._done = 0
        self._named = False
        self._slow: set[tuple[str, str]] = set()
        self.trials: dict[tuple[str, str], SchedulerTrial] = {}

    def run(self, policies: Sequence[str] | None, dialects: Sequence[Dialect | str] | None) -> list[SchedulerTrial]:
        """The trials, the best first."""
        texts, self._named = list(policies or USUAL), bool(policies)
        schedulers = {text: Scheduler.of(text) for text in texts}
        if dialects is None:
            several = [*(one for one in DIALECTS.values() if one != PAPERS), *readings_alone()]
        else:
            several = [Dialect.of(one) for one in dialects]
        for text, scheduler in schedulers.items():
            self._try(scheduler, PAPERS if dialects is None or PAPERS in several else several[0], text)
        for side in (0, 1):
            self._go_on(side, schedulers)
        nearest = list(schedulers) if policies else self._nearest(list(schedulers))
        for text in nearest:
            for dialect in several:
                if matters(dialect, schedulers[text]):
                    self._try(schedulers[text], dialect, text)
        for side in (0, 1):
            self._go_on(side, schedulers)
        return sorted(self.trials.values(), key=lambda one: self._rank(one, texts))

    def _rank(self, trial: SchedulerTrial, texts: Sequence[str]) -> tuple[Any, ...]:
        return not any(trial.follows), not trial.whole, -max(trial.jobs), _readings(trial), texts.index(trial.scheduler)

    def _nearest(self, texts: list[str]) -> list[str]:
        """The schedulers that follow one of the files longest."""
        chosen: list[str] = []
        for side in (0, 1):
            of = [(self.trials[text, "papers"], text) for text in texts if (text, "papers") in self.trials]
            best = sorted(of, key=lambda one: (-one[0].jobs[side], texts.index(one[1])))
            chosen += [text for _, text in best[:NEAREST]]
        return list(dict.fromkeys(chosen))

    def _try(self, scheduler: Scheduler, dialect: Dialect, text: str) -> None:
        """One scheduler on the jobs that arrived until the first difference.

        Where only the slow engine runs it, first on those since nobody waited: what parts from a file there does not follow it, and what
        follows only a file that another one explains is not looked at further.
        """
        try:
            if self._is_slow(scheduler, dialect):
                recent = simulate(self._recent, scheduler, dialect=dialect, overrun=self._overrun, progress=self._check).start
                files = [start[self._chosen][self._late] for start in self._starts]
                until = self._time + 1
                same = [np.minimum(recent, until) == np.minimum(file, until) for file in files]
                since = (bool(same[0].all()), bool(same[1].all()))
                if not any(goes and not self._explained(side) for side, goes in enumerate(since)):
                    jobs = [int((equal & (file < until)).sum()) for equal, file in zip(same, files, strict=True)]
                    self.trials[text, dialect.label] = SchedulerTrial(text, dialect.label, since, (jobs[0], jobs[1]))
                    self._slow.add((text, dialect.label))
                    return
            schedule = simulate(self._head, scheduler, dialect=dialect, overrun=self._overrun, progress=self._check)
        except (PolicyError, WorkloadError):  # it needs what the log lacks, such as users
            if self._named:
                raise
            return
        finally:
            self._done += 1
        until = self._time + 1
        own = np.minimum(schedule.start, until)
        follows, jobs = [], []
        for start in self._starts:
            file = np.minimum(start[self._chosen], until)
            follows.append(bool((own == file).all()))
            jobs.append(int(((own == file) & (file < until)).sum()))
        if schedule.engine == "reference":
            self._slow.add((text, dialect.label))
        self.trials[text, dialect.label] = SchedulerTrial(text, dialect.label, (follows[0], follows[1]), (jobs[0], jobs[1]))

    def _is_slow(self, scheduler: Scheduler, dialect: Dialect) -> bool:
        """Whether only the reference engine runs it, on far more jobs than since nobody waited, and it knows nothing of the time before."""
        if 2 * len(self._recent) > len(self._head) or scheduler.prediction is not None or scheduler.policy.name in WITH_MEMORY:
            return False
        return run_of(self._recent, scheduler, dialect=dialect, overrun=self._overrun).engine().name == "reference"

    def _explained(self, side: int) -> bool:
        """Whether a scheduler gives all of a file."""
        return any(trial.whole and trial.jobs[side] == len(self._w) for trial in self.trials.values())

    def _go_on(self, side: int, schedulers: Mapping[str, Scheduler]) -> None:
        """Simulate the whole log under those that explain a file so far, the simplest first, until one gives all of it."""
        texts = list(schedulers)
        mine = [(key, trial) for key, trial in self.trials.items() if trial.follows[side]]
        if self._explained(side):
            return
        mine = [one for one in mine if not one[1].whole]
        mine.sort(key=lambda one: (one[0][1] not in DIALECTS, _readings(one[1]), texts.index(one[1].scheduler)))
        fast = [one for one in mine if one[0] not in self._slow]
        few = [one for one in mine if one[0] in self._slow][: 1 if len(self._w) <= BY_REFERENCE and not fast else 0]
        for key, trial in fast[:MOST_WHOLE] + few:
            schedule = simulate(self._w, schedulers[key[0]], dialect=trial.dialect, overrun=self._overrun, progress=self._check)
            jobs = [int((schedule.start == start).sum()) for start in self._starts]
            self.trials[key] = replace(trial, jobs=(jobs[0], jobs[1]), whole=True)
            if jobs[side] == len(self._w):
                return

    def _check(self, _: int) -> None:
        if self._progress is not None:
            self._progress(self._done)


def _since_nobody_waited(head: Workload, start: Array, end: Array, time: int) -> tuple[Workload, Array]:
    """The jobs since the last moment before `time` at which nobody waited, with those that ran then, and their places in `head`.

    `start, end` (int64 s): when they start and end. Those that ran are submitted when they started. So a scheduler that knows only who
    waits and who runs is at that moment where it would be after all of the jobs.
    """
    last = np.maximum.accumulate(np.r_[np.int64(-1), start])[:-1]  # the latest start of the jobs that arrived before
    clear = np.flatnonzero((head.submit > last) & (head.submit < time))
    begin = int(head.submit[clear[-1]]) if len(clear) else 0
    chosen = (head.submit >= begin) | (end > begin)
    recent = head.take(chosen, f"the jobs since nobody waited, at {begin} s")
    submit = np.where(head.submit >= begin, head.submit, start)[chosen]
    place = np.flatnonzero(chosen)[np.lexsort((recent.job_id, submit))]
    return with_submits(recent, submit).with_feedback(False), place


def rule_of(trials: Sequence[SchedulerTrial], names: tuple[str, str], jobs: int) -> str:
    """What explains the difference, as a sentence; `jobs`: of both files."""
    of = [[trial for trial in trials if trial.follows[side]] for side in (0, 1)]
    best = [sorted(own, key=lambda one, side=side: (not one.whole, -one.jobs[side])) for side, own in enumerate(of)]  # type: ignore[misc]
    if best[0] and best[1]:
        a, b = _pair(best[0], best[1])
        return _told(a, b, names, jobs)
    for side in (0, 1):
        if best[side]:
            own, other = best[side][0], names[1 - side]
            return f"{names[side]} is what {own.label} gives; none of the {len(trials)} schedulers and dialects tried gives {other}'s start"
    return (
        f"none of the {len(trials)} schedulers and dialects tried gives what one of the files has then; "
        "name the scheduler, its options and its dialect"
    )


def _pair(a: Sequence[SchedulerTrial], b: Sequence[SchedulerTrial]) -> tuple[SchedulerTrial, SchedulerTrial]:
    """Of those that explain one file or the other best, the two that need the fewest readings, and differ in the fewest rules."""
    best = [[one for one in own if one.jobs[side] == own[0].jobs[side]] for side, own in enumerate((a, b))]
    return min(((one, other) for one in best[0] for other in best[1]), key=lambda pair: _distance(*pair))


def _distance(a: SchedulerTrial, b: SchedulerTrial) -> tuple[int, int]:
    return _readings(a) + _readings(b), len(_changed(a, b)) + len(_options(a.scheduler) ^ _options(b.scheduler))


def _readings(trial: SchedulerTrial) -> int:
    """How many readings of its dialect are not those of the papers."""
    return len(Dialect.of(trial.dialect).changed)


def _options(text: str) -> frozenset[str]:
    scheduler = Scheduler.of(text)
    own = {f"{field.name}={getattr(scheduler.policy, field.name)}" for field in fields(scheduler.policy)}
    return frozenset(own | {type(scheduler.policy).__name__, repr(scheduler.prediction)})


def _changed(a: SchedulerTrial, b: SchedulerTrial) -> list[str]:
    """The readings in which two dialects differ."""
    one, other = Dialect.of(a.dialect), Dialect.of(b.dialect)
    return [name for name in READINGS if getattr(one, name) != getattr(other, name)]


def _told(a: SchedulerTrial, b: SchedulerTrial, names: tuple[str, str], jobs: int) -> str:
    said = f"{names[0]} is what {a.label} gives, {names[1]} is what {b.label} gives"
    if a.whole and b.whole:
        if a.jobs[0] == b.jobs[1] == jobs:
            said += f", with all {jobs:,} jobs of both at the same times"
        else:
            own = [f"all {jobs:,}" if same == jobs else f"{same:,} of {jobs:,}" for same in (a.jobs[0], b.jobs[1])]
            said += f"; both only until then: over the whole log {own[0]} and {own[1]} jobs are at the same times"
    changed = _changed(a, b) if a.scheduler == b.scheduler else []
    if not changed:
        return said
    one, other = Dialect.of(a.dialect), Dialect.of(b.dialect)
    parts = [
        f"{name} is {getattr(one, name)} there and {getattr(other, name)} here ({meaning_of(Dialect, READINGS[name])})" for name in changed
    ]
    return f"{said}{WHAT_DIFFERS}{'; '.join(parts)}"
