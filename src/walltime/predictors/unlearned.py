"""Predictions that do not depend on finished jobs: the runtimes, multiples of the requests, a column of the log, and a file."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from walltime.dataframes import pl
from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.files import note_input
from walltime.predictors.base import Basis, Predictor, below_remark
from walltime.predictors.hindsight import RECORDED, hindsight_remarks, twins_remark
from walltime.wording import counted, printable
from walltime.workload import Array, Workload

UNIX = 10**8
"""Times in a file of at least this are seconds since 1970, if the start of the log is recorded."""


@dataclass(frozen=True)
class ExactRuntime(Predictor):
    """The actual runtime, at least 1 s, as the most accurate prediction; with shortest-job-first backfilling, this is PERFECT++.

    Source: tsafrir07.
    """

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the runtimes."""
        return np.maximum(runtime, 1)


@dataclass(frozen=True)
class UserRequest(Predictor):
    """The user's request, the same as no prediction; for comparisons.

    A multiple is not capped by the request. Source of the factor 2: double_reqtime in gaussier15.
    """

    factor: Annotated[int, Field(least=1)] = 1
    """multiple of the request"""

    @property
    def uncapped(self) -> bool:
        """Return whether the predictions are multiples."""
        return self.factor > 1

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the requests, times the factor."""
        return self.factor * requested


class External(Predictor):
    """Predictions made elsewhere; a negative value stands for the user's request."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the log that it requires: none."""
        return ()

    def remarks(self, workload: Workload, requested: Array, runtime: Array) -> list[str]:
        """Return sentences on missing and negative predictions, and on the tests for the use of future data."""
        predicted = self.predict_all(workload, requested, runtime)
        assert predicted is not None
        none = int((predicted == -1).sum())
        sentence = f"{none:,} of {len(workload):,} jobs have no prediction in {self.label}; the user's request is used for them."
        remarks = [sentence] * bool(none) + below_remark(self.label, np.where(predicted < -1, Basis.BELOW, Basis.OWN))
        columns = (workload, requested, runtime, predicted)
        return remarks + twins_remark(self.label, *columns) + hindsight_remarks(self.label, *columns)


@dataclass(frozen=True)
class LogColumn(External):
    """A column of the log, s, such as `soft_walltime`; -1 for no prediction."""

    positional: ClassVar[tuple[str, ...]] = ("column",)
    column: str
    """the column's name"""

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the column in whole seconds."""
        if self.column in RECORDED:
            raise PolicyError(
                f"the {self.column} of a job is unknown at submission, so it cannot be a prediction; for exact runtimes, use exact",
                "future_column",
            )
        if self.column not in workload.columns:
            known = ", ".join(sorted(workload.columns)) or "none"
            raise PolicyError(f"unknown column of predictions {self.column!r}. Valid columns of this log: {known}", "unknown_column")
        if self.column in workload.origin.names:
            raise PolicyError(f"the column {self.column!r} contains names, not predictions in seconds; give a column of numbers")
        return _whole(workload.columns[self.column])


@dataclass(frozen=True)
class PredictionFile(External):
    """Predictions in a file, CSV or Parquet, with `job_id` and a column of seconds; jobs without a row have no prediction.

    If the file has `known_at` (s in the log, or since 1970), a prediction that was known only after the submission of its job is not used.
    """

    positional: ClassVar[tuple[str, ...]] = ("file",)
    file: str
    """its path"""
    column: str = "predicted"
    """`predicted`, or a quantile such as `p90`"""

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the predictions in whole seconds."""
        rows, place = self._rows_of(workload)
        predicted = np.where(place >= 0, rows.predicted[place], -1)
        return np.where(self._late(workload, rows, place), -1, predicted)

    def remarks(self, workload: Workload, requested: Array, runtime: Array) -> list[str]:
        """Return the remarks of `External`, after a sentence on predictions that were known too late."""
        late = int(self._late(workload, *self._rows_of(workload)).sum())
        sentence = f"Not used: {counted(late, 'prediction')} of {printable(self.file)}, known only after the submission of the job."
        return ([sentence] if late else []) + super().remarks(workload, requested, runtime)

    def _rows_of(self, workload: Workload) -> tuple[Rows, Array]:
        """Return the rows of the file, and the index of each job's row, -1 without one."""
        rows = read_predictions(self.file, self.column)
        place = np.searchsorted(rows.job_id, workload.job_id).clip(max=len(rows.job_id) - 1)
        place = np.where(rows.job_id[place] == workload.job_id, place, -1)
        if len(workload) and (place < 0).all():
            raise PolicyError(
                f"{printable(self.file)} predicts no job of the log: its first job_id is {rows.job_id[0]}, the log's "
                f"{workload.job_id[0]}; use the job numbers of the log",
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
    """The rows of a file of predictions, by ascending job_id: int64; predictions and times in s."""

    job_id: Array
    predicted: Array
    known_at: Array | None


def read_predictions(file: str, column: str = "predicted") -> Rows:
    """Return the rows of a file of predictions; raises PolicyError for an invalid one."""
    path = Path(file)
    if not path.is_file():
        raise PolicyError(f"{printable(file)}: no such file of predictions; check its name", "missing_file")
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
        raise PolicyError(
            f"{where}: not a readable table of predictions ({reason[:100]}); write a CSV or Parquet file with job_id and one more column"
        ) from error
    missing = [name for name in ("job_id", column) if name not in table.columns]
    if missing:
        known = ", ".join(map(printable, table.columns[:20]))
        raise PolicyError(
            f"{where}: no column {' and no '.join(missing)}; a table of predictions needs job_id and {column}, and this one has {known}",
            "missing_column",
        )
    if not len(table):
        raise PolicyError(f"{where}: the table has no rows; write one row per job")
    numbers = {name: _numbers(table[name], where) for name in ("job_id", column, "known_at") if name in table.columns}
    ids = numbers["job_id"]
    if (bad := ~np.isfinite(ids) | (ids != np.floor(ids)) | (np.abs(ids) >= 2.0**53)).any():
        raise PolicyError(f"{where}: job_id of row {int(bad.argmax()) + 1} is not a whole number; correct it", "wrong_field")
    order = np.argsort(ids, kind="stable")
    ids = ids[order].astype(np.int64)
    if (twice := ids[1:] == ids[:-1]).any():
        raise PolicyError(f"{where}: job {ids[int(twice.argmax())]} is predicted twice; keep one row", "repeated_job")
    times = numbers.get("known_at")
    known_at = None if times is None else np.where(np.isfinite(times), times, np.inf)[order]
    return Rows(ids, _whole(numbers[column][order]), known_at)


def _numbers(series: pl.Series, where: str) -> Array:
    """Return a column as float64, NaN for missing values; raises PolicyError for a value that is not a number."""
    if series.dtype.is_nested() or series.dtype.is_temporal() or series.dtype in (pl.Binary, pl.Boolean):
        raise PolicyError(f"{where}: {printable(series.name)} contains {series.dtype}, not numbers; convert it")
    try:
        return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
    except pl.exceptions.PolarsError:
        read = series.cast(pl.Float64, strict=False)
        place = int((series.is_not_null() & read.is_null()).arg_max() or 0)
        raise PolicyError(
            f"{where}: {printable(series.name)} of row {place + 1} is {series[place]!r}, not a number; correct it", "wrong_field"
        ) from None


def _whole(seconds: Array) -> Array:
    """Round to whole seconds, half up, int64; -1 for -1 and for missing numbers, -2 for other negative numbers."""
    known = np.isfinite(seconds) & (seconds >= 0)
    whole = np.floor(np.where(known, np.minimum(seconds, 2.0**53), 0) + 0.5)
    below = np.isfinite(seconds) & (seconds < 0) & (seconds != -1)
    return np.where(known, whole, np.where(below, -2, -1)).astype(np.int64)
