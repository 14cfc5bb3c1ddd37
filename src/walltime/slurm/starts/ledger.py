"""A ledger of predicted start times, to which the real starts are added from a log."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from walltime.errors import LogError, OutputError
from walltime.slurm.snapshot_jobs import labels_of
from walltime.slurm.starts.scores import Outcome, Score, score_outcomes
from walltime.slurm.starts.start_times import StartTimes
from walltime.wording import printable
from walltime.workload import Workload

NAME = "start-times.sqlite"
VERSION = 1
APPLICATION = 0x77616C6C
"""SQLite's application id: "wall"."""
_TABLES = """
CREATE TABLE prediction (
    job INTEGER NOT NULL, label TEXT NOT NULL, submit INTEGER, made INTEGER NOT NULL, early REAL, median REAL, late REAL, by_limits REAL,
    slurm REAL, policy TEXT NOT NULL, samples INTEGER NOT NULL, real REAL, PRIMARY KEY (made, label)
);
CREATE INDEX waiting ON prediction (job) WHERE real IS NULL;
"""


@dataclass(frozen=True)
class Scorecard:
    """The scores of a ledger: `predictions` and those with `known` starts are counted.

    `completed`: the number of starts that were added just now. `scores`: the scores of the predictions from the simulations, without
    corrections.
    """

    predictions: int
    known: int
    completed: int
    scores: tuple[Score, ...]


class PredictionLedger:
    """A folder with a database of predictions, readable only by its owner. Raises LogError if the file is not a ledger."""

    def __init__(self, folder: str | os.PathLike[str], create: bool = False):
        self.path = Path(folder) / NAME
        if not self.path.exists():
            if not create:
                raise LogError(f"{printable(folder)}: no such ledger; walltime slurm start-times makes one", "not_a_ledger")
            try:
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise OutputError(f"{printable(self.path)}: cannot be written ({reason}); use another folder", "unwritable_file") from error
        with self._open() as database:
            kind, version = (database.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version"))
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if not tables and create and not kind:
                database.executescript(f"BEGIN;{_TABLES}PRAGMA application_id={APPLICATION};PRAGMA user_version={VERSION};COMMIT;")
            elif kind != APPLICATION or version != VERSION:
                raise LogError(
                    f"{printable(self.path)}: not a ledger of version {VERSION}; name one made by walltime slurm start-times",
                    "not_a_ledger",
                )

    def add(self, predictions: StartTimes) -> int:
        """Store the simulated predictions, replace earlier ones of the same snapshot, and return their number."""
        now = predictions.snapshot.time
        rows = []
        for one, quantiles in zip(predictions.jobs, predictions.simulated.T.tolist(), strict=True):
            times = [time if np.isfinite(time) else None for time in quantiles]
            others = [None if time is None else float(time - now) for time in (one.by_limits, one.slurm)]
            job = one.job
            rows.append((job.job, job.label, job.submit, now, *times, *others, predictions.policy, predictions.samples))
        with self._open() as database, database:
            database.executemany(
                "INSERT OR REPLACE INTO prediction (job, label, submit, made, early, median, late, by_limits, slurm, policy, samples) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
        return len(rows)

    def complete(self, history: Workload) -> int:
        """Store the starts of jobs from a log that records waits; return how many predictions get their start.

        Jobs are found by number and task. A start before the prediction belongs to an earlier run of the job, and is ignored.
        """
        wait = history.columns.get("wait")
        if wait is None:
            raise LogError(f"{history.origin.name}: the log has no starts of jobs; use a log of the batch system", "missing_starts")
        begin = history.submit + (history.origin.unix_start_time or 0) + wait
        starts: dict[str, list[int]] = {}
        for label, start, waited in zip(labels_of(history), begin.tolist(), wait.tolist(), strict=True):
            if waited >= 0:
                starts.setdefault(label, []).append(start)
        with self._open() as database, database:
            known = []
            for label, made in database.execute("SELECT label, made FROM prediction WHERE real IS NULL").fetchall():
                later = [start for start in starts.get(label, ()) if start >= made]
                if later:
                    known.append((float(min(later) - made), label, made))
            database.executemany("UPDATE prediction SET real = ? WHERE label = ? AND made = ?", known)
        return len(known)

    def outcomes(self) -> list[Outcome]:
        """Return the predictions of jobs that have started, in the order in which they were made."""
        columns = "label, made, early, median, late, by_limits, slurm, real"
        with self._open() as database:
            rows = database.execute(f"SELECT {columns} FROM prediction WHERE real IS NOT NULL ORDER BY made, label").fetchall()
        outcomes = []
        for label, made, *times, slurm, real in rows:
            early, median, late, limits = (np.inf if time is None else time for time in times)
            outcomes.append(Outcome(label, made, early, median, late, limits, np.nan if slurm is None else slurm, real))
        return outcomes

    def score(self, history: Workload | None = None) -> Scorecard:
        """Score the predictions; if a log is given, add its starts first."""
        completed = 0 if history is None else self.complete(history)
        with self._open() as database:
            count = int(database.execute("SELECT count(*) FROM prediction").fetchone()[0])
        outcomes = self.outcomes()
        return Scorecard(count, len(outcomes), completed, tuple(score_outcomes(outcomes)))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as database:
                yield database
        except sqlite3.Error as error:
            raise LogError(f"{printable(self.path)}: cannot be used as a ledger ({error}); use another folder", "not_a_ledger") from error
