"""Where two schedules of one log part, what the scheduler had before it there, and which rules make one and the other.

Up to the first difference both have the same state of the machine and the queue, and no scheduler knows what comes later. So a scheduler
is tried on the jobs that were submitted until then: if its schedule is that of a file up to and including this instant, it explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from walltime.declared import meaning_of
from walltime.engine.reference.plain import find_shadow
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import effective_times
from walltime.policy import DIALECTS, PAPERS, READINGS, Dialect
from walltime.simulation.dialects import matters, readings_alone
from walltime.simulation.run import run_of, simulate
from walltime.simulation.specification import Scheduler
from walltime.tables import Facts
from walltime.workload import Workload, check_workload

__all__ = ["WHAT_DIFFERS", "Difference", "FirstDifference", "Trial", "diff"]

Array = np.ndarray
WHAT_DIFFERS = "; what differs: "
"""In the rule that explains a difference, ahead of the readings that are not the same."""
Columns = Mapping[str, Array]
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
LISTED = 12
"""Jobs of the queue that are named."""


@dataclass(frozen=True)
class Trial:
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


@dataclass(frozen=True)
class FirstDifference:
    """The first instant at which two schedules differ, and what there was just before.

    `job, submit, procs, requested`: the first of the jobs that differ then (s). `starts, ends`: its start and end in both files. `what`:
    `start`, or `end` if it starts at the same time in both. `free`: processors that are free before anybody starts at `time`. `running`:
    who runs, and `waiting`, who waits then, both by job number; the queue is in order of arrival. `started`: who starts at `time` in the
    one file and not in the other. `head`, `shadow`, `extra`: the first to arrive of those that do not start in either file, and, by the
    requests of those that run, when it could start at the latest, and how many processors it would leave; -1 where nobody is left.
    """

    time: int
    what: str
    job: int
    submit: int
    procs: int
    requested: int
    starts: tuple[int, int]
    ends: tuple[int, int]
    free: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    started: tuple[tuple[int, ...], tuple[int, ...]]
    both: tuple[int, ...]
    head: int = -1
    shadow: int = -1
    extra: int = -1


@dataclass(frozen=True, eq=False)
class Difference:
    """What `diff` finds.

    `names`: of the files. `jobs`: in both. `only`: rows of each file that the other, or the log, lacks. `moved, ended`: jobs that start
    (or, if they start at the same time, end) at another time. `first`: None if there is no difference. `rule`: what explains it, in a
    sentence. `trials`: what was tried, the best first.
    """

    workload: Workload
    names: tuple[str, str]
    jobs: int
    only: tuple[int, int]
    moved: int
    ended: int
    first: FirstDifference | None
    rule: str
    trials: tuple[Trial, ...]
    starts: tuple[Array, Array]
    ends: tuple[Array, Array]

    @property
    def identical(self) -> bool:
        """Whether both have the same jobs, starts and ends."""
        return self.first is None and self.only == (0, 0)

    def sentences(self) -> list[str]:
        """It, in words."""
        a, b = self.names
        said = [f"{count:,} jobs are in {name} only, or not in the log" for name, count in zip(self.names, self.only, strict=True) if count]
        p = self.first
        if p is None:
            return [f"{a} and {b} are the same schedule: {self.jobs:,} jobs with equal starts and ends", *said]
        moved = f"{self.moved:,} of {self.jobs:,} jobs start at another time"
        ended = f"{self.ended:,} start at the same time and end at another" if self.ended else ""
        said.insert(0, ", ".join(filter(None, (moved, ended))))
        size = f"{p.procs:,} {'processor' if p.procs == 1 else 'processors'}, {p.requested:,} s requested, submitted at {p.submit:,} s"
        if p.what == "end":
            said.append(f"first at {p.time:,} s: job {p.job} ({size}) ends at {p.ends[0]:,} s in {a}, at {p.ends[1]:,} s in {b}")
            return [*said, self.rule]
        said.append(f"first at {p.time:,} s: job {p.job} ({size}) starts at {p.starts[0]:,} s in {a}, at {p.starts[1]:,} s in {b}")
        busy = f"{p.free:,} of {self.workload.machine_procs:,} processors are free, {len(p.running):,} jobs run, {len(p.waiting):,} wait"
        said.append(f"before it in both: {busy}" + (f" ({_jobs(p.waiting)}, in order of arrival)" if p.waiting else ""))
        then = [f"{_jobs(own) or 'nobody'} in {name} only" for name, own in zip(self.names, p.started, strict=True)]
        said.append(f"then start {', '.join(then)}" + (f"; {_jobs(p.both)} in both" if p.both else ""))
        if p.head >= 0:
            latest = f"by requests it starts at {p.shadow:,} s at the latest, and leaves {p.extra:,} processors"
            said.append(f"who still waits in both, first by arrival: job {p.head}; {latest}")
        return [*said, self.rule]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "identical": self.identical,
            "files": list(self.names),
            "jobs": self.jobs,
            "only": list(self.only),
            "moved": self.moved,
            "ended": self.ended,
            "first": None if self.first is None else asdict(self.first),
            "rule": self.rule,
            "trials": [asdict(trial) for trial in self.trials],
        }

    def __repr__(self) -> str:
        return f"<Difference: {self.moved:,} of {self.jobs:,} jobs start at another time>"

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        return Facts("Two schedules", [(str(k + 1), sentence) for k, sentence in enumerate(self.sentences())])._repr_html_()


def _jobs(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - LISTED:,} more" if len(numbers) > LISTED else ""
    return ", ".join(map(str, numbers[:LISTED])) + more


def diff(
    a: Columns,
    b: Columns,
    workload: Workload,
    *,
    names: tuple[str, str] = ("A", "B"),
    policies: Sequence[str] | None = None,
    dialects: Sequence[Dialect | str] | None = None,
    overrun: str = "kill",
    progress: Callable[[int], None] | None = None,
) -> Difference:
    """Where two schedules of a log part first, and which rule explains it.

    `a`, `b`: columns as `walltime.read_schedule` gives them, or those of `Schedule.columns()`: `job_id, start, end`, int64 s; `submit`, if
    both have it and it is not the log's, is taken instead of the log's. `policies`, `dialects`: which schedulers and dialects are tried, by
    default the usual ones and every dialect and reading. `overrun`: as in `simulate`. `progress` is called with the number of trials.
    Raises WorkloadError if the files and the log have no job in common, PolicyError for an unknown scheduler or dialect.

    >>> import walltime as wt
    >>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> found = diff(wt.simulate(jobs, "fcfs").columns(), wt.simulate(jobs, "easy").columns(), jobs)
    >>> found.first.time, found.first.job, found.rule.partition(",")[0]
    (2, 3, 'A is what fcfs gives')
    """
    check_workload(workload)
    matched = _Matched(a, b, workload)
    first = matched.parting()
    rule, trials = "", []
    if first is not None and first.what == "end":
        rule = _why_ended(matched, first, names)
    elif first is not None:
        trials = _Trials(matched, first.time, overrun, progress).run(policies, dialects)
        rule = _rule(trials, names, len(matched.workload))
    jobs, starts, ends = matched.workload, matched.start, matched.end
    return Difference(jobs, names, len(jobs), matched.only, *matched.counts(), first, rule, tuple(trials), starts, ends)


class _Matched:
    """The jobs that both files and the log have: `start` and `end` in both files, in the workload's order."""

    def __init__(self, a: Columns, b: Columns, workload: Workload):
        rows = []
        for columns in (a, b):
            order = np.argsort(columns["job_id"], kind="stable")
            ids = columns["job_id"][order]
            place = np.searchsorted(ids, workload.job_id).clip(max=max(len(ids) - 1, 0))
            known = ids[place] == workload.job_id if len(ids) else np.zeros(len(workload), bool)
            rows.append((columns, order, place, known))
        common = rows[0][3] & rows[1][3]
        if not common.any():
            raise WorkloadError("the two schedules and the log have no job in common; compare job_id")
        self.only = (len(a["job_id"]) - int(common.sum()), len(b["job_id"]) - int(common.sum()))
        own = [{name: columns[name][order][place[common]] for name in columns} for columns, order, place, _ in rows]
        if not common.all():
            workload = workload.take(common, "the jobs of both schedules")
        submit = [columns.get("submit") for columns in own]
        if submit[0] is not None and submit[1] is not None and (submit[0] == submit[1]).all() and (submit[0] != workload.submit).any():
            order = np.argsort(submit[0], kind="stable")
            whole = {name: getattr(workload, name)[order] for name in ("runtime", "requested", "procs", "job_id", "believed")}
            columns = {name: values[order] for name, values in workload.columns.items()}
            made = Workload.from_arrays(submit=submit[0][order], machine_procs=workload.machine_procs, columns=columns, **whole)
            workload, own = made, [{name: values[order] for name, values in of.items()} for of in own]
        self.workload = workload
        self.start: tuple[Array, Array] = (own[0]["start"], own[1]["start"])
        self.end: tuple[Array, Array] = (own[0]["end"], own[1]["end"])

    def counts(self) -> tuple[int, int]:
        """Jobs that start, and jobs that only end, at another time."""
        moved = self.start[0] != self.start[1]
        return int(moved.sum()), int((~moved & (self.end[0] != self.end[1])).sum())

    def parting(self) -> FirstDifference | None:
        """The first difference."""
        w, moved = self.workload, self.start[0] != self.start[1]
        ended = ~moved & (self.end[0] != self.end[1])
        never = np.iinfo(np.int64).max
        when = np.where(moved, np.minimum(*self.start), np.where(ended, np.minimum(*self.end), never))
        if not (moved | ended).any():
            return None
        job = int(np.argmin(when))
        now = int(when[job])
        if moved[when == now].any():
            job = int(np.flatnonzero((when == now) & moved)[0])
        start, end = self.start[0], self.end[0]  # equal in both before now
        running = (start < now) & (end > now)
        free = w.machine_procs - int(w.procs[running].sum())
        waiting = (w.submit <= now) & (np.minimum(*self.start) >= now)
        began = [s == now for s in self.start]
        left = waiting & ~began[0] & ~began[1]
        both = began[0] & began[1]
        head, shadow, extra = -1, -1, -1
        if left.any():
            first = int(np.flatnonzero(left)[0])
            head = int(w.job_id[first])
            expected = [(max(int(start[i] + w.believed[i]), now + 1), int(w.procs[i])) for i in np.flatnonzero(running)]
            expected += [(now + int(w.believed[i]), int(w.procs[i])) for i in np.flatnonzero(both)]
            shadow, extra = find_shadow(expected, free - int(w.procs[both].sum()), int(w.procs[first]), now)
        return FirstDifference(
            time=now,
            what="start" if moved[job] else "end",
            job=int(w.job_id[job]),
            submit=int(w.submit[job]),
            procs=int(w.procs[job]),
            requested=int(w.requested[job]),
            starts=(int(self.start[0][job]), int(self.start[1][job])),
            ends=(int(self.end[0][job]), int(self.end[1][job])),
            free=free,
            running=tuple(w.job_id[running].tolist()),
            waiting=tuple(w.job_id[waiting].tolist()),
            started=(tuple(w.job_id[began[0] & ~began[1]].tolist()), tuple(w.job_id[began[1] & ~began[0]].tolist())),
            both=tuple(w.job_id[both].tolist()),
            head=head,
            shadow=shadow,
            extra=extra,
        )


def _why_ended(matched: _Matched, first: FirstDifference, names: tuple[str, str]) -> str:
    """Which rule for overruns gives the one end and the other."""
    w = matched.workload
    job = int(np.flatnonzero(w.job_id == first.job)[0])
    said = []
    for name, start, end in zip(names, first.starts, first.ends, strict=True):
        ran, fits = end - start, []
        for overrun, words in (("kill", "ends at its request"), ("overrun", "runs as long as in the log")):
            if ran == int(effective_times(w, overrun)[0][job]):
                fits.append(words)
        said.append(f"{name}: it {' and '.join(fits) if fits else f'runs for {ran:,} s, which no rule for overruns gives'}")
    return f"the log has a runtime of {int(w.runtime[job]):,} s; " + "; ".join(said)


class _Trials:
    """Schedulers, tried until the first difference, and those that explain it on the whole log."""

    def __init__(self, matched: _Matched, time: int, overrun: str, progress: Callable[[int], None] | None):
        self._w, self._time, self._overrun, self._progress = matched.workload, time, overrun, progress
        self._chosen = matched.workload.submit <= time
        self._head = matched.workload.take(self._chosen, f"the jobs that arrive until {time} s")
        self._recent, self._late = _since_nobody_waited(self._head, matched.start[0][self._chosen], matched.end[0][self._chosen], time)
        self._starts = matched.start
        self._done = 0
        self._named = False
        self._slow: set[tuple[str, str]] = set()
        self.trials: dict[tuple[str, str], Trial] = {}

    def run(self, policies: Sequence[str] | None, dialects: Sequence[Dialect | str] | None) -> list[Trial]:
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

    def _rank(self, trial: Trial, texts: Sequence[str]) -> tuple[Any, ...]:
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
                    self.trials[text, dialect.label] = Trial(text, dialect.label, since, (jobs[0], jobs[1]))
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
        self.trials[text, dialect.label] = Trial(text, dialect.label, (follows[0], follows[1]), (jobs[0], jobs[1]))

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
    order = np.argsort(submit, kind="stable")
    place = np.flatnonzero(chosen)[order]
    own = {name: getattr(recent, name)[order] for name in ("runtime", "requested", "procs", "job_id", "believed")}
    columns = {name: values[order] for name, values in recent.columns.items()}
    made = Workload.from_arrays(submit=submit[order], machine_procs=head.machine_procs, columns=columns, origin=recent.origin, **own)
    return made, place


def _rule(trials: Sequence[Trial], names: tuple[str, str], jobs: int) -> str:
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


def _pair(a: Sequence[Trial], b: Sequence[Trial]) -> tuple[Trial, Trial]:
    """Of those that explain one file or the other best, the two that need the fewest readings, and differ in the fewest rules."""
    best = [[one for one in own if one.jobs[side] == own[0].jobs[side]] for side, own in enumerate((a, b))]
    return min(((one, other) for one in best[0] for other in best[1]), key=lambda pair: _distance(*pair))


def _distance(a: Trial, b: Trial) -> tuple[int, int]:
    return _readings(a) + _readings(b), len(_changed(a, b)) + len(_options(a.scheduler) ^ _options(b.scheduler))


def _readings(trial: Trial) -> int:
    """How many readings of its dialect are not those of the papers."""
    return len(Dialect.of(trial.dialect).changed)


def _options(text: str) -> frozenset[str]:
    scheduler = Scheduler.of(text)
    own = {f"{field.name}={getattr(scheduler.policy, field.name)}" for field in fields(scheduler.policy)}
    return frozenset(own | {type(scheduler.policy).__name__, repr(scheduler.prediction)})


def _changed(a: Trial, b: Trial) -> list[str]:
    """The readings in which two dialects differ."""
    one, other = Dialect.of(a.dialect), Dialect.of(b.dialect)
    return [name for name in READINGS if getattr(one, name) != getattr(other, name)]


def _told(a: Trial, b: Trial, names: tuple[str, str], jobs: int) -> str:
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
