"""Write files of schedules atomically, and read the schedules of any simulator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from walltime.dataframes import pl
from walltime.declared import FORMER_NAMES
from walltime.errors import LogError, OutputError, WalltimeError
from walltime.files import whole_file, write_as_parquet
from walltime.provenance import provenance
from walltime.workload import INTERRUPTED, LIMIT, SCHEDULE_COLUMNS, Array, Origin, Workload

FORMATS = (".csv", ".parquet", ".swf", ".swf.gz")
NEEDED = ("job_id", "start", "end")
KINDS = ("immediate", "reserved", "backfilled")
"""The kinds of start, in the order of their numbers in the column `kind`."""
FURTHER = (LIMIT.name, INTERRUPTED.name)
NAMES = (*(column.name for column in SCHEDULE_COLUMNS), *FURTHER)


def schedule_table(columns: Mapping[str, Array]) -> pl.DataFrame:
    """Return the columns of a schedule (`Schedule.columns`) as a table, one row per job by arrival."""
    return pl.DataFrame({name: columns[name] for name in NAMES if name in columns or name not in FURTHER})


def table_of_jobs(workload: Workload, columns: Mapping[str, Array]) -> pl.DataFrame:
    """Return a schedule with the log's columns, as `walltime.Schedule.table` describes it."""
    origin = workload.origin
    table = schedule_table(columns).with_columns(
        kind=pl.Series([*KINDS]).gather(columns["kind"]).cast(pl.Enum(KINDS)),
        reserved_start=pl.when(pl.col("reserved_start") >= 0).then("reserved_start"),
        wait=pl.col("start") - pl.col("submit"),
    )
    logged = []
    for name, values in workload.columns.items():
        column = pl.Series("recorded_wait" if name == "wait" else name, values)
        if texts := origin.names.get(name):
            names = pl.Series([None, *texts], dtype=pl.String)
            column = names.gather(np.clip(values, 0, len(texts))).cast(pl.Categorical).alias(name)
        if column.name not in table.columns:
            logged.append(column)
    if origin.unix_start_time is not None:
        logged += [_local_times(origin, columns[name]).alias(f"{name}_time") for name in ("submit", "start", "end")]
    return table.with_columns(logged)


def _local_times(origin: Origin, seconds: Array) -> pl.Series:
    """Return times of the simulation, s from the start of the log, in the site's local time."""
    times = pl.from_epoch(pl.Series(seconds + origin.unix_start_time, dtype=pl.Int64))
    zone = origin.tzinfo()
    if isinstance(zone, ZoneInfo):
        return times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone.key).dt.replace_time_zone(None)
    return times + zone.utcoffset(None)


def output_format(path: Path) -> str:
    """Return the format of a file by its extension; raises OutputError for an unknown one."""
    for ending in FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    raise OutputError(f"{path}: unknown extension for a schedule. Valid options: {', '.join(FORMATS)}", "unknown_file_extension")


def write_schedule(path: Path, workload: Workload, columns: Mapping[str, Array], **settings: Any) -> Path:
    """Write a schedule as CSV, Parquet (its provenance in the file's metadata) or SWF (simulated submission, wait and run time).

    `columns`: as in `Schedule.columns`. `settings`: the settings of the run, for the provenance. Raises OutputError for an unwritable file
    or extension.
    """
    if not output_format(path).startswith(".swf"):
        return write_table(path, schedule_table(columns), workload, **settings)
    from walltime.logs import write_swf

    header = [f"; Note: simulated schedule, {json.dumps(provenance(workload, **settings))}"]
    simulated = {name: columns[name] for name in ("submit", "runtime")} | {"wait": columns["start"] - columns["submit"]}
    write_swf(path, workload, **simulated, extra_header=header)
    return path


def write_table(path: Path, table: pl.DataFrame, workload: Workload, **settings: Any) -> Path:
    """Write a table as CSV, or by its extension as Parquet with its provenance in the file's metadata. Raises OutputError."""
    record = json.dumps(provenance(workload, **settings))
    with whole_file(path) as file:
        if path.name.lower().endswith(".csv"):
            table.write_csv(file)
        else:
            write_as_parquet(table, file, metadata={"walltime": record})
    return path


def read_schedule(path: str | Path, mapping: str | Path | None = None, jobs: Workload | None = None) -> dict[str, Array]:
    """Read a schedule from any simulator: CSV or Parquet with at least `job_id, start, end`, or SWF with wait and run time.

    `mapping`: the meaning of the columns of another table, a TOML file as for `walltime.read`, or the name of a shipped one; files with the
    columns above, and `_jobs.csv` of Batsim, do not need it. `jobs`: the workload. The times of such a table are shifted to its clock: by
    dates if both have dates, else so that the submissions of the first common job are equal.

    Returns the file's columns that are in `SCHEDULE_COLUMNS`, int64, in the file's order. Raises LogError, with the line, if the file is
    missing, lacks a column or contains anything but whole numbers.
    """
    path = Path(path)
    if mapping is None:
        return _from_columns(path, jobs)
    try:
        return _from_columns(path, jobs)
    except LogError as error:
        if error.code not in ("missing_column", "unknown_file_extension"):
            raise
    return _mapped(path, mapping, jobs)


def _mapped(path: Path, mapping: str | Path, jobs: Workload | None) -> dict[str, Array]:
    """Return the columns of the jobs that started, from a table with other columns, in the table's order."""
    from walltime.logs import read_log

    log = read_log(path, mapping=mapping)
    if "job_id" not in log.columns:
        raise LogError(f"{mapping}: columns: a schedule needs job_id, to find its jobs in the log; add it", "missing_column")
    numbers, submit, wait, runtime = (np.floor(log.column(name)).astype(np.int64) for name in ("job_id", "submit", "wait", "runtime"))
    begin, shift = log.header.unix_start_time, 0
    if jobs is not None and begin is not None and jobs.origin.unix_start_time is not None:
        shift = begin - jobs.origin.unix_start_time
    elif jobs is not None and (common := np.isin(numbers, jobs.job_id)).any():
        first = int(np.argmax(common))
        shift = int(jobs.submit[jobs.job_id == numbers[first]][0] - submit[first])
    ran = (wait >= 0) & (runtime >= 0) & (numbers >= 0)
    start = submit + wait
    columns = {"job_id": numbers, "submit": submit + shift, "start": start + shift, "end": start + runtime + shift}
    allocated, wanted = log.column("allocated_procs"), log.column("requested_procs")
    columns["procs"] = np.where(allocated > 0, allocated, wanted)
    if (log.column("requested") >= 0).all():
        columns["requested"] = np.floor(log.column("requested"))
    return {name: values[ran].astype(np.int64) for name, values in columns.items()}


def _from_columns(path: Path, jobs: Workload | None = None) -> dict[str, Array]:
    """Return the columns of a schedule in a table with `job_id, start, end`, or in SWF."""
    name = path.name.lower()
    if name.endswith((".swf", ".swf.gz")):
        return _from_swf(path)
    if path.is_dir():
        raise LogError(f"{path}: is a folder; give a schedule file", "directory")
    if not path.exists():
        raise LogError(f"{path}: no such file; check its name", "missing_file")
    try:
        if name.endswith(".parquet"):
            from walltime.logs.input import without_panics

            with without_panics():
                table = pl.read_parquet(path)
        elif name.endswith((".csv", ".csv.gz")):
            table = pl.read_csv(path, infer_schema=False)
        else:
            expected = ".csv, .csv.gz, .parquet, .swf, .swf.gz"
            raise LogError(f"{path}: unknown extension for a schedule. Valid options: {expected}", "unknown_file_extension")
    except pl.exceptions.NoDataError as error:
        raise LogError(f"{path}: is empty; a schedule has one row per job", "empty_file") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeDecodeError) as error:
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise LogError(
            f"{path}: cannot be read as a schedule ({reason}); write the columns job_id, start and end", "damaged_file"
        ) from error
    return columns_of_table(str(path), table, jobs)


BATSIM = {"starting_time": "start", "finish_time": "end", "submission_time": "submit", "requested_number_of_resources": "procs"}
"""Columns of the file `_jobs.csv` of Batsim, in which times are fractions of seconds and jobs have names such as w0!12."""


def columns_of_table(where: str, table: pl.DataFrame, jobs: Workload | None = None) -> dict[str, Array]:
    """Return the columns of a schedule's table, like `read_schedule`; raises LogError, whose message begins with `where`.

    A table of Batsim is recognised. Texts in `job_id` need `jobs`, the workload; the part of a text before `!` is the name of a workload.
    """
    table = table.rename({column: FORMER_NAMES.get(column.strip(), column.strip()) for column in table.columns})
    if set(BATSIM) - {"procs"} <= set(table.columns):
        table = table.drop([one for one in BATSIM.values() if one in table.columns]).rename(BATSIM)
        times = [pl.col(one).cast(pl.Float64, strict=False).round().cast(pl.Int64, strict=False) for one in ("submit", "start", "end")]
        table = table.with_columns(times).drop("requested_time", strict=False)
    missing = [column for column in NEEDED if column not in table.columns]
    if missing:
        raise LogError(
            f"{where}: has no column {', '.join(missing)}; a schedule needs at least {', '.join(NEEDED)}; describe others with a mapping",
            "missing_column",
        )
    if jobs is not None and not table["job_id"].dtype.is_numeric():
        numbers = [_number_of(where, row, text, jobs) for row, text in enumerate(table["job_id"].cast(pl.String).to_list())]
        table = table.with_columns(pl.Series("job_id", numbers, pl.Int64))
    if "kind" in table.columns and not table["kind"].dtype.is_numeric():
        table = table.with_columns(pl.col("kind").replace_strict([*KINDS], [0, 1, 2], default=pl.col("kind"), return_dtype=pl.String))
    return {column: _whole_numbers(where, table[column]) for column in table.columns if column in NAMES}


def _number_of(where: str, row: int, text: str | None, jobs: Workload) -> int:
    """Return the number of a job from a text such as 12, w0!12 or, for a task of an array, 12_3."""
    try:
        return jobs.job_number((text or "").rpartition("!")[2].strip())
    except WalltimeError as error:
        raise LogError(
            f"{where}:{row + 2}: job_id is {text!r}, which is not a job of the log ({error}); give the log of this schedule", "wrong_field"
        ) from error


def _from_swf(path: Path) -> dict[str, Array]:
    from walltime.logs import read_swf

    log = read_swf(path)
    submit, wait, runtime = log.column("submit"), log.column("wait"), log.column("runtime")
    unknown = (wait < 0) | (runtime < 0)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise LogError(
            f"{path}: job {int(log.column('job_id')[i])} has no wait or run time (fields 3 and 4); leave it out", "missing_starts"
        )
    allocated = log.column("allocated_procs")
    columns = {
        "job_id": log.column("job_id"),
        "submit": submit,
        "start": submit + wait,
        "end": submit + wait + runtime,
        "procs": np.where(allocated > 0, allocated, log.column("requested_procs")),
    }
    for name, values in columns.items():
        fraction = values != np.floor(values)
        if fraction.any():
            i = int(np.argmax(fraction))
            raise LogError(f"{path}: {name} of job {columns['job_id'][i]} is {values[i]}; use whole seconds")
    return {name: values.astype(np.int64) for name, values in columns.items()}


def _whole_numbers(path: str, column: pl.Series) -> Array:
    numbers = column.cast(pl.Float64, strict=False)
    whole = column.cast(pl.Int64, strict=False) if column.dtype != pl.String else column.str.strip_chars().cast(pl.Int64, strict=False)
    whole = whole.fill_null(numbers.cast(pl.Int64, strict=False))
    bad = whole.is_null() | ((numbers != numbers.floor()) & numbers.is_not_null())
    if bad.any():
        row = int(bad.arg_max() or 0)
        value = column[row]
        found = "missing" if value is None or value == "" else repr(value)
        raise LogError(f"{path}:{row + 2}: {column.name} is {found}; use whole seconds and numbers", "wrong_field")
    return whole.to_numpy().astype(np.int64)
