"""What the reference engine works on, in plain Python: jobs, and free processors over future time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

IMMEDIATE, RESERVED, BACKFILLED = 0, 1, 2


@dataclass(eq=False)
class Job:
    """A job as the scheduler knows it, and what becomes of it; times in seconds."""

    index: int
    """Place in the order of arrival, from 0."""
    submit: int
    """With feedback, known only when the job that this one waits for has ended."""
    runtime: int
    believed: int
    """What is planned for it while it waits; with predictions, see `estimate`, `order_length` and `run_length`."""
    procs: int
    after: int = -1
    """Index of the job after whose end this one is submitted; -1 for nobody's."""
    think: int = 0
    start: int = -1
    kind: int = IMMEDIATE
    reserved_start: int = -1
    reservation: int = -1
    arrival: int = -1
    """How many jobs had arrived before this one."""
    ticket: int = -1
    """How many jobs had started before this one."""
    wild: bool = field(default=False, init=False)
    """It was backfilled, and that moved the real shadow of the job at the head back (tsafrir06, section V)."""
    suffered: int = 0
    """Wild backfills while this job was the head that had the reservation."""
    initial_shadow: int = -1
    """Its real shadow just before the first backfill while it was the head; -1 if there was none."""
    shadow_at_head: int = -1
    """Its real shadow in the first pass that found it blocked at the head; -1 if there was none."""
    shortest: bool = field(default=False, init=False)
    """No job, of those that waited when it was chosen, had a shorter real runtime (tsafrir06, section VI)."""
    alone: bool = field(default=False, init=False)
    """No other job waited when it was chosen."""

    predicted: int = -1
    basis: int = 0
    corrections: int = 0

    def __post_init__(self) -> None:
        self.estimate = self.believed
        """What the scheduler believes where it does not believe in predictions."""
        self.order_length = self.believed
        """What its place in the queue depends on."""
        self.run_length = self.believed
        """What it is expected to run once it runs."""

    @property
    def end(self) -> int:
        """When the running job will really end; the scheduler does not look at it."""
        return self.start + self.runtime

    @property
    def expected_end(self) -> int:
        """When the scheduler expects the running job to end."""
        return self.start + self.run_length

    @property
    def delay(self) -> int:
        """How long after its initial real shadow it started; 0 if it suffered from no wild backfill."""
        return self.start - self.initial_shadow if self.suffered else 0


class Profile:
    """Free processors over future time: what is free now, and by how much that changes at which time."""

    def __init__(self, now: int, processors: int):
        self.now = now
        self.free = processors
        self.change: dict[int, int] = {}

    def occupy(self, begin: int, end: int, procs: int) -> None:
        """Take processors (give back, if negative) from `begin` until `end`."""
        if begin <= self.now:
            self.free -= procs
        else:
            self.change[begin] = self.change.get(begin, 0) - procs
        self.change[end] = self.change.get(end, 0) + procs

    def anchor(self, job: Job) -> int:
        """The first point where enough processors are available, and remain so until the job's expected end."""
        free = self.free
        anchor = self.now if free >= job.procs else None
        for time in sorted(self.change):
            if anchor is not None and time >= anchor + job.believed:
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
        self.occupy(anchor, anchor + job.believed, job.procs)
        return anchor


def release_followers(jobs: Iterable[Any], ended: int, end: int) -> list[Any]:
    """Tell the jobs that wait for a job (an index) that it has ended (s); return those that wait for no further one.

    A job that follows it is submitted after its think time, but not before 0 s, the others at once.
    """
    told = [job for job in jobs if ended in job.waits_for]
    for job in told:
        job.waits_for.remove(ended)
        job.submit = max(end + job.think, 0) if job.after == ended else max(job.submit, end)
    return [job for job in told if not job.waits_for]
