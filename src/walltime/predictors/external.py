"""Predictions that were made elsewhere: a column of the log, or a file; and whether they were made with the future."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from walltime.errors import PolicyError
from walltime.files import note_input
from walltime.lazy import LaterModule
from walltime.predictors.base import Array, Basis, Predictor, below_remark
from walltime.predictors.hindsight import RECORDED, hindsight_remarks
from walltime.wording import printable
from walltime.workload import Workload

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

TWINS_WITHIN = 60
"""Jobs of one user that are alike are twins if they were submitted within so many seconds, and the first had not ended."""
SURE = 0.001
"""Predictions have seen more than the log if chance would order twins so well in at most this part of all cases."""
UNIX = 10**8
"""Times in a file from this on are seconds since 1970, if the log says when it begins."""


class External(Predictor):
    """Predictions that need no learning here: -1 where there is none, and what is below that is none; then the user's request is used."""

    @property
    def is_compiled(self) -> bool:
        """It needs no learning."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        """None of those that predictors learn from."""
        return ()

    def remarks(self, workload: Workload, requested: Array, runtime: Array) -> list[str]:
        """How many jobs have no prediction, or one below 0, and what the tests say that look for the future."""
        predicted = self.predict_all(workload, requested, runtime)
        assert predicted is not None
        none = int((predicted == -1).sum())
        remarks = [f"{none:,} of {len(workload):,} jobs have no prediction in {self.label}; the user's request is used for them."] * bool(
            none
        )
        remarks += below_remark(self.label, np.where(predicted < -1, Basis.BELOW, Basis.OWN))
        remarks += twins_remark(self.label, twins(workload, requested, runtime, predicted))
        return remarks + hindsight_remarks(self.label, workload, requested, runtime, predicted)


@dataclass(frozen=True)
class LogColumn(External):
    """A column of the log, s, such as `soft_walltime`; where it is -1, there is no prediction."""

    positional: ClassVar[tuple[str, ...]] = ("column",)
    column: str
    """the column's name"""

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """The column in whole seconds."""
        if self.column in RECORDED:
            raise PolicyError(
                f"nobody knows the {self.column} of a job when it is submitted, so it is no prediction; exact predicts runtimes",
                "future_column",
            )
        if self.column not in workload.columns:
            known = ", ".join(sorted(workload.columns)) or "none"
            raise PolicyError(f"the log has no column {self.column!r} with predictions; its further columns are {known}", "unknown_column")
        if self.column in workload.origin.names:
            raise PolicyError(f"the column {self.column!r} holds names, not predictions in seconds")
        return _whole(workload.columns[self.column])


@dataclass(frozen=True)
class PredictionFile(External):
    """Predictions in a file, CSV or Parquet, with `job_id` and a column of seconds; a job that it lacks has none.

    If the file has `known_at` (s in the log, or since 1970), a prediction
    that was known only after the submission of its job is not used.
    """

    positional: ClassVar[tuple[str, ...]] = ("file",)
    file: str
    """where it is"""
    column: str = "predicted"
    """`predicted`, or a quantile such as `p90`"""

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """The predictions in whole seconds."""
        rows, place = self._rows_of(workload)
        predicted = np.where(place >= 0, rows.predicted[place], -1)
        return np.where(self._late(workload, rows, place), -1, predicted)

    def remarks(self, workload: Workload, requested: Array, runtime: Array) -> list[str]:
        """How many jobs have no prediction, or had none in time; and what the test on twins says."""
        rows, place = self._rows_of(workload)
        late = int(self._late(workload, rows, place).sum())
        remarks = [f"{late:,} predictions of {printable(self.file)} were known only after the job was submitted, and are not used."] * bool(
            late
        )
        return remarks + super().remarks(workload, requested, runtime)

    def _rows_of(self, workload: Workload) -> tuple[Rows, Array]:
        """The file's rows, and for each job the place of its row, -1 without one."""
        rows = read_predictions(self.file, self.column)
        place = np.searchsorted(rows.job_id, workload.job_id).clip(max=len(rows.job_id) - 1)
        place = np.where(rows.job_id[place] == workload.job_id, place, -1)
        if len(workload) and (place < 0).all():
            raise PolicyError(
                f"{printable(self.file)} predicts no job of the log: its first job_id is {rows.job_id[0]}, the log's {workload.job_id[0]}",
                "other_jobs",
            )
        return rows, place

    def _late(self, workload: Workload, rows: Rows, place: Array) -> Array:
        if rows.known_at is None:
            return np.zeros(len(workload), bool)
        begin = workload.origin.unix_start_time
        shift = begin if begin is not None and np.median(rows.known_at) >= UNIX else 0
        late: Array = (place >= 0) & (rows.known_at[place] - shift > workload.submit)
        return late


class Rows(NamedTuple):
    """The rows of a file of predictions, by rising job_id: int64; predictions and times in s."""

    job_id: Array
    predicted: Array
    known_at: Array | None


def read_predictions(file: str, column: str = "predicted") -> Rows:
    """The rows of a file of predictions. Raises PolicyError."""
    path = Path(file)
    if not path.is_file():
        raise PolicyError(f"no file {printable(file)} with predictions", "missing_file")
    note_input(path)
    return _read(path.resolve(), path.stat().st_mtime_ns, column, printable(file))


@functools.lru_cache(maxsize=8)
def _read(path: Path, _modified: int, column: str, where: str) -> Rows:
    from walltime.logs.input import without_panics

    try:
        content = path.read_bytes()
        with without_panics():
            table = pl.read_parquet(content) if content.startswith(b"PAR1") else pl.read_csv(content, infer_schema_length=None)
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise PolicyError(f"{where}: cannot be read as a table of predictions ({reason[:100]})") from error
    missing = [name for name in ("job_id", column) if name not in table.columns]
    if missing:
        known = ", ".join(map(printable, table.columns[:20]))
        raise PolicyError(
            f"{where}: there is no column {' and no '.join(missing)}; a table of predictions has job_id and {column}, not {known}",
            "missing_column",
        )
    if not len(table):
        raise PolicyError(f"{where}: there is no prediction in it")
    numbers = {name: _numbers(table[name], where) for name in ("job_id", column, "known_at") if name in table.columns}
    ids = numbers["job_id"]
    if (bad := ~np.isfinite(ids) | (ids != np.floor(ids)) | (np.abs(ids) >= 2.0**53)).any():
        raise PolicyError(f"{where}: job_id of row {int(bad.argmax()) + 1} is no whole number", "wrong_field")
    order = np.argsort(ids, kind="stable")
    ids = ids[order].astype(np.int64)
    if (twice := ids[1:] == ids[:-1]).any():
        raise PolicyError(f"{where}: job {ids[int(twice.argmax())]} is predicted twice; leave one row", "repeated_job")
    known_at = None
    if "known_at" in numbers:
        known_at = np.where(np.isfinite(numbers["known_at"]), numbers["known_at"], np.inf)[order]
    return Rows(ids, _whole(numbers[column][order]), known_at)


def _numbers(series: pl.Series, where: str) -> Array:
    """Numbers, float64, NaN where there is none; raises PolicyError for what is neither."""
    if series.dtype.is_nested() or series.dtype.is_temporal() or series.dtype in (pl.Binary, pl.Boolean):
        raise PolicyError(f"{where}: {printable(series.name)} holds {series.dtype}, not numbers")
    try:
        return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
    except pl.exceptions.PolarsError:
        read = series.cast(pl.Float64, strict=False)
        place = int((series.is_not_null() & read.is_null()).arg_max() or 0)
        raise PolicyError(
            f"{where}: {printable(series.name)} of row {place + 1} is {series[place]!r}, not a number", "wrong_field"
        ) from None


def _whole(seconds: Array) -> Array:
    """In whole seconds, halves up, int64; -1 for -1 and for what is no number, -2 for what is below 0 otherwise."""
    known = np.isfinite(seconds) & (seconds >= 0)
    whole = np.floor(np.where(known, np.minimum(seconds, 2.0**53), 0) + 0.5)
    below = np.isfinite(seconds) & (seconds < 0) & (seconds != -1)
    return np.where(known, whole, np.where(below, -2, -1)).astype(np.int64)


class Twins(NamedTuple):
    """How predictions order twins: `pairs` with different runtimes and predictions, of which `right` are in the order of the runtimes."""

    pairs: int
    right: int

    @property
    def chance(self) -> float:
        """An upper bound of the probability that a function of earlier jobs has as many right (Hoeffding's inequality)."""
        over = self.right / self.pairs - 0.5 if self.pairs else 0.0
        return math.exp(-2 * self.pairs * over**2) if over > 0 else 1.0

    @property
    def suspicious(self) -> bool:
        """Whether the predictions have seen more than the log had at submission."""
        return self.chance <= SURE


def twins(workload: Workload, requested: Array, runtime: Array, predicted: Array) -> Twins:
    """Compare predictions with runtimes (int64 s, one per job; below 0 for none) over pairs of twins.

    Twins are two jobs of one user with the same request, size, group, executable, queue and partition, submitted within a minute, of which
    the first had not ended when the second came, even if it had started at once. What is known at their submission, from the log and
    from jobs that have ended, is the same for both; so a function of it orders them right in half of the pairs. Each job is in one pair.
    """
    names = [name for name in ("user", "group", "executable", "queue", "partition") if name in workload.columns]
    if "user" not in names:
        return Twins(0, 0)
    keys = [requested, workload.procs, *(workload.columns[name] for name in names)]
    order = np.lexsort((np.arange(len(workload)), *keys))
    same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
    first, second = order[:-1], order[1:]
    gap = workload.submit[second] - workload.submit[first]
    same &= (gap <= TWINS_WITHIN) & (runtime[first] > gap) & (workload.columns["user"][first] >= 0)
    index = np.arange(len(same))
    begin = np.maximum.accumulate(np.where(same & ~np.r_[False, same[:-1]], index, 0))
    pairs = same & ((index - begin) % 2 == 0)
    told = predicted[second] - predicted[first]
    real = runtime[second] - runtime[first]
    pairs &= (told != 0) & (real != 0) & (predicted[first] >= 0) & (predicted[second] >= 0)
    return Twins(int(pairs.sum()), int((pairs & ((told > 0) == (real > 0))).sum()))


def twins_remark(label: str, of: Twins) -> list[str]:
    """The test on twins as a sentence, if the predictions do not pass it."""
    if not of.suspicious:
        return []
    return [
        f"{label} knows more than the log says at submission: of {of.pairs:,} pairs of jobs of one user that are alike in all columns and "
        f"came within a minute, before the first had ended, it puts {100 * of.right / of.pairs:.0f} % in the order of their runtimes, where"
        f" any function of earlier jobs has half (chance: below {max(of.chance, 1e-12):.1g}). Either it has seen the future or job scripts."
    ]
