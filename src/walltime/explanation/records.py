"""What an explanation is made of: what the job met, what was reserved for it, who overtook it, what let it start, and what would have."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from walltime.schedule.schedule import Schedule

HELD_BACK = {
    "nothing": "it started at once",
    "too few": "fewer processors were free than it needs",
    "order": "enough were free, but nobody overtakes",
    "head": "enough were free, but it might have delayed the job at the head of the queue",
    "reservations": "enough were free, but not for as long as it was expected to run, because of reservations",
    "score": "enough were free, but its score was under the threshold of the order of the queue",
    "policy": "enough were free, but a policy in plain Python did not choose it",
}
"""Why a job did not start when it was submitted."""
HOW = {
    "in time": "expected to end by the time reserved for the head of the queue",
    "extra": "on processors that the head would not need",
    "hole": "between the reservations of others",
    "fits": "because they fitted, and nobody has a reservation",
    "order": "before it in the order of the queue",
    "policy": "chosen by a policy in plain Python",
}
"""How a job could overtake."""


@dataclass(frozen=True)
class RunningJob:
    """A job that ran: when it was expected to end at that time, and when it did, s."""

    job: int
    procs: int
    expected_end: int
    end: int


@dataclass(frozen=True)
class Reservation:
    """A reservation of a waiting job: from when (s), and for how many processors."""

    job: int
    procs: int
    start: int


@dataclass(frozen=True)
class Cause:
    """What happened to a job when a reservation changed.

    `what`: `ended early`; `overdue`, it should have ended and has not; or `expected longer`, its prediction was corrected. `seconds`: by
    how much.
    """

    what: str
    job: int
    seconds: int


@dataclass(frozen=True)
class Change:
    """A reservation of the job that was made, or changed, at a `time` (s).

    `what`: `made`, `forward`, `back`, or `given up`. `start`: from when, s; -1 where it was given up.
    """

    time: int
    what: str
    start: int
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True)
class Overtaker:
    """A job that arrived later and started earlier.

    `how`: one of `HOW`. `head`: the job at the head of the queue then. `delay`: by how many seconds this moved back the head's real shadow
    time, which is when it would have started if nobody else did and all running jobs ended when they do (Tsafrir & Feitelson 2006,
    section V).
    """

    job: int
    procs: int
    start: int
    believed: int
    runtime: int
    how: str
    head: int
    delay: int


@dataclass(frozen=True)
class Submission:
    """What the job met.

    `free`: processors that were free after the scheduling pass, or that the job took if it started at once. `ahead`: jobs that waited ahead
    of it. `held_back`: one of `HELD_BACK`. `running`: who ran, by expected end. `reserved`: reservations of the others, by time.
    `extra`: processors that the head of the queue would leave over at its reservation; None where that plays no part.
    """

    free: int
    ahead: int
    held_back: str
    running: tuple[RunningJob, ...]
    reserved: tuple[Reservation, ...]
    extra: int | None = None


@dataclass(frozen=True)
class Alternative:
    """One thing changed, and when the job starts then: found by simulating the whole workload with it.

    `what`: `request` (s), `procs`, or `policy`. `gain`: how much sooner it starts, s; negative for later.
    """

    what: str
    value: int | str
    start: int
    gain: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """What is told of any job, on one pool of processors or on a machine of several.

    `alternatives`: what was tried to let it start sooner; `sooner` are those that do. `sentences`: all of it in words, a paragraph each;
    printing it shows them.
    """

    job: int
    submit: int
    start: int
    end: int
    procs: int
    requested: int
    runtime: int
    kind: str
    policy: str
    alternatives: tuple[Alternative, ...]
    schedule: Schedule = field(repr=False)
    sentences: tuple[str, ...] = ()

    @property
    def wait(self) -> int:
        """How long it waited, s."""
        return self.start - self.submit

    @property
    def sooner(self) -> tuple[Alternative, ...]:
        """The alternatives under which it starts sooner."""
        return tuple(one for one in self.alternatives if one.gain > 0)

    def as_dict(self) -> dict[str, Any]:
        """The explanation, ready for JSON."""
        values = {one.name: plain(getattr(self, one.name)) for one in fields(self) if one.name != "schedule"}
        return values | {"wait": self.wait, "log": self.schedule.workload.origin.name}

    def __str__(self) -> str:
        return "\n".join(self.sentences)


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberExplanation(Explanation):
    """What happened to one job; jobs are numbers of the log, times s of the simulation.

    `head_since`: when it became first in the queue, None if it never was while it waited. `reservations`: its first one, and each change.
    `too_few`, `held`: how long of its wait fewer processors were free than it needs, and how long enough were free, but not for it.
    `let_in`: the jobs that ended when it started.
    """

    believed: int
    submission: Submission
    head_since: int | None
    reservations: tuple[Change, ...]
    overtaken_by: tuple[Overtaker, ...]
    too_few: int
    held: int
    let_in: tuple[RunningJob, ...]

    @property
    def delayed_by(self) -> tuple[Overtaker, ...]:
        """Those that overtook it while it was at the head of the queue, and delayed it."""
        return tuple(one for one in self.overtaken_by if one.head == self.job and one.delay > 0)


def plain(value: Any) -> Any:
    """A value of an explanation, ready for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
