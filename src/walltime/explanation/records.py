"""The data classes of an explanation: the state at submission, reservations, overtaking jobs, and alternatives."""

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.tables import Facts
from walltime.wording import shown

HELD_BACK = {
    "nothing": "",
    "too few": "{missing:,} too few",
    "order": "enough, but without backfilling no job overtakes a waiting job",
    "head": "enough, but it might have delayed the head of the queue",
    "overtakes": "enough, but as many later jobs as the policy allows had started before the head of the queue",
    "reservations": "enough, but other jobs' reservations left too little time for its expected runtime",
    "score": "enough, but its score was too far below the score of the head of the queue",
    "policy": "enough; the reason is unknown, because the policy is plain Python",
}
"""Reasons why a job did not start at submission, as phrases that follow the number of free processors."""
HOW = {
    "in time": "expected to end before the reserved start of the first job in the queue",
    "extra": "on extra processors, which the head did not need",
    "hole": "in a gap between reservations",
    "fits": "because they fitted, and no job has a reservation",
    "order": "ahead of it in the queue order",
    "policy": "chosen by a policy in plain Python",
}
"""Reasons why a job that arrived later could start earlier, as phrases."""


@dataclass(frozen=True)
class RunningJob:
    """A running job with its end as the scheduler expected it at that time, and its actual end, s."""

    job: int
    procs: int
    expected_end: int
    end: int


@dataclass(frozen=True)
class Reservation:
    """The reservation of a waiting job: its processors and its start, s."""

    job: int
    procs: int
    start: int


@dataclass(frozen=True)
class Cause:
    """An event of another job that moved the reservation.

    `what`: `ended early`, `overdue` (it ran past its expected end), or `expected longer` (its prediction was corrected). `seconds`: the
    difference.
    """

    what: str
    job: int
    seconds: int


@dataclass(frozen=True)
class Change:
    """A change of the job's reservation at `time`, s.

    `what`: `made`, `forward`, `back`, or `given up`. `start`: the reserved start, s; -1 if it was given up.
    """

    time: int
    what: str
    start: int
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True)
class Overtaker:
    """A job that arrived later and started earlier than the explained job.

    `how`: a key of `HOW`. `head`: the job at the head of the queue then. `delay`: how far, s, this moved the head's real shadow time
    (Tsafrir and Feitelson 2006, section V): the start of the head if no other job had started and all running jobs had run for their actual
    runtimes.
    """

    job: int
    procs: int
    start: int
    planned: int
    runtime: int
    how: str
    head: int
    delay: int


@dataclass(frozen=True)
class Submission:
    """The state of the machine and the queue at the job's submission.

    `free`: processors free after the scheduling pass, including those of the job if it started at once. `ahead`: jobs ahead in the queue.
    `held_back`: a key of `HELD_BACK`. `running`: running jobs by expected end. `reserved`: reservations of other jobs by start. `extra`:
    extra processors, which the head of the queue will not need at its reservation; None if the policy has none.
    """

    free: int
    ahead: int
    held_back: str
    running: tuple[RunningJob, ...]
    reserved: tuple[Reservation, ...]
    extra: int | None = None


@dataclass(frozen=True)
class Alternative:
    """A single change and the job's resulting start, from a simulation of the whole workload.

    `what`: `request` (s), `procs`, `partition`, or `policy`. `gain`: how much sooner the job starts, s; negative if it starts later.
    """

    what: str
    value: int | str
    start: int
    gain: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """The common part of the explanations for a single pool and for a machine with several pools.

    `alternatives`: the simulated changes. `texts`: the explanation in words, as pairs of label and text; the first is a headline without a
    label. `sentences` has the texts as lines, which `print` shows.
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
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the explanation in words, one line for each text."""
        return tuple(f"{label[:1].upper()}{label[1:]}: {text}." if label else f"{text}." for label, text in self.texts)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return self.facts._repr_html_()

    @property
    def facts(self) -> Facts:
        """Return the explanation in words for the terminal."""
        return Facts(self.texts[0][1], self.texts[1:])

    @property
    def index(self) -> int:
        """Return the job's index in the workload, which is sorted by arrival."""
        return index_of(self.schedule, self.job)

    @property
    def wait(self) -> int:
        """Return the job's wait, s."""
        return self.start - self.submit

    @property
    def recorded_wait(self) -> int | None:
        """Return the job's recorded wait, s; None if it is unknown."""
        return recorded_wait_of(self.schedule, self.index)

    @property
    def sooner(self) -> tuple[Alternative, ...]:
        """Return the alternatives that let the job start sooner."""
        return tuple(one for one in self.alternatives if one.gain > 0)

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation, ready for JSON."""
        values = {one.name: plain(getattr(self, one.name)) for one in fields(self) if one.name not in ("schedule", "texts")}
        return values | {
            "sentences": list(self.sentences),
            "wait": self.wait,
            "recorded_wait": self.recorded_wait,
            "log": self.schedule.workload.origin.name,
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences)


@dataclass(frozen=True, eq=False, kw_only=True)
class SinglePoolExplanation(Explanation):
    """The explanation of a job's wait on a single pool; jobs are numbers in the log, times are simulated, s.

    `head_since`: when it became the head of the queue; None if it never did. `reservations`: its first reservation and all changes.
    `too_few`, `held`: the parts of its wait with too few free processors, and with enough free processors that were reserved for other jobs
    or held by the queue order. `let_in`: the jobs that ended when it started.
    """

    planned: int
    submission: Submission
    head_since: int | None
    reservations: tuple[Change, ...]
    overtaken_by: tuple[Overtaker, ...]
    too_few: int
    held: int
    let_in: tuple[RunningJob, ...]

    @property
    def delayed_by(self) -> tuple[Overtaker, ...]:
        """Return the overtaking jobs that delayed this job while it was at the head of the queue."""
        return tuple(one for one in self.overtaken_by if one.head == self.job and one.delay > 0)


def index_of(schedule: Schedule, job: int) -> int:
    """Return the index of the job with this number; raises WorkloadError if there is none."""
    ids = schedule.workload.job_id
    places = np.flatnonzero(ids == job) if isinstance(job, int | np.integer) and not isinstance(job, bool) else ids[:0]
    if len(places):
        return int(places[0])
    name = schedule.workload.origin.name
    if not len(ids):
        raise WorkloadError(f"there is no job {shown(job)}: {name} has no jobs", "empty_workload")
    dropped = "; records that were dropped have no schedule" if schedule.workload.origin.dropped else ""
    raise WorkloadError(
        f"{name} has no job {shown(job)}; its {len(ids):,} jobs have numbers from {ids.min()} to {ids.max()}{dropped}", "unknown_job"
    )


def recorded_wait_of(schedule: Schedule, job: int) -> int | None:
    """Return the recorded wait of the job with this index, s; None if it is unknown."""
    waits = schedule.workload.recorded_wait
    return None if waits is None or waits[job] < 0 else int(waits[job])


def common_fields(schedule: Schedule, job: int) -> dict[str, Any]:
    """Return the fields of `Explanation` for the job with this index."""
    w = schedule.workload
    columns = {"job": w.job_id, "submit": schedule.submit, "start": schedule.start, "end": schedule.end, "procs": w.procs}
    columns |= {"requested": w.requested, "runtime": schedule.runtime}
    values = {name: int(column[job]) for name, column in columns.items()}
    return values | {"kind": Kind(schedule.kind[job]).name.lower(), "policy": schedule.label, "schedule": schedule}


def plain(value: Any) -> Any:
    """Return a value of an explanation in a form that JSON can store."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
