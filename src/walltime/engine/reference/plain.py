"""Jobs, and free processors over future time, for the reference engine in plain Python."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

IMMEDIATE, RESERVED, BACKFILLED = 0, 1, 2


@dataclass(eq=False)
class Job:
    """A job for the scheduler, with its start and end once they are known; times in seconds."""

    index: int
    """Place in the order of arrival, from 0."""
    submit: int
    """With feedback, known only once the job that this one waits for has ended."""
    runtime: int
    planned: int
    """Its planned runtime while it waits; with predictions, see `estimate`, `order_length` and `run_length`."""
    procs: int
    after: int = -1
    """Index of the job after whose end this one is submitted; -1 for none."""
    think: int = 0
    start: int = -1
    kind: int = IMMEDIATE
    reserved_start: int = -1
    reservation: int = -1
    arrival: int = -1
    """Number of jobs that had arrived before this one."""
    ticket: int = -1
    """Number of jobs that had started before this one."""
    overtaken: int = 0
    """Number of jobs that arrived later and have started while this one waited."""
    wild: bool = field(default=False, init=False)
    """Whether it was backfilled and thereby moved the real shadow of the head to a later time (tsafrir06, section V)."""
    suffered: int = 0
    """Number of wild backfills while this job was the head with the reservation."""
    initial_shadow: int = -1
    """Its real shadow, s, just before the first backfill while it was the head; -1 if there was none."""
    shadow_at_head: int = -1
    """Its real shadow, s, in the first pass that found it blocked at the head; -1 if there was none."""
    shortest: bool = field(default=False, init=False)
    """Whether no job that waited when it was chosen had a shorter real runtime (tsafrir06, section VI)."""
    alone: bool = field(default=False, init=False)
    """Whether no other job waited when it was chosen."""

    predicted: int = -1
    basis: int = 0
    corrections: int = 0

    def __post_init__(self) -> None:
        self.waits_for = {self.after} - {-1}
        """Indices of the jobs that must end before this one can be submitted."""
        self.estimate = self.planned
        """The planned runtime wherever predictions are not used."""
        self.order_length = self.planned
        """The planned runtime that determines its place in the queue."""
        self.run_length = self.planned
        """Its expected runtime once it runs."""

    def note_reservation(self, start: int) -> None:
        """Record the start of the job's first reservation."""
        if self.reserved_start < 0:
            self.reserved_start = start

    @property
    def end(self) -> int:
        """Return the real end of a running job, which the scheduler must not read."""
        return self.start + self.runtime

    @property
    def expected_end(self) -> int:
        """Return the expected end of a running job."""
        return self.start + self.run_length

    @property
    def delay(self) -> int:
        """Return how much later the job started than its initial real shadow, s; 0 if it suffered from no wild backfill."""
        return self.start - self.initial_shadow if self.suffered else 0


class Profile:
    """Free processors over future time: the number now, and its changes at later times."""

    def __init__(self, now: int, processors: int):
        self.now = now
        self.free = processors
        self.change: dict[int, int] = {}

    def occupy(self, begin: int, end: int, procs: int) -> None:
        """Take processors (release them, if negative) from `begin` until `end`."""
        if begin <= self.now:
            self.free -= procs
        else:
            self.change[begin] = self.change.get(begin, 0) - procs
        self.change[end] = self.change.get(end, 0) + procs

    def anchor(self, job: Job) -> int:
        """Return the first point where enough processors are available and remain so until the job's expected end."""
        free = self.free
        anchor = self.now if free >= job.procs else None
        for time in sorted(self.change):
            if anchor is not None and time >= anchor + job.planned:
                break
            free += self.change[time]
            if free < job.procs:
                anchor = None
            elif anchor is None:
                anchor = time
        assert anchor is not None, "the machine is empty in the end"
        return anchor

    def reserve(self, job: Job) -> int:
        """Find the job's anchor point and occupy it."""
        anchor = self.anchor(job)
        self.occupy(anchor, anchor + job.planned, job.procs)
        return anchor


def within_limits(job: Any, running: Iterable[Any], limits: Sequence[Sequence[int]]) -> bool:
    """Return whether a job may start next to the running ones: `limits` on jobs, processors and second resource, by number.

    A job counts as often as its list contains a limit.
    """
    for k in dict.fromkeys(job.limits):
        group = [other for other in running if k in other.limits] + [job]
        used = sum(other.limits.count(k) for other in group), sum(other.procs for other in group), sum(other.second for other in group)
        if any(a > b for a, b in zip(used, limits[k], strict=True)):
            return False
    return True


def followers_of(jobs: Iterable[Any]) -> dict[int, list[Any]]:
    """Return the jobs that wait for the end of each job, by its index."""
    followers: dict[int, list[Any]] = {}
    for job in jobs:
        for other in job.waits_for:
            followers.setdefault(other, []).append(job)
    return followers


def release_followers(followers: Mapping[int, Sequence[Any]], ended: int, end: int) -> list[Any]:
    """Record the end (s) of a job (an index) for the jobs that follow it; return those that now wait for no other job.

    A job that follows it is submitted after its think time, but not before 0 s; the others are submitted at once.
    """
    waiting = followers.get(ended, ())
    for job in waiting:
        job.waits_for.remove(ended)
        job.submit = max(end + job.think, 0) if job.after == ended else max(job.submit, end)
    return [job for job in waiting if not job.waits_for]
