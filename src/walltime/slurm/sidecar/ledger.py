"""The side-car's ledger: a database in SQLite that records every change before it is made, and its effect.

The entries are in memory as well, so that nothing is lost while this process runs, even if the disk fails.
"""

import errno
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from walltime.errors import OutputError
from walltime.slurm.sidecar.host import Clock
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes
from walltime.wording import printable


class State(StrEnum):
    """The state of an adjustment."""

    INTENT = "intent"
    """TimeMin is about to be set; it is unknown whether Slurm has it"""
    SET = "set"
    """the job was seen waiting with this TimeMin"""
    CLEAR = "clear"
    """the job was seen waiting without this TimeMin"""
    STARTED = "started"
    """the job runs with its full limit"""
    SHORT = "short"
    """the job has a shortened limit, which must be raised"""
    ENDED = "ended"
    """the job has ended; for a while, Slurm may still put it back into the queue"""


@dataclass(frozen=True)
class Entry:
    """An adjusted job. `time_min` (minutes) never changes, so that a TimeMin that Slurm sets late is still recognised.

    `limit`: the user's limit, minutes, as last seen while the job waited. `longest`: the longest limit that the user can have chosen, None
    for any. `restarts`: how often the job had been put back into the queue when last seen. `soft`: whether TimeMin was set under soft
    limits. `seen`: Unix time at which the entry was last written because the job was in the queue. `doubt`: whether the user may have
    chosen a longer limit than `limit` since then.
    """

    key: str
    user: str
    time_min: int
    limit: int
    longest: Minutes
    restarts: int
    soft: bool
    state: State
    seen: float
    doubt: bool = False

    def but(self, **changes: Any) -> Self:
        """Return a copy with these changes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Event:
    """An event, kept for reviews, even after its job has left the queue.

    `what`: `set`, `taken back`, `started` (with its full limit), `started short`, `given back` (`detail`: the seconds left), `overdue`
    (ended after its TimeMin; `detail`: by how many node-seconds, and the partition) or `in time` (ended before); without a job: `alarm`,
    `failed`, `prolog missed`. `time_min`, `limit`: minutes, the side-car's and the user's; `shown`: the job's limit, None for none.
    `time`, `start`: Unix times, `start` 0 while unknown.
    """

    time: float
    what: str
    key: str = ""
    user: str = ""
    time_min: int = 0
    limit: int = 0
    shown: Minutes = None
    start: int = 0
    detail: str = ""


WRITE_AGAIN = 900.0
"""Seconds after which the entry of an unchanged job in the queue is written again, to update `seen`."""
FORGET_AFTER = 3600.0
"""Seconds after which the entry of an ended job is removed."""
KEEP_OPEN = 30 * 86_400.0
"""Seconds for which the entry of a vanished job is kept if its end was not seen, because Slurm may not show all jobs."""
OPEN = (State.INTENT, State.SET)
KEEP_EVENTS = 400 * 86_400
"""Seconds for which events are kept."""
_ENTRY_COLUMNS, _EVENT_COLUMNS = (", ".join(f'"{column.name}"' for column in fields(kind)) for kind in (Entry, Event))
VERSION = 1
"""The version of the tables, as SQLite's user_version."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Error numbers of a disk that cannot be written. Without a readable ledger, short jobs can still be found in the queue."""
MARK = "mark"
"""The name of a random value in the ledger that the lock file repeats: if they differ, one of the files was replaced."""
_TABLES = f"""
CREATE TABLE IF NOT EXISTS jobs ({_ENTRY_COLUMNS}, PRIMARY KEY ("key"));
CREATE TABLE IF NOT EXISTS notes (name PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS changes (time REAL, key, what, detail);
CREATE TABLE IF NOT EXISTS events ({_EVENT_COLUMNS});
CREATE INDEX IF NOT EXISTS events_time ON events ("time");
"""


class LedgerError(OutputError):
    """The ledger cannot be used. Changes that it does not record are forbidden."""


class Ledger:
    """The ledger in a folder, which only one process at a time can open. Raises LedgerError.

    A ledger that cannot be written is opened read-only, or is empty; `unwritable` is then the reason. `lost`: a message that an earlier
    ledger is missing. `exposed`: a message that other users can access the folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.lost = self.unwritable = self.exposed = ""
        self._file = folder / "ledger.sqlite"
        self._take_lock()
        try:
            self._open()
        except sqlite3.Error as error:
            self._open_to_read(error)
        except BaseException:
            self._lock.close()
            raise

    def _take_lock(self) -> None:
        """Lock the ledger. Other users must not be able to open the lock file, or they could keep the side-car from starting."""
        try:
            status = self.folder.stat()
            if status.st_mode & 0o077 and status.st_uid == os.geteuid():
                self.folder.chmod(0o700)
            elif status.st_mode & 0o077:
                self.exposed = (
                    f"{printable(self.folder)}: other users can access it; use a folder that belongs to the side-car, with mode 700"
                )
            self._lock = os.fdopen(os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
            with suppress(OSError):
                os.fchmod(self._lock.fileno(), 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise LedgerError(f"{printable(self.folder)}: another side-car uses this ledger; stop it first", "ledger_in_use") from error
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            if not self._file.is_file() and error.errno not in DISK_ERRORS:
                raise LedgerError(
                    f"{printable(self.folder)}: cannot be used as a ledger ({reason}); choose another folder, on a local disk",
                    "unusable_ledger",
                ) from error
            self.unwritable = f"{printable(self.folder)}: cannot be written ({reason})"
            self._lock = Path(os.devnull).open("r+")  # noqa: SIM115 - kept as long as this ledger

    def _open(self) -> None:
        self._base = sqlite3.connect(self._file, isolation_level=None, timeout=5)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=FULL")
        [version] = self._base.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise LedgerError(f"{printable(self._file)}: written by a later version of the side-car; use that version", "later_version")
        self._base.executescript(_TABLES)
        self._base.execute(f"PRAGMA user_version = {VERSION}")
        self._file.chmod(0o600)
        self._check_mark()

    def _check_mark(self) -> None:
        """Compare the ledger's mark with the lock file's, and put a new mark into both."""
        self._lock.seek(0)
        expected, noted = self._lock.read().split(), self.noted(MARK)
        if noted not in (expected or [""]):
            change = "not the previous ledger" if expected and noted else "a new ledger" if expected else "a ledger from another place"
            self.lost = f"{printable(self._file)}: {change}"
        if self.unwritable:
            return
        mark = secrets.token_hex(8)
        try:  # whenever this is interrupted, the lock file contains the ledger's mark
            self._write_lock(f"{noted} {mark}")
            self.note(MARK, mark)
            self._write_lock(mark)
        except (OSError, LedgerError) as error:
            self.unwritable = str(error)

    def _write_lock(self, text: str) -> None:
        self._lock.seek(0)
        self._lock.write(text)
        self._lock.truncate()
        self._lock.flush()
        os.fsync(self._lock.fileno())

    def _open_to_read(self, error: sqlite3.Error) -> None:
        """Open the ledger read-only, or an empty read-only one in memory; raises LedgerError for a file that is not a ledger."""
        if hasattr(self, "_base"):
            self._base.close()
        self.unwritable = f"{printable(self._file)}: cannot be written ({error})"
        reason = error
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            base = None
            try:
                base = sqlite3.connect(f"{self._file.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
                base.execute("SELECT 1 FROM jobs").fetchone()
            except sqlite3.Error as fault:
                if base is not None:
                    base.close()
                reason = fault
                continue
            self._base = base
            return
        if self._file.is_file() and self._file.stat().st_size and "no such table" not in str(reason):
            self._lock.close()
            raise LedgerError(
                f"{printable(self._file)}: not a ledger, or cannot be written ({error}); choose another folder", "not_a_ledger"
            ) from error
        self._base = sqlite3.connect(":memory:", isolation_level=None)
        self._base.executescript(_TABLES)
        self._base.execute("PRAGMA query_only=ON")
        self._check_mark()

    def open_again(self) -> None:
        """Open an unwritable ledger again, for writing; raises LedgerError if it still cannot be written."""
        if not self.unwritable:
            return
        self._lock.close()
        new = Ledger(self.folder)
        self._base.close()
        self._base, self._lock, self.unwritable, self.exposed = new._base, new._lock, new.unwritable, new.exposed
        if self.unwritable:
            raise LedgerError(self.unwritable)

    def close(self) -> None:
        """Close the ledger and unlock it."""
        self._base.close()
        self._lock.close()

    def entries(self) -> dict[str, Entry]:
        """Return the adjusted jobs, by key."""
        try:
            rows = self._base.execute(f"SELECT {_ENTRY_COLUMNS} FROM jobs").fetchall()
        except sqlite3.Error as error:
            raise LedgerError(f"{printable(self.folder)}: the ledger cannot be read ({error}); check the file") from error
        entries = [Entry(*row) for row in rows]
        return {
            entry.key: entry.but(state=State(entry.state), soft=bool(entry.soft), doubt=bool(entry.doubt or self.lost)) for entry in entries
        }

    def write(self, entry: Entry, now: float, detail: str = "") -> None:
        """Write an entry, and log the change; both are on disk when this returns."""
        with self._transaction():
            self._base.execute(f"INSERT OR REPLACE INTO jobs VALUES ({_marks(entry)})", astuple(entry))
            self._base.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", (now, entry.key, str(entry.state), detail))

    def remember(self, event: Event) -> None:
        """Record an event, which is kept for KEEP_EVENTS."""
        with self._transaction():
            self._base.execute(f"INSERT INTO events VALUES ({_marks(event)})", astuple(event))

    def forget(self, keys: list[str]) -> None:
        """Remove the entries of jobs that have left the queue."""
        if keys:
            with self._transaction():
                self._base.executemany("DELETE FROM jobs WHERE key = ?", [(key,) for key in keys])
                for table in ("events", "changes"):
                    self._base.execute(f"DELETE FROM {table} WHERE time < (SELECT max(time) FROM {table}) - ?", (KEEP_EVENTS,))

    def note(self, name: str, value: str) -> None:
        """Store a value under a name."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str:
        """Return the value that is stored under a name; empty if there is none."""
        with suppress(sqlite3.Error):
            for row in self._base.execute("SELECT value FROM notes WHERE name = ?", (name,)):
                return str(row[0])
        return ""

    def events_since(self, time: float, *what: str) -> list[Event]:
        """Return the events of these kinds since a Unix time, in order; none if they cannot be read."""
        with suppress(sqlite3.Error):
            return [event for event in _events(self._base, time) if event.what in what]
        return []

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise LedgerError(f"{printable(self.folder)}: the ledger cannot be written ({error}); check the disk") from error


def _events(base: sqlite3.Connection, since: float = 0.0) -> list[Event]:
    rows = base.execute(f"SELECT {_EVENT_COLUMNS} FROM events WHERE time >= ? ORDER BY time, rowid", (since,))
    return [Event(*row) for row in rows]


def _marks(row: Entry | Event) -> str:
    return ", ".join("?" * len(fields(row)))


class Adjustments:
    """The entries of adjusted jobs: on disk, and in memory even if the disk fails.

    `writable`: whether the ledger can be written.
    """

    def __init__(self, ledger: Ledger | None, clock: Clock, say: Callable[[str], None]):
        self.ledger, self._clock, self._say = ledger, clock, say
        self.jobs: dict[str, Entry] = {} if ledger is None else ledger.entries()
        self.writable = ledger is None or not ledger.unwritable

    def is_same(self, job: QueueJob) -> bool:
        """Return whether a job is the one that its entry describes, and not a later job with the same number."""
        entry = self.jobs[job.key]
        return entry.user == job.user and entry.restarts <= job.restarts

    def save(self, before: Entry | None, after: Entry, detail: str = "") -> bool:
        """Write an entry if it has changed, and return whether it is on disk. In memory, a known job's entry always changes."""
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
        return False  # type: ignore[unreachable]  # reached after an error

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
        """Continue after a LedgerError, which is reported once; `writable` is False from then on."""
        try:
            yield
        except LedgerError as error:
            if self.writable:
                self._say(f"ALARM: {error}")
            self.writable = False

    def retry(self) -> None:
        """Write all entries to a ledger that could not be written before, if that is possible again."""
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


def open_ledger(folder: Path, say: Callable[[str], None]) -> Ledger:
    """Open the ledger. If the file is damaged, rename it and open a new ledger, so that the jobs are still watched."""
    try:
        return Ledger(folder)
    except LedgerError as error:
        damaged = folder / "ledger.sqlite"
        if error.code != "not_a_ledger":
            raise
        aside = damaged.with_name(f"ledger.damaged-{secrets.token_hex(4)}")
        try:
            for end in ("", "-wal", "-shm"):
                if damaged.with_name(damaged.name + end).exists():
                    damaged.with_name(damaged.name + end).rename(aside.with_name(aside.name + end))
        except OSError:
            raise error from None
        say(f"ALARM: {error}; it is kept as {aside.name}")
        return Ledger(folder)


def read_events(folder: Path) -> list[Event]:
    """Return the events of a ledger, in order, even while a side-car uses it. Raises LedgerError."""
    path = folder / "ledger.sqlite"
    if not path.is_file():
        raise LedgerError(f"{printable(folder)}: not a ledger; give the folder of the side-car's ledger", "not_a_ledger")
    try:
        with closing(sqlite3.connect(path, timeout=30)) as base:
            return _events(base)
    except sqlite3.Error as error:
        raise LedgerError(f"{printable(path)}: the ledger cannot be read ({error}); check the file") from error
