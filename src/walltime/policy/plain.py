"""Custom policies in plain Python: the jobs they see, the choices they return, and the errors for invalid choices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.plugins.files import location_of, make_object, user_code
from walltime.policy.base import NO_NODES, PassSpec, Policy, Support
from walltime.policy.log_view import ALL, COLUMNS, LogView, Moment
from walltime.policy.orders import FCFS, Order
from walltime.policy.randomness import generator, takes_generator
from walltime.wording import counted, shown

LATEST = 2**60
"""Upper bound on all times of a schedule, s."""


class WaitingJob:
    """A waiting job as the scheduler sees it; all values are integers, times are in s from the start of the log.

    `index`: its position in the order of arrival, from 0. `submit`. `wait`: the wait so far. `planned`: the planned runtime. `requested`:
    the user's request. `procs`. `job_id, user, group, executable, queue, partition`: -1 if unknown. Each additional column of the log that
    is known at submission, such as `requested_memory`, is an attribute, too. `submitted` is the local date of submission, None if the log
    does not record its start time. Reading the job's runtime, start or end raises AttributeError, because they are still unknown. Two views
    of the same job are equal.
    """

    __slots__ = ("_views", "index", "planned", "procs", "submit")
    FUTURE: ClassVar[tuple[str, ...]] = ("start", "expected_end", "end", "runtime")
    _state: ClassVar[str] = "waits"

    def __init__(self, views: JobViews, index: int, submit: int, planned: int, procs: int):
        self._views = views
        self.index, self.submit, self.planned, self.procs = index, submit, planned, procs

    @property
    def believed(self) -> int:
        """Return `planned` by its former name."""
        return self.planned

    @property
    def wait(self) -> int:
        """Return the wait so far, s."""
        return self._views.now - self.submit

    @property
    def submitted(self) -> datetime | None:
        """Return the local date and time of its submission; None if the log does not record its start time."""
        calendar = self._views.log.calendar
        return None if calendar is None else calendar.local(self.submit)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while a view is copied, it has no `_views` yet
            raise AttributeError(name)
        column = self._views.log.columns.get(name)
        if column is not None or name in COLUMNS:
            return -1 if column is None else column[self.index]
        if name in self.FUTURE:
            raise AttributeError(f"job number {self.index + 1} {self._state}: its {name} is still unknown")
        valid = ("index", "submit", "submitted", "wait", "planned", "procs", *dict.fromkeys((*COLUMNS, *self._views.log.columns)))
        raise AttributeError(f"jobs have no {name!r}. Valid attributes: {', '.join(valid)}; for running jobs also start and expected_end")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WaitingJob) and other.index == self.index

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return f"<job number {self.index + 1}, {counted(self.procs, 'processor')}, {self._state}>"


class RunningJob(WaitingJob):
    """A running job: also with `start` and `expected_end`, s; its real end is still unknown."""

    __slots__ = ("expected_end", "start")
    FUTURE: ClassVar[tuple[str, ...]] = ("end", "runtime")
    _state: ClassVar[str] = "runs"

    def __init__(self, views: JobViews, index: int, submit: int, planned: int, procs: int, start: int, expected_end: int):
        super().__init__(views, index, submit, planned, procs)
        self.start, self.expected_end = start, expected_end

    @property
    def wait(self) -> int:
        """Return the wait before its start, s."""
        return self.start - self.submit


class EndedJob(RunningJob):
    """A job that has ended: also with `end` and `runtime`, s."""

    __slots__ = ("end", "runtime")
    FUTURE: ClassVar[tuple[str, ...]] = ()
    _state: ClassVar[str] = "has ended"

    def __init__(self, job: RunningJob, end: int):
        super().__init__(job._views, job.index, job.submit, job.planned, job.procs, job.start, job.expected_end)
        self.end, self.runtime = end, end - job.start


class JobViews:
    """The policy's views of the jobs in one run; each job is one object while it waits, and another while it runs."""

    def __init__(self, log: LogView):
        self.log = log
        self.now = 0
        self._waiting: dict[int, WaitingJob] = {}
        self._running: dict[int, RunningJob] = {}

    def waiting(self, job: Any) -> WaitingJob:
        """Return the view of a waiting job of the engine."""
        view = self._waiting.get(job.index)
        if view is None:
            view = self._waiting[job.index] = WaitingJob(self, job.index, job.submit, job.planned, job.procs)
        view.planned = job.planned
        return view

    def running(self, job: Any) -> RunningJob:
        """Return the view of a running job of the engine."""
        view = self._running.get(job.index)
        if view is None:
            values = (job.index, job.submit, job.planned, job.procs, job.start, job.expected_end)
            view = self._running[job.index] = RunningJob(self, *values)
        view.expected_end = job.expected_end
        return view


@dataclass(frozen=True)
class Choice:
    """A policy's decision: the jobs that start now, in this order, and the time (s) of its next call, even without an event.

    A requested call still takes place if an event calls the policy earlier.
    """

    jobs: Iterable[WaitingJob] = ()
    wake_at: int | None = None


@dataclass(frozen=True)
class PlainPolicy(Policy):
    """Base class for custom policies in plain Python: a subclass chooses which waiting jobs start.

    It runs on the reference engine, which is slow. Each run uses a copy, so attributes do not carry over between runs. Besides `choose` it
    may have methods for events, `begin`, `submitted`, `started` and `ended`, which are called before `choose` at that instant.
    """

    passes = PassSpec("python", compiled=False)
    order: Order = field(default=FCFS, kw_only=True)
    """the queue order"""

    def new_instance(self) -> Any:
        """Return the object for one run: a copy, which may keep state."""
        return copy.deepcopy(self)

    def begin(self, procs: int) -> None:
        """Handle the beginning of a run on a machine with `procs` processors.

        If the method has a further parameter `rng`, it receives a `numpy.random.Generator` that depends only on the run's seed.
        """

    @property
    def code(self) -> Any:
        """Return the class whose code runs."""
        return type(self)

    def submitted(self, job: WaitingJob, now: Moment) -> None:
        """Handle the submission of a job."""

    def started(self, job: RunningJob, now: Moment) -> None:
        """Handle the start of a job."""

    def ended(self, job: EndedJob, now: Moment) -> None:
        """Handle the end of a job, with its `runtime` and `end`."""

    @property
    def machines(self) -> Mapping[str, Support]:
        """Return the reference engine, except for individual nodes."""
        plain = Support("reference", "a policy in plain Python is called at every event")
        return {"number": plain, "pools": plain, "nodes": NO_NODES}

    @property
    def reads(self) -> dict[str, str]:
        """Return all columns, since plain Python may read any."""
        return {ALL: self.name}

    def choose(self, now: Moment, waiting: Sequence[WaitingJob], running: Sequence[RunningJob], free: int) -> Iterable[WaitingJob] | Choice:
        """Return or yield the jobs of `waiting` that start now, in this order, or return a `Choice` with a wake-up time.

        Called after the events of each instant. `now` is a whole number, s, with the local date as `now.local`; `waiting` is in
        order of arrival, `running` in order of start; `free` is the number of free processors. See
        `walltime.policy.plain.WaitingJob` for the attributes of a job. The simulation raises PolicyError if a chosen job is not
        waiting or does not fit, or for an invalid wake-up; EngineError if jobs still wait and no call is left to start them.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class OwnPolicy(PlainPolicy):
    """A user's class with `choose`, with or without a base class: each run begins by calling `make` with the `options`.

    Its methods are as in `PlainPolicy`; all except `choose` are optional. `spelling`: its label; by default its name.
    """

    make: Annotated[Callable[..., Any], Field(inside=True)] = object
    options: Annotated[tuple[tuple[str, Any], ...], Field(inside=True)] = ()
    spelling: Annotated[str, Field(inside=True)] = ""

    @property
    def name(self) -> str:
        """Return the name of the class."""
        return getattr(self.make, "__name__", repr(self.make))

    @property
    def label(self) -> str:
        """Return the spelling, or the name of the class."""
        return self.spelling or self.name

    @property
    def title(self) -> str:
        """Return the name of the class, with its options in brackets."""
        options = ", ".join(f"{name} {value}" for name, value in self.options)
        return f"{self.name} [{options}]" if options else self.name

    @property
    def code(self) -> Any:
        """Return the class whose code runs."""
        return getattr(self.make, "kind", self.make)

    def new_instance(self) -> Any:
        """Return a new object of the class."""
        return make_object(self.make, self.options, self.name)


SIGNATURES = {
    "begin": "begin(self, procs)",
    **{name: f"{name}(self, job, now)" for name in ("submitted", "started", "ended")},
    "choose": "choose(self, now, waiting, running, free)",
}
"""The signatures of a plain Python policy's methods."""


class PlainRun:
    """A policy in plain Python in one run. Errors of its code become a PolicyError of one line."""

    def __init__(self, policy: Any, log: LogView, procs: int):
        self.policy, self.views = policy, JobViews(log)
        with user_code(f"the constructor of {policy.name}"):
            self._own = policy.new_instance()
        methods = {name: getattr(type(self._own), name, None) for name in SIGNATURES}
        self._methods = {name for name, method in methods.items() if callable(method) and method is not getattr(PlainPolicy, name)}
        if "choose" not in self._methods:
            raise PolicyError(f"{location_of(self._own)}the policy {policy.label} has no method {SIGNATURES['choose']}", "missing_method")
        if "begin" in self._methods:
            self._call("begin", procs, **({"rng": generator("policy")} if takes_generator(type(self._own)) else {}))

    def _call(self, name: str, *arguments: Any, **more: Any) -> Any:
        with user_code(f"{name} of {self.policy.name}", getattr(self._own, name), SIGNATURES[name]):
            result = getattr(self._own, name)(*arguments, **more)
            return _jobs_and_wake_up(result) if name == "choose" else None

    def report(self, event: str, job: Any, now: int) -> None:
        """Call the policy's method for an event of a job (`submitted`, `started` or `ended`), if it has one."""
        if event in self._methods:
            view: Any = self.views.waiting(job) if event == "submitted" else self.views.running(job)
            self._call(event, EndedJob(view, now) if event == "ended" else view, self._moment(now))

    def _moment(self, now: int) -> Moment:
        self.views.now = now
        return Moment(now, self.views.log.calendar)

    def choose(self, now: int, waiting: Iterable[Any], running: Iterable[Any], free: int) -> tuple[list[int], int | None]:
        """Return the indices of the chosen jobs, and the wake-up time or None; raises PolicyError for an invalid choice."""
        moment, name = self._moment(now), self.policy.name
        jobs, wake_at = self._call("choose", moment, tuple(map(self.views.waiting, waiting)), tuple(map(self.views.running, running)), free)
        wrong = [job for job in jobs if not isinstance(job, WaitingJob)]
        if wrong:
            place = location_of(self._own.choose)
            remedy = "return waiting jobs in a sequence, () for none, or a walltime.policy.Choice"
            raise PolicyError(f"{place}choose of {name} returned {shown(wrong[0])}, which is not a job; {remedy}", "wrong_choice")
        try:
            time = None if isinstance(wake_at, bool) else wake_at.__index__()
        except (AttributeError, TypeError):
            time = None
        if wake_at is not None and (time is None or not now < time < LATEST):
            raise PolicyError(
                f"wake_at of {name} must be None or a whole number of seconds later than now ({now}), not {shown(wake_at)}", "past_time"
            )
        return [job.index for job in jobs], time


def deadlock_message(policy: Policy, now: int, jobs: Sequence[int], woken: int) -> str:
    """Return the message for jobs (numbers) that wait when no event is left; `woken`: number of wake-ups without a start, 0 for none."""
    many = len(jobs) > 1
    listed = f"{'jobs' if many else 'job'} {', '.join(map(str, jobs[:3]))}{', ...' if len(jobs) > 3 else ''}"
    begin = f"{len(jobs)} job{'s wait' if many else ' waits'} forever ({listed}): {policy.name}"
    if woken:
        return f"{begin} was woken {woken} times in a row and started no job; start at least one job, or set later wake-up times"
    remedy = "start at least one job then, or return walltime.policy.Choice((), wake_at=TIME) for another call"
    return f"{begin} started no job at {now} s, when no job was running or due to arrive; {remedy}"


def _jobs_and_wake_up(answer: Any) -> tuple[list[Any], Any]:
    """Return the jobs of a policy's answer, or the answer itself in a list if it is not iterable, and its wake-up.

    A generator of jobs may return a `Choice` at the end, with more jobs and a wake-up.
    """
    if isinstance(answer, Choice):
        jobs, wake_at = _jobs_and_wake_up(answer.jobs)
        return jobs, wake_at if answer.wake_at is None else answer.wake_at
    if not isinstance(answer, Iterable):
        return [answer], None
    if not isinstance(answer, Iterator):
        return list(answer), None
    jobs = []
    while True:
        try:
            jobs.append(next(answer))
        except StopIteration as end:
            more, wake_at = _jobs_and_wake_up(end.value) if isinstance(end.value, Choice) else ([], None)
            return jobs + more, wake_at
