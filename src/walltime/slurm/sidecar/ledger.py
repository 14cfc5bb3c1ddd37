"""What the side-car has changed, on disk before it is changed: SQLite, one transaction for each intent and each effect."""

from __future__ import annotations

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
from typing import Any

from walltime.errors import OutputError
from walltime.slurm_values import Minutes
from walltime.wording import printable


class State(StrEnum):
    """How far an adjustment has come."""

    INTENT = "intent"
    """written down; whether Slurm has the TimeMin is unknown"""
    SET = "set"
    """the job was seen waiting with it"""
    CLEAR = "clear"
    """the job was seen waiting without it"""
    STARTED = "started"
    """the job runs with its limit whole"""
    SHORT = "short"
    """the job has a shortened limit, which must be raised"""
    ENDED = "ended"
    """the job was seen to have ended; it may still be put back into the queue for a while"""


@dataclass(frozen=True)
class Entry:
    """An adjusted job. Its `time_min` never changes, so that a change that Slurm makes late is still known.

    `limit`: the user's limit, minutes, as last seen while the job waited. `longest`: the longest that its user can have chosen, None for
    any. `restarts`: as last seen. `soft`: it was set under soft limits. `seen`: Unix time at which it was last written that the job is in
    the queue. `doubt`: its user may have chosen more than `limit` unseen.
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

    def but(self, **changes: Any) -> Entry:
        """A copy with these changes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Event:
    """What happened, for those who ask later; entries are forgotten when their jobs have left the queue.

    `what`: `set`, `taken back`, `started` (with its limit whole), `started short`, `given back` (`detail`: the seconds left); of no
    job: `alarm`, `failed`, `prolog missed`. `overdue`: it ended after its TimeMin (`detail`: by how many node-seconds, and its partition);
    `in time`: it ended before. `time_min`, `limit`: minutes, the side-car's and the user's; `shown`: the limit that the job
    had, None for none. `time`, `start`: Unix times, `start` 0 while unknown.
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


KEEP_EVENTS = 400 * 86_400
"""Seconds for which it is known what happened."""
COLUMNS = [f'"{column.name}"' for column in fields(Entry)]
_EVENTS = ", ".join(f'"{column.name}"' for column in fields(Event))
VERSION = 1
"""Of the tables."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""What a disk says that takes nothing more: nothing of what may be short is known then, but it can be found."""
MARK = "mark"
"""The note that the lock file repeats, so that a ledger that was replaced, or its lock file, is noticed."""
_TABLES = f"""
CREATE TABLE IF NOT EXISTS jobs ({", ".join(COLUMNS)}, PRIMARY KEY ("key"));
CREATE TABLE IF NOT EXISTS notes (name PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS changes (time REAL, key, what, detail);
CREATE TABLE IF NOT EXISTS events ({", ".join(f'"{column.name}"' for column in fields(Event))});
CREATE INDEX IF NOT EXISTS events_time ON events ("time");
"""


class LedgerError(OutputError):
    """The ledger cannot be written, so nothing may be changed that is not in it."""


class Ledger:
    """The ledger in a folder; one process at a time can have it open. Raises LedgerError.

    Where it cannot be written, it is read at least, or is as empty as a new one, and `unwritable` says why. `lost`: that another one was
    here before, which is gone. `exposed`: that others can reach into the folder.
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
        """Nobody else may be able to take the lock: whoever can open its file can keep the side-car from starting."""
        try:
            status = self.folder.stat()
            if status.st_mode & 0o077 and status.st_uid == os.geteuid():
                self.folder.chmod(0o700)
            elif status.st_mode & 0o077:
                self.exposed = f"{printable(self.folder)}: others may reach into it; make it a folder of the side-car's own, with mode 700"
            self._lock = os.fdopen(os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
            with suppress(OSError):
                os.fchmod(self._lock.fileno(), 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise LedgerError(
                f"{printable(self.folder)}: another side-car uses this ledger; end that one first", "ledger_in_use"
            ) from error
        except OSError as error:
            if not self._file.is_file() and error.errno not in NO_ROOM:
                raise LedgerError(
                    f"{printable(self.folder)}: cannot be used as a ledger ({(error.strerror or str(error)).lower()})", "unusable_ledger"
                ) from error
            self.unwritable = f"{printable(self.folder)}: cannot be written ({(error.strerror or str(error)).lower()})"
            self._lock = Path(os.devnull).open("r+")  # noqa: SIM115 - kept as long as this ledger

    def _open(self) -> None:
        self._base = sqlite3.connect(self._file, isolation_level=None, timeout=5)
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=FULL")
        [version] = self._base.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise LedgerError(f"{printable(self._file)}: was written by a later version of the side-car; use that one", "later_version")
        self._base.executescript(_TABLES)
        self._base.execute(f"PRAGMA user_version = {VERSION}")
        self._file.chmod(0o600)
        self._check_mark()

    def _check_mark(self) -> None:
        """Compare the mark in the ledger with that in the lock file, and put a new one into both."""
        self._lock.seek(0)
        expected, noted = self._lock.read().split(), self.noted(MARK)
        if noted not in (expected or [""]):
            what = (
                "is not the one that was here last" if expected and noted else "is new here" if expected else "was put here from elsewhere"
            )
            self.lost = f"{printable(self._file)}: {what}"
        if self.unwritable:
            return
        mark = secrets.token_hex(8)
        try:  # whenever this is interrupted, the lock file has the mark of the ledger
            self._write_lock(f"{noted} {mark}")
            self._write_note(MARK, mark)
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
        """The ledger as it is, or an empty one in memory that nothing goes into; raises LedgerError if it is none."""
        if hasattr(self, "_base"):
            self._base.close()
        self.unwritable = f"{printable(self._file)}: cannot be written ({error})"
        why = error
        for how in ("mode=ro", "mode=ro&immutable=1"):
            base = None
            try:
                base = sqlite3.connect(f"{self._file.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
                base.execute("SELECT 1 FROM jobs").fetchone()
            except sqlite3.Error as fault:
                if base is not None:
                    base.close()
                why = fault
                continue
            self._base = base
            return
        if self._file.is_file() and self._file.stat().st_size and "no such table" not in str(why):
            self._lock.close()
            raise LedgerError(f"{printable(self._file)}: is no ledger, or cannot be written ({error})", "not_a_ledger") from error
        self._base = sqlite3.connect(":memory:", isolation_level=None)
        self._base.executescript(_TABLES)
        self._base.execute("PRAGMA query_only=ON")
        self._check_mark()

    def open_again(self) -> None:
        """Open for writing what could only be read, or not be made, at the start; raises LedgerError if it still cannot be written."""
        if not self.unwritable:
            return
        self._lock.close()
        new = Ledger(self.folder)
        self._base.close()
        self._base, self._lock, self.unwritable, self.exposed = new._base, new._lock, new.unwritable, new.exposed
        if self.unwritable:
            raise LedgerError(self.unwritable)

    def close(self) -> None:
        """Close the ledger and let others have it."""
        self._base.close()
        self._lock.close()

    def entries(self) -> dict[str, Entry]:
        """The adjusted jobs, by key."""
        try:
            rows = self._base.execute(f"SELECT {', '.join(COLUMNS)} FROM jobs").fetchall()
        except sqlite3.Error as error:
            raise LedgerError(f"{printable(self.folder)}: the ledger cannot be read ({error})") from error
        entries = (Entry(*row) for row in rows)
        return {
            entry.key: entry.but(state=State(entry.state), soft=bool(entry.soft), doubt=bool(entry.doubt) or bool(self.lost))
            for entry in entries
        }

    def write(self, entry: Entry, now: float, detail: str = "") -> None:
        """Write an entry, and that it came to this; on disk when this returns."""
        marks = ", ".join("?" * len(COLUMNS))
        with self._transaction():
            self._base.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", astuple(entry))
            self._base.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", (now, entry.key, str(entry.state), detail))

    def remember(self, event: Event) -> None:
        """Enter what has happened; it stays for KEEP_EVENTS."""
        with self._transaction():
            self._base.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(fields(Event)))})", astuple(event))

    def forget(self, keys: list[str]) -> None:
        """Remove the entries of jobs that have left the queue."""
        if keys:
            with self._transaction():
                self._base.executemany("DELETE FROM jobs WHERE key = ?", [(key,) for key in keys])
                for table in ("events", "changes"):
                    self._base.execute(f"DELETE FROM {table} WHERE time < (SELECT max(time) FROM {table}) - ?", (KEEP_EVENTS,))

    def note(self, name: str, value: str) -> None:
        """Remember a value."""
        self._write_note(name, value)

    def _write_note(self, name: str, value: str) -> None:
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str:
        """A remembered value; empty if there is none."""
        try:
            row = self._base.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        except sqlite3.Error:
            return ""
        return "" if row is None else str(row[0])

    def events_since(self, time: float, *what: str) -> list[Event]:
        """What of these kinds has happened since a Unix time, in order; nothing if it cannot be read."""
        marks = ", ".join("?" * len(what))
        try:
            rows = self._base.execute(
                f"SELECT {_EVENTS} FROM events WHERE time >= ? AND what IN ({marks}) ORDER BY time, rowid", (time, *what)
            )
            return [Event(*row) for row in rows]
        except sqlite3.Error:
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
            raise LedgerError(f"{printable(self.folder)}: the ledger cannot be written ({error})") from error


def open_ledger(folder: Path, say: Callable[[str], None]) -> Ledger:
    """The ledger, or a new one beside what cannot be read, which would otherwise keep its jobs from being looked after."""
    try:
        return Ledger(folder)
    except LedgerError as error:
        damaged = folder / "ledger.sqlite"
        if "is no ledger" not in str(error):
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
    """What a ledger says has happened, in order; also while a side-car uses it. Raises LedgerError."""
    path = folder / "ledger.sqlite"
    if not path.is_file():
        raise LedgerError(f"{printable(folder)}: is no ledger; name the folder that the side-car has its ledger in", "not_a_ledger")
    try:
        with closing(sqlite3.connect(path, timeout=30)) as base:
            rows = base.execute(f"SELECT {_EVENTS} FROM events ORDER BY time, rowid").fetchall()
    except sqlite3.Error as error:
        raise LedgerError(f"{printable(path)}: the ledger cannot be read ({error})") from error
    return [Event(*row) for row in rows]
