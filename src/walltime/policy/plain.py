"""Custom policies in plain Python: what they are given, what they return, and the errors for invalid choices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.policy.base import NO_NODES, OWN_ORDER, PassSpec, Policy, Support
from walltime.policy.files import own_code, place_of
from walltime.policy.log_view import COLUMNS, LogView, Moment
from walltime.wording import shown

LATEST = 2**60
"""All times of a schedule are below this."""


class WaitingJob:
    """A waiting job as known to a scheduler; all values are whole numbers, times in s from the start of the log.

    `index`: its place in order of arrival, from 0; `submit`; `wait`, so far; `believed`, the runtime planned with;
    `requested`, the user's request; `procs`; and `job_id, user, group, executable, queue, partition`, -1 if unknown.
    `submitted` is the local date of submission, None if the log does not record its start time. Reading its runtime, start
    or end raises AttributeError, as they are not known yet. Two views of the same job are equal.
    """

    __slots__ = ("_sight", "believed", "index", "procs", "submit")
    FUTURE: ClassVar[tuple[str, ...]] = ("start", "expected_end", "end", "runtime")

    def __init__(self, sight: Sight, index: int, submit: int, believed: int, procs: int):
        self._sight = sight
        self.index, self.submit, self.believed, self.procs = index, submit, believed, procs

    @property
    def wait(self) -> int:
        """How long it has waited so far, s."""
        return self._sight.now - self.submit

    @property
    def submitted(self) -> datetime | None:
        """Local date and time of its submission; None if the log does not record its start time."""
        calendar = self._sight.known.calendar
        return None if calendar is None else calendar.local(self.submit)

    def __getattr__(self, name: str) -> int:
        if name in COLUMNS:
            column = self._sight.known.columns.get(name)
            return -1 if column is None else int(column[self.index])
        if name in self.FUTURE:
            raise AttributeError(f"job number {self.index + 1} {self._state}: nobody knows its {name} yet")
        known = ("index", "submit", "submitted", "wait", "believed", "procs", *COLUMNS)
        raise AttributeError(f"jobs have no {name!r}; known are {', '.join(known)}, and of running jobs start and expected_end")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WaitingJob) and other.index == self.index

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return f"<job number {self.index + 1}, {self.procs} processors, {self._state}>"

    @property
    def _state(self) -> str:
        return "waits"


class RunningJob(WaitingJob):
    """A running job: also with `start` and `expected_end`, s; `wait` is how long it waited. Its real end is not known yet."""

    __slots__ = ("expected_end", "start")
    FUTURE: ClassVar[tuple[str, ...]] = ("end", "runtime")

    def __init__(self, sight: Sight, index: int, submit: int, believed: int, procs: int, start: int, expected_end: int):
        super().__init__(sight, index, submit, believed, procs)
        self.start, self.expected_end = start, expected_end

    @property
    def wait(self) -> int:
        """How long it waited, s."""
        return self.start - self.submit

    @property
    def _state(self) -> str:
        return "runs"


class EndedJob(RunningJob):
    """A job that has ended: also with `end` and `runtime`, s."""

    __slots__ = ("end", "runtime")
    FUTURE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, job: RunningJob, end: int):
        super().__init__(job._sight, job.index, job.submit, job.believed, job.procs, job.start, job.expected_end)
        self.end, self.runtime = end, end - job.start

    @property
    def _state(self) -> str:
        return "has ended"


class Sight:
    """What a policy is shown in one run; each job is one object while it waits, and another while it runs."""

    def __init__(self, known: LogView):
        self.known = known
        self.now = 0
        self._waiting: dict[int, WaitingJob] = {}
        self._running: dict[int, RunningJob] = {}

    def waiting(self, job: Any) -> WaitingJob:
        """A waiting job of the engine as a policy sees it."""
        seen = self._waiting.get(job.index)
        if seen is None:
            seen = self._waiting[job.index] = WaitingJob(self, job.index, job.submit, job.believed, job.procs)
        seen.believed = job.believed
        return seen

    def running(self, job: Any) -> RunningJob:
        """A running job of the engine as a policy sees it."""
        seen = self._running.get(job.index)
        if seen is None:
            values = (job.index, job.submit, job.believed, job.procs, job.start, job.expected_end)
            seen = self._running[job.index] = RunningJob(self, *values)
        seen.expected_end = job.expected_end
        return seen


@dataclass(frozen=True)
class Choice:
    """A policy's decision: these jobs start now, in this order; and it is called again at `wake_at` (s), even without an event.

    A wake-up stays in force even if an event calls the policy earlier.
    """

    jobs: Iterable[WaitingJob] = ()
    wake_at: int | None = None


@dataclass(frozen=True)
class PlainPolicy(Policy):
    """Base class for custom policies in plain Python: a subclass chooses which waiting jobs start.

    It runs on the reference engine, which is slow; the built-in policies and orders run on the compiled engine. Each run begins with a
    copy of its own, so what a policy keeps in its attributes is of one run. Besides `choose` it may have methods that are called as jobs
    come and go, before `choose` is asked about that instant: `begin`, `submitted`, `started`, `ended`.
    """

    def anew(self) -> Any:
        """What is asked in one run: a copy, which may keep what it has seen."""
        return copy.deepcopy(self)

    def begin(self, procs: int) -> None:
        """A run begins, on a machine of so many processors."""

    def submitted(self, job: WaitingJob, now: Moment) -> None:
        """A job has been submitted now."""

    def started(self, job: RunningJob, now: Moment) -> None:
        """A job has started now."""

    def ended(self, job: EndedJob, now: Moment) -> None:
        """A job has ended now; its `runtime` and `end` are known."""

    @property
    def passes(self) -> PassSpec:
        """Whatever `choose` says."""
        return PassSpec("python", compiled=False)

    @property
    def without(self) -> Mapping[str, str]:
        """Orders."""
        return {"history": OWN_ORDER, "threshold": OWN_ORDER}

    @property
    def machines(self) -> Mapping[str, Support]:
        """By the reference engine."""
        plain = Support("reference", "a policy in plain Python is asked at every event")
        return {"number": plain, "pools": plain, "nodes": NO_NODES}

    @property
    def reads(self) -> set[str]:
        """All columns, since a function in plain Python may read any."""
        return set(COLUMNS)

    def choose(self, now: Moment, waiting: Sequence[WaitingJob], running: Sequence[RunningJob], free: int) -> Iterable[WaitingJob] | Choice:
        """The jobs of `waiting` that start now, in this order: returned, yielded, or in a `Choice` with a wake-up time.

        Called after the events of each instant. `now` is a whole number, s, with the local date as `now.local`; `waiting` is in
        order of arrival, `running` in order of start; `free` is the number of free processors. See
        `walltime.policy.plain.WaitingJob` for the attributes of a job. The simulation raises PolicyError if a chosen job is not
        waiting or does not fit, or for an invalid wake-up; EngineError if jobs still wait and no call is left to start them.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class OwnPolicy(PlainPolicy):
    """A class of a user's own with `choose`, which need have no base class: `make` is called with the `options` as each run begins.

    Its methods are those of `PlainPolicy`; all but `choose` may be left out. `spelling`: what it is called, by default as the class.
    """

    make: Annotated[Callable[..., Any], Key(inside=True)] = object
    options: Annotated[tuple[tuple[str, Any], ...], Key(inside=True)] = ()
    spelling: Annotated[str, Key(inside=True)] = ""

    @property
    def name(self) -> str:
        """The name of the class."""
        return getattr(self.make, "__name__", repr(self.make))

    @property
    def label(self) -> str:
        """How it is spelled, or the name of the class."""
        return self.spelling or self.name

    @property
    def title(self) -> str:
        """The name of the class, with its options in brackets."""
        said = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.name} [{said}]" if said else self.name

    def anew(self) -> Any:
        """A new object of the class."""
        try:
            return self.make(**dict(self.options))
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # it is of the class's own code
            said = ", ".join(f"{name}={value!r}" for name, value in self.options) or "no options"
            raise PolicyError(f"{place_of(self.make)}{self.name} cannot be made with {said} ({error})") from None


FORMS = {
    "begin": "begin(self, procs)",
    **{name: f"{name}(self, job, now)" for name in ("submitted", "started", "ended")},
    "choose": "choose(self, now, waiting, running, free)",
}
"""How the methods of a policy in plain Python are declared."""


class PlainRun:
    """A policy in plain Python in one run. What goes wrong in its own code is a PolicyError of one line."""

    def __init__(self, policy: Any, known: LogView, procs: int):
        self.policy, self.sight = policy, Sight(known)
        with own_code(f"the making of {policy.name}"):
            self._own = policy.anew()
        if not self._has("choose"):
            raise PolicyError(f"{place_of(self._own)}the policy {policy.label} has no method {FORMS['choose']}", "missing_method")
        self._heard = {name for name in ("begin", "submitted", "started", "ended") if self._has(name)}
        if "begin" in self._heard:
            with self._of_own("begin"):
                self._own.begin(procs)

    def _of_own(self, name: str) -> AbstractContextManager[None]:
        return own_code(f"{name} of {self.policy.name}", getattr(self._own, name), FORMS[name])

    def _has(self, name: str) -> bool:
        method = getattr(type(self._own), name, None)
        return callable(method) and method is not getattr(PlainPolicy, name)

    def submitted(self, job: Any, now: int) -> None:
        """A job of the engine has been submitted."""
        if "submitted" in self._heard:
            self._tell("submitted", self.sight.waiting(job), now)

    def started(self, job: Any, now: int) -> None:
        """A job of the engine has started."""
        if "started" in self._heard:
            self._tell("started", self.sight.running(job), now)

    def ended(self, job: Any, now: int) -> None:
        """A job of the engine has ended."""
        if "ended" in self._heard:
            self._tell("ended", EndedJob(self.sight.running(job), now), now)

    def _tell(self, name: str, job: WaitingJob, now: int) -> None:
        self.sight.now = now
        with self._of_own(name):
            getattr(self._own, name)(job, Moment(now, self.sight.known.calendar))

    def choose(self, now: int, waiting: Iterable[Any], running: Iterable[Any], free: int) -> tuple[list[int], int | None]:
        """The indices of the jobs that the policy chooses, and its wake-up, if any; raises PolicyError for an invalid choice."""
        self.sight.now = now
        moment = Moment(now, self.sight.known.calendar)
        shown_to = tuple(map(self.sight.waiting, waiting)), tuple(map(self.sight.running, running))
        with self._of_own("choose"):
            answer = self._own.choose(moment, *shown_to, free)
            given, wake_at = _taken(answer)
        return checked_choice(self.policy, now, answer, given, wake_at, place_of(self._own.choose))


def checked_choice(
    policy: PlainPolicy, now: int, answer: Any, given: list[Any] | None, wake_at: Any, place: str = ""
) -> tuple[list[int], int | None]:
    """The indices of the chosen jobs, and the wake-up, if any; raises PolicyError, which begins with `place`, for an invalid choice."""
    if given is None:
        what = "give a sequence of jobs, () for none, or a walltime.policy.Choice"
        raise PolicyError(f"{place}{policy.name} must choose jobs of those that wait, not {shown(answer)}; {what}", "wrong_choice")
    for job in given:
        if not isinstance(job, WaitingJob):
            raise PolicyError(f"{place}{policy.name} chose {shown(job)}, which is no job; choose jobs of those that wait", "wrong_choice")
    return [job.index for job in given], None if wake_at is None else _checked(policy, now, wake_at)


def why_stuck(policy: Policy, now: int, jobs: Sequence[int], woken: int) -> str:
    """The message if these jobs (numbers) wait and no event is left; `woken`: how often it was woken in vain, 0 for never."""
    many = len(jobs) > 1
    who = f"{'jobs' if many else 'job'} {', '.join(map(str, jobs[:3]))}{', ...' if len(jobs) > 3 else ''}"
    begin = f"{len(jobs)} job{'s wait' if many else ' waits'} for ever ({who}): {policy.name}"
    if woken:
        return f"{begin} was woken {woken} times in a row and started nobody; start at least one job, or ask for later times"
    cure = "start at least one job then, or return walltime.policy.Choice((), wake_at=TIME) to be asked again"
    return f"{begin} started nobody at {now} s, when nothing ran and nobody was to arrive; {cure}"


def _checked(policy: PlainPolicy, now: int, wake_at: Any) -> int:
    """The wake-up as a whole number; raises PolicyError unless it is one in the future."""
    try:
        whole = None if isinstance(wake_at, bool) else wake_at.__index__()
    except (AttributeError, TypeError):
        whole = None
    if whole is None or not now < whole < LATEST:
        raise PolicyError(
            f"{policy.name} asked at {now} s to be woken at {shown(wake_at)}; "
            f"wake_at must be a whole number of seconds, later than {now}, or None",
            "past_time",
        )
    return int(whole)


def _taken(answer: Any) -> tuple[list[Any] | None, Any]:
    """The jobs of a policy's answer, None if it is no sequence of jobs, and its wake-up.

    A generator of jobs may return a `Choice` at the end, with more jobs and a wake-up.
    """
    if isinstance(answer, Choice):
        jobs, wake_at = _taken(answer.jobs)
        return jobs, wake_at if answer.wake_at is None else answer.wake_at
    if not isinstance(answer, Iterable):
        return None, None
    if not isinstance(answer, Iterator):
        return list(answer), None
    taken = []
    while True:
        try:
            taken.append(next(answer))
        except StopIteration as end:
            rest, wake_at = _taken(end.value) if isinstance(end.value, Choice) else ([], None)
            return (None if rest is None else taken + rest), wake_at
