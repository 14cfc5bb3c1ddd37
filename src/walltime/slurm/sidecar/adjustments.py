"""The ledger's entries in memory, and a ledger that can fail without anything being forgotten."""

from __future__ import annotations

from collections.abc import Callable

from walltime.slurm.sidecar.host import Clock
from walltime.slurm.sidecar.ledger import Entry, Event, Ledger, LedgerError, State
from walltime.slurm.squeue_fields import QueueJob

WRITE_AGAIN = 900.0
"""Seconds after which it is written again that a job is in the queue."""
FORGET_AFTER = 3600.0
"""Seconds after which the entry of a job that was seen to have ended is removed."""
KEEP_OPEN = 30 * 86_400.0
"""Seconds for which the entry of a job is kept that is not shown any more, but was not seen to end: Slurm may not show all jobs."""
OPEN = (State.INTENT, State.SET)


class Adjustments:
    """What is known of adjusted jobs: on disk, and as long as this process lives even if the disk cannot be written.

    `works`: whether the ledger can be written.
    """

    def __init__(self, ledger: Ledger | None, clock: Clock, say: Callable[[str], None]):
        self.ledger, self._clock, self._say = ledger, clock, say
        self.jobs: dict[str, Entry] = {} if ledger is None else ledger.entries()
        self.works = ledger is None or not ledger.unwritable

    @property
    def watched(self) -> list[str]:
        """The jobs that may be short, or may have a TimeMin of the side-car."""
        return [key for key, entry in self.jobs.items() if entry.state in (*OPEN, State.SHORT)]

    def is_same(self, job: QueueJob) -> bool:
        """Whether it is the job of its entry, and not one that has got its number later."""
        entry = self.jobs[job.key]
        return entry.user == job.user and entry.restarts <= job.restarts

    def keep(self, before: Entry | None, after: Entry, detail: str = "") -> bool:
        """Write an entry if it has changed; whether it is on disk. What cannot be written is remembered as long as this process lives."""
        now = self._clock.time()
        if before is not None and before == after.but(seen=before.seen) and now - before.seen < WRITE_AGAIN:
            return True
        after = after.but(seen=now)
        if before is not None:
            self.jobs[after.key] = after
        try:
            assert self.ledger is not None
            self.ledger.write(after, now, detail)
        except LedgerError as error:
            self.fail(error)
            return False
        self.jobs[after.key] = after
        return True

    def note(self, what: str, entry: Entry | None = None, job: QueueJob | None = None, detail: str = "") -> None:
        """Note for those who ask later what happened."""
        if self.ledger is None:
            return
        about = ("", "", 0, 0) if entry is None else (entry.key, entry.user, entry.time_min, entry.limit)
        seen = (None, 0) if job is None else (job.limit, job.start)
        try:
            self.ledger.remember(Event(self._clock.time(), what, *about, *seen, detail))
        except LedgerError as error:
            self.fail(error)

    def forget(self, keys: list[str]) -> None:
        """Remove these entries."""
        for key in keys:
            del self.jobs[key]
        if self.ledger is not None and keys:
            try:
                self.ledger.forget(keys)
            except LedgerError as error:
                self.fail(error)

    def forget_old(self) -> None:
        """Remove entries of jobs that ended a while ago, or have not been seen for weeks."""
        now = self._clock.time()
        limit = {State.ENDED: FORGET_AFTER}
        self.forget([key for key, entry in self.jobs.items() if now - entry.seen > limit.get(entry.state, KEEP_OPEN)])

    def fail(self, error: LedgerError) -> None:
        """The ledger could not be written."""
        if self.works:
            self._say(f"ALARM: {error}")
        self.works = False

    def mend(self) -> None:
        """Try whether a ledger that could not be written can be written again, and write what is missing."""
        if self.works or self.ledger is None:
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
        self.works = True
        self._say("the ledger can be written again")
