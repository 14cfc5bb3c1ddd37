"""What the side-car has changed, on disk before it is changed: SQLite, one transaction for each intent and each effect."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from walltime.adjust.facts import Minutes
from walltime.errors import OutputError
from walltime.logs.output import printable


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
    """the job runs with a shortened limit, which must be raised"""


@dataclass(frozen=True)
class Entry:
    """An adjusted job. Its `time_min` never changes, so that a change that Slurm makes late is still known.

    `limit`: the user's limit, minutes, as last seen while the job waited. `longest`: the longest that its partition allows, None for
    any; of a `SHORT` job what its limit must become. `restarts`: as last seen. `soft`: it was set under soft limits. `seen`: Unix time
    at which it was last written that the job is in the queue.
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

    def but(self, **changes: Any) -> Entry:
        """A copy with these changes."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Fact:
    """What happened, for those who ask later; entries are forgotten when their jobs have left the queue.

    `what`: `set`, `taken back`, `started` (with its limit whole), `started short`, `given back` (`detail`: the seconds left); of no
    job: `alarm`, `failed`, `prolog missed`. `time_min`, `limit`: minutes, the side-car's and the user's; `shown`: the limit that the job
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


KEEP_FACTS = 400 * 86_400
"""Seconds for which it is known what happened."""
COLUMNS = [f'"{column.name}"' for column in fields(Entry)]
_TABLES = f"""
CREATE TABLE IF NOT EXISTS jobs ({", ".join(COLUMNS)}, PRIMARY KEY ("key"));
CREATE TABLE IF NOT EXISTS notes (name PRIMARY KEY, value);
CREATE TABLE IF NOT EXISTS events (time REAL, key, what, detail);
CREATE TABLE IF NOT EXISTS facts ({", ".join(f'"{column.name}"' for column in fields(Fact))});
CREATE INDEX IF NOT EXISTS facts_time ON facts ("time");
"""


class LedgerError(OutputError):
    """The ledger cannot be written, so nothing may be changed that is not in it."""


class Ledger:
    """The ledger in a folder; one process at a time can have it open. Raises LedgerError."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            self._lock = (folder / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise LedgerError(f"{printable(folder)}: another side-car uses this ledger; end that one first") from error
        except OSError as error:
            raise LedgerError(f"{printable(folder)}: cannot be used as a ledger ({(error.strerror or str(error)).lower()})") from error
        try:
            self._base = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None, timeout=5)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=FULL")
            self._base.executescript(_TABLES)
        except sqlite3.Error as error:
            self._lock.close()
            raise LedgerError(f"{printable(folder / 'ledger.sqlite')}: is no ledger, or cannot be written ({error})") from error
        (folder / "ledger.sqlite").chmod(0o640)

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
        found = (Entry(*row) for row in rows)
        return {entry.key: entry.but(state=State(entry.state), soft=bool(entry.soft)) for entry in found}

    def write(self, entry: Entry, now: float, detail: str = "") -> None:
        """Write an entry, and that it came to this; on disk when this returns."""
        marks = ", ".join("?" * len(COLUMNS))
        with self._transaction():
            self._base.execute(f"INSERT OR REPLACE INTO jobs VALUES ({marks})", astuple(entry))
            self._base.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (now, entry.key, str(entry.state), detail))

    def remember(self, fact: Fact) -> None:
        """Enter what has happened; it stays for KEEP_FACTS."""
        with self._transaction():
            self._base.execute(f"INSERT INTO facts VALUES ({', '.join('?' * len(fields(Fact)))})", astuple(fact))

    def forget(self, keys: list[str]) -> None:
        """Remove the entries of jobs that have left the queue."""
        if keys:
            with self._transaction():
                self._base.executemany("DELETE FROM jobs WHERE key = ?", [(key,) for key in keys])
                for table in ("facts", "events"):
                    self._base.execute(f"DELETE FROM {table} WHERE time < (SELECT max(time) FROM {table}) - ?", (KEEP_FACTS,))

    def note(self, name: str, value: str) -> None:
        """Remember a value."""
        with self._transaction():
            self._base.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str:
        """A remembered value; empty if there is none."""
        try:
            row = self._base.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        except sqlite3.Error:
            return ""
        return "" if row is None else str(row[0])

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


def read_facts_of(folder: Path) -> list[Fact]:
    """What a ledger says has happened, in order; also while a side-car uses it. Raises LedgerError."""
    path = folder / "ledger.sqlite"
    if not path.is_file():
        raise LedgerError(f"{printable(folder)}: is no ledger; name the folder that the side-car has its ledger in")
    try:
        with closing(sqlite3.connect(path, timeout=30)) as base:
            known = base.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone()
            names = ", ".join(f'"{column.name}"' for column in fields(Fact))
            rows = base.execute(f"SELECT {names} FROM facts ORDER BY time, rowid").fetchall() if known else []
    except sqlite3.Error as error:
        raise LedgerError(f"{printable(path)}: the ledger cannot be read ({error})") from error
    return [Fact(*row) for row in rows]
