"""Find the scheduler that made a schedule: default ones are tried up to the first difference, and fitting ones on the whole log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from walltime.declared import meaning_of
from walltime.dialects.dialects import interpretations_alone, matters
from walltime.engine.interface.choice import choose
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine
from walltime.policy import DIALECTS, INTERPRETATIONS, PAPERS, Dialect
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of, simulate
from walltime.simulation.specification import Scheduler
from walltime.workload import Array, Workload
from walltime.workload.scaling import with_submits

WHAT_DIFFERS = "; differences: "
"""The words in a rule before the interpretations that differ."""
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
"""Schedulers to try by default, the most common first."""
NEAREST = 2
"""Number of schedulers per file that are tried in every dialect: those with most equal starts up to the difference."""
MOST_WHOLE = 16
"""Maximum number of fitting schedulers per file to simulate on the whole log."""
BY_REFERENCE = 50_000
"""Maximum number of jobs of a log that only the reference engine can simulate under the fitting schedulers."""
MOST_SLOW = 2000
"""Maximum number of jobs for which the reference engine tries a default scheduler that is not compiled for the machine."""
WITH_MEMORY = ("selective",)
"""Policies whose decisions depend on more than the waiting and the running jobs."""


@dataclass(frozen=True)
class SchedulerTrial:
    """A scheduler in a dialect, and how its simulation agrees with each of the two files.

    * `follows`: for each file, whether all starts are equal up to and including the first difference
    * `jobs`: for each file, the number of jobs with equal starts: those up to the difference or, if `whole`, of the whole log
    """

    scheduler: str
    dialect: str
    follows: tuple[bool, bool]
    jobs: tuple[int, int]
    whole: bool = False

    @property
    def label(self) -> str:
        """Return the scheduler, and its dialect if that is not `papers`."""
        return self.scheduler + ("" if self.dialect == "papers" else f" in the dialect {self.dialect}")


class SchedulerTrials:
    """Simulations under many schedulers up to the first difference, and under fitting ones on the whole log."""

    def __init__(
        self,
        workload: Workload,
        starts: tuple[Array, Array],
        ends: tuple[Array, Array],
        time: int,
        overrun: str,
        progress: Callable[[int], None] | None,
        machine: Machine | None = None,
    ):
        self._w, self._starts, self._time, self._progress = workload, starts, time, progress
        self._how: dict[str, Any] = {"overrun": overrun, "machine": machine}
        self._machine = machine
        self._chosen = workload.submit <= time
        self._head = workload.take(self._chosen, f"the jobs that arrive until {time} s")
        self._recent, self._late = _since_empty_queue(self._head, starts[0][self._chosen], ends[0][self._chosen], time)
        self._done = 0
        self._named = False
        self._slow: set[tuple[str, str]] = set()
        self.untried: list[str] = []
        """usual schedulers that only the slow engine simulates"""
        self.trials: dict[tuple[str, str], SchedulerTrial] = {}

    def run(self, policies: Sequence[str] | None, dialects: Sequence[Dialect | str] | None) -> list[SchedulerTrial]:
        """Try the schedulers and return the trials, the best first."""
        usual = USUAL if self._machine is None or self._machine.policy is None else (self._machine.policy, *USUAL)
        texts, self._named = list(policies or dict.fromkeys(usual)), bool(policies)
        schedulers = {text: Scheduler.of(text) for text in texts}
        if not dialects:
            several = [*(one for one in DIALECTS.values() if one != PAPERS), *interpretations_alone()]
        else:
            several = [Dialect.of(one) for one in dialects]
        for text, scheduler in schedulers.items():
            self._try(scheduler, PAPERS if not dialects or PAPERS in several else several[0], text)
        for side in (0, 1):
            self._try_whole_log(side, schedulers)
        for text in texts if policies else self._nearest(texts):
            for dialect in several:
                if matters(dialect, schedulers[text]):
                    self._try(schedulers[text], dialect, text)
        for side in (0, 1):
            self._try_whole_log(side, schedulers)

        def rank(trial: SchedulerTrial) -> tuple[Any, ...]:
            return not any(trial.follows), not trial.whole, -max(trial.jobs), _interpretations(trial), texts.index(trial.scheduler)

        return sorted(self.trials.values(), key=rank)

    def _nearest(self, texts: Sequence[str]) -> list[str]:
        """Return, for each file, the schedulers with most starts equal to the file's."""
        tried = [text for text in texts if (text, "papers") in self.trials]
        best = [sorted(tried, key=lambda text, side=side: -self.trials[text, "papers"].jobs[side]) for side in (0, 1)]  # type: ignore[misc]
        return list(dict.fromkeys([*best[0][:NEAREST], *best[1][:NEAREST]]))

    def _try(self, scheduler: Scheduler, dialect: Dialect, text: str) -> None:
        """Try one scheduler on the jobs that arrived until the first difference.

        A scheduler that only the slow reference engine runs is tried first on the jobs since the queue was last empty. It is dropped if it
        differs from both files there, or follows only a file that another scheduler explains.
        """
        key = text, dialect.label
        try:
            if self._takes_too_long(scheduler, dialect):
                self.untried += [text] if text not in self.untried else []
                return
            if self._is_slow(scheduler, dialect):
                recent = self._simulated(self._recent, scheduler, dialect).start
                trial = self._compared(text, dialect, recent, [start[self._chosen][self._late] for start in self._starts])
                if not any(follows and not self._explained(side) for side, follows in enumerate(trial.follows)):
                    self.trials[key] = trial
                    self._slow.add(key)
                    return
            schedule = self._simulated(self._head, scheduler, dialect)
        except (PolicyError, WorkloadError):  # the scheduler needs a column that the log lacks, or does not support the machine
            if self._named and (self._machine is None or dialect == PAPERS):
                raise
            return
        finally:
            self._done += 1
        if schedule.engine == "reference":
            self._slow.add(key)
        self.trials[key] = self._compared(text, dialect, schedule.start, [start[self._chosen] for start in self._starts])

    def _compared(self, text: str, dialect: Dialect, start: Array, files: Sequence[Array]) -> SchedulerTrial:
        """Return the trial for simulated starts, compared with the starts in both files up to the first difference."""
        until = self._time + 1
        same = [np.minimum(start, until) == np.minimum(file, until) for file in files]
        jobs = [int((equal & (file < until)).sum()) for equal, file in zip(same, files, strict=True)]
        return SchedulerTrial(text, dialect.label, (bool(same[0].all()), bool(same[1].all())), (jobs[0], jobs[1]))

    def _is_slow(self, scheduler: Scheduler, dialect: Dialect) -> bool:
        """Return whether a scheduler is worth a first trial on the jobs since the queue was last empty.

        This holds if only the reference engine runs it, its decisions depend on nothing before that time, and these are at most half of
        the jobs.
        """
        if 2 * len(self._recent) > len(self._head) or scheduler.prediction is not None or scheduler.policy.name in WITH_MEMORY:
            return False
        return run_of(self._recent, scheduler, dialect=dialect, **self._how).engine().name == "reference"

    def _takes_too_long(self, scheduler: Scheduler, dialect: Dialect) -> bool:
        """Return whether a scheduler that was not asked for needs the reference engine on the machine, with more jobs than MOST_SLOW."""
        if self._machine is None or self._named or len(self._head) <= MOST_SLOW:
            return False
        return choose(run_of(self._head, scheduler, dialect=dialect, **self._how).problem)[0] == "reference"

    def _simulated(self, workload: Workload, scheduler: Scheduler, dialect: Dialect | str) -> Schedule:
        """Return the schedule of all of these jobs; raises WorkloadError if some cannot run under the scheduler."""
        schedule = simulate(workload, scheduler, dialect=dialect, progress=self._check, **self._how)
        if len(schedule.workload) != len(workload):
            raise WorkloadError(f"under {scheduler.label}, some jobs cannot run on the machine", "jobs_dropped")
        return schedule

    def _explained(self, side: int) -> bool:
        """Return whether a scheduler has given the whole file of this side."""
        return any(trial.whole and trial.jobs[side] == len(self._w) for trial in self.trials.values())

    def _try_whole_log(self, side: int, schedulers: Mapping[str, Scheduler]) -> None:
        """Simulate the whole log under the schedulers that follow a file, the simplest first, until one gives the whole file."""
        if self._explained(side):
            return
        texts = list(schedulers)
        mine = [(key, trial) for key, trial in self.trials.items() if trial.follows[side] and not trial.whole]
        mine.sort(key=lambda one: (one[0][1] not in DIALECTS, _interpretations(one[1]), texts.index(one[1].scheduler)))
        fast, slow = ([one for one in mine if (one[0] in self._slow) == is_slow] for is_slow in (False, True))
        for key, trial in fast[:MOST_WHOLE] or slow[: len(self._w) <= BY_REFERENCE]:
            schedule = self._simulated(self._w, schedulers[key[0]], trial.dialect)
            jobs = [int((schedule.start == start).sum()) for start in self._starts]
            self.trials[key] = replace(trial, jobs=(jobs[0], jobs[1]), whole=True)
            if jobs[side] == len(self._w):
                return

    def _check(self, _: int) -> None:
        if self._progress is not None:
            self._progress(self._done)


def _since_empty_queue(head: Workload, start: Array, end: Array, time: int) -> tuple[Workload, Array]:
    """Return the jobs since the queue was last empty before `time`, including jobs that ran at that time, and their indices in `head`.

    `start, end`: int64 s. The jobs that ran are submitted at their starts. So a scheduler that depends only on waiting and running jobs
    reaches the same state as after all earlier jobs.
    """
    last = np.maximum.accumulate(np.r_[np.int64(-1), start])[:-1]  # the latest start among earlier arrivals
    clear = np.flatnonzero((head.submit > last) & (head.submit < time))
    begin = int(head.submit[clear[-1]]) if len(clear) else 0
    chosen = (head.submit >= begin) | (end > begin)
    recent = head.take(chosen, f"the jobs since the queue was empty, at {begin} s")
    submit = np.where(head.submit >= begin, head.submit, start)[chosen]
    place = np.flatnonzero(chosen)[np.lexsort((recent.job_id, submit))]
    return with_submits(recent, submit).with_feedback(False), place


def rule_of(trials: Sequence[SchedulerTrial], names: tuple[str, str], jobs: int) -> str:
    """Return a sentence that explains the difference; `jobs`: number of jobs in both files."""
    best: list[list[SchedulerTrial]] = []
    for side in (0, 1):
        own = [trial for trial in trials if trial.follows[side]]
        best.append(sorted(own, key=lambda one, side=side: (not one.whole, -one.jobs[side])))  # type: ignore[misc]
    if best[0] and best[1]:
        first, second = ([one for one in own if one.jobs[side] == own[0].jobs[side]] for side, own in enumerate(best))
        return _describe(*min(product(first, second), key=lambda pair: _distance(*pair)), names, jobs)
    tried = f"none of the {len(trials)} schedulers and dialects tried"
    for side in (0, 1):
        if best[side]:
            return f"{names[side]} is the schedule of {best[side][0].label}; {tried} gives {names[1 - side]}'s start"
    return f"{tried} gives the starts of either file at that time; try others with --policy and --dialect"


def _distance(a: SchedulerTrial, b: SchedulerTrial) -> tuple[int, int]:
    """Return a measure of the distance between two trials: the interpretations that they need, then the rules in which they differ."""
    return _interpretations(a) + _interpretations(b), len(_changed(a, b)) + len(_options(a.scheduler) ^ _options(b.scheduler))


def _interpretations(trial: SchedulerTrial) -> int:
    """Return the number of interpretations in which the trial's dialect differs from `papers`."""
    return len(Dialect.of(trial.dialect).changed)


def _options(text: str) -> frozenset[str]:
    scheduler = Scheduler.of(text)
    own = {f"{field.name}={getattr(scheduler.policy, field.name)}" for field in fields(scheduler.policy)}
    return frozenset(own | {type(scheduler.policy).__name__, repr(scheduler.prediction)})


def _changed(a: SchedulerTrial, b: SchedulerTrial) -> list[str]:
    """Return the interpretations in which two dialects differ."""
    one, other = Dialect.of(a.dialect), Dialect.of(b.dialect)
    return [name for name in INTERPRETATIONS if getattr(one, name) != getattr(other, name)]


def _describe(a: SchedulerTrial, b: SchedulerTrial, names: tuple[str, str], jobs: int) -> str:
    text = f"{names[0]} matches a simulation of {a.label}, and {names[1]} matches one of {b.label}"
    if a.whole and b.whole and a.jobs[0] == b.jobs[1] == jobs:
        text += f", with all {jobs:,} start times equal"
    elif a.whole and b.whole:
        own = [f"all {jobs:,}" if same == jobs else f"{same:,} of {jobs:,}" for same in (a.jobs[0], b.jobs[1])]
        text += f", but only until then; over the whole log, {own[0]} and {own[1]} jobs start at the same times"
    one, other = Dialect.of(a.dialect), Dialect.of(b.dialect)
    parts = [
        f"{name} is {getattr(one, name)!r} in {names[0]} and {getattr(other, name)!r} in {names[1]} "
        f"({meaning_of(Dialect, INTERPRETATIONS[name])})"
        for name in (_changed(a, b) if a.scheduler == b.scheduler else ())
    ]
    return f"{text}{WHAT_DIFFERS}{'; '.join(parts)}" if parts else text
