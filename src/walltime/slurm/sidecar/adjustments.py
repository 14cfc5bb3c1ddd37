"""The ledger's entries in memory, so that a ledger that fails loses nothing while this process runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from walltime.slurm.sidecar.host import Clock
from walltime.slurm.sidecar.ledger import Entry, Event, Ledger, LedgerError, State
from walltime.slurm.squeue_fields import QueueJob

WRITE_AGAIN = 900.0
"""Seconds after which the ledger notes again that a job is in the queue."""
FORGET_AFTER = 3600.0
"""Seconds after which the entry of an ended job is removed."""
KEEP_OPEN = 30 * 86_400.0
"""Seconds for which the entry of a vanished job is kept if its end was not seen: Slurm may not show all jobs."""
OPEN = (State.INTENT, State.SET)


class Adjustments:
    """The entries of adjusted jobs: on disk, and in memory even if the disk cannot be written.

    `writable`: whether the ledger can be written.
    """

    def __init__(self, ledger: Ledger | None, clock: Clock, say: Callable[[str], None]):
        self.ledger, self._clock, self._say = ledger, clock, say
        self.jobs: dict[str, Entry] = {} if ledger is None else ledger.entries()
        self.writable = ledger is None or not ledger.unwritable

    @property
    def watched(self) -> list[str]:
        """The jobs that may be short, or may have the side-car's TimeMin."""
        return [key for key, entry in self.jobs.items() if entry.state in (*OPEN, State.SHORT)]

    def is_same(self, job: QueueJob) -> bool:
        """Whether a job is the one of its entry, and not a later job with the same number."""
        entry = self.jobs[job.key]
        return entry.user == job.user and entry.restarts <= job.restarts

    def save(self, before: Entry | None, after: Entry, detail: str = "") -> bool:
        """Write an entry if it has changed, and return whether it is on disk; a known job's entry is kept in memory in any case."""
        now = self._clock.time()
        if before is not None and before == after.but(seen=before.seen) and now - before.seen < WRITE_AGAIN:
            return True
        after = after.but(seen=now)
        if before is not None:
            self.jobs[after.key] = after
        with self.reporting():
            assert self.ledger is not None
            self.ledger.write(after, now, detail)
            self.jobs[after.key] = after
            return True
        return False  # type: ignore[unreachable]  # it is reached after an error

    def record(self, what: str, entry: Entry | None = None, job: QueueJob | None = None, detail: str = "") -> None:
        """Record an event for later reviews."""
        if self.ledger is None:
            return
        about = ("", "", 0, 0) if entry is None else (entry.key, entry.user, entry.time_min, entry.limit)
        seen = (None, 0) if job is None else (job.limit, job.start)
        with self.reporting():
            self.ledger.remember(Event(self._clock.time(), what, *about, *seen, detail))

    def forget_old(self) -> None:
        """Remove entries of jobs that ended a while ago, or have not been seen for weeks."""
        now = self._clock.time()
        limit = {State.ENDED: FORGET_AFTER}
        old = [key for key, entry in self.jobs.items() if now - entry.seen > limit.get(entry.state, KEEP_OPEN)]
        for key in old:
            del self.jobs[key]
        if self.ledger is not None:
            with self.reporting():
                self.ledger.forget(old)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Go on after a LedgerError; remember, and report once, that the ledger could not be written."""
        try:
            yield
        except LedgerError as error:
            if self.writable:
                self._say(f"ALARM: {error}")
            self.writable = False

    def retry(self) -> None:
        """Write all entries to a ledger that could not be written, if that is possible again."""
        if self.writable or self.ledger is None:
            return
        now = self._clock.time()
        try:
            if self.ledger.unwritable:
                self.ledger.open_again()
                self.jobs = self.ledger.entries() | self.jobs
            for entry in self.jobs.values():
                self.ledger.write(entry, now, "written later")
            self.ledger.note("written", str(int(now)))
        except LedgerError:
            return
        self.writable = True
        self._say("the ledger can be written again")
