"""Logs as tables of this program: Parquet, which keeps all facts of a log, or CSV for spreadsheets, which has only the columns."""

from __future__ import annotations

import io
import json
import os
import re
from typing import Any

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.files import whole_file, write_as_parquet
from walltime.logs.batch_systems import Names
from walltime.logs.input import LOG_FACTS, LogFile, reading
from walltime.logs.joblog import JobLog, is_further_name
from walltime.logs.mapping import TEXTS
from walltime.logs.reader import LogFormat, ReaderState
from walltime.wording import quoted
from walltime.workload import MISSING, SWF_BY_NAME, Array

PARQUET = b"PAR1"
_LOOKED_AT = 2**20
_HEAD = re.compile(
    rb"\APAR1|"
    rb"\A(?=[^\n]*\bsubmit\b)(?=[^\n]*\bruntime\b)(?=[^\n]*\b(?:allocated|requested)_procs\b)"
    rb"(?![^\n]*\b(?:start|end|procs|planned|job|and|or|not)\b)[\w\",\x80-\xff]+\r?$",
    re.MULTILINE,
)
"""Parquet, or a heading with columns of a log, but without times of day and reserved names."""
_NUMERIC = ("submit", "runtime", "requested", "allocated_procs", "requested_procs")
_IS_NUMBER = re.compile(r"-?[0-9]*(\.[0-9]+)?")
_CELL = re.compile(r'(?:"(?:[^"]|"")*"|[^,]*)(?:,|$)')
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of texts that spreadsheets take for formulas; texts that begin with an apostrophe get another one."""


def table_of(log: JobLog) -> pl.DataFrame:
    """Return the columns of a log as a table, with names where it has them, null where unknown."""
    columns = {}
    for name, values in log.columns.items():
        if texts := log.names.get(name):
            words = pl.Series(name, [None, *texts], pl.String)
            columns[name] = words.gather(pl.Series(np.maximum(values, 0)))
        else:
            series = pl.Series(name, values)
            columns[name] = series.set(pl.Series(values == MISSING), None)
    return pl.DataFrame(columns)


def write_parquet(path: str | os.PathLike[str], log: JobLog) -> None:
    """Write a log as Parquet, from which the same jobs, names and counts can be read. Raises OutputError."""
    facts = {
        "records": log.records,
        "from": log.format,
        "header": list(log.header_lines),
        "dropped": log.all_dropped(),
        "changed": dict(log.changed),
        "noticed": dict(log.noticed),
    }
    with whole_file(path) as file:
        write_as_parquet(table_of(log), file, metadata={LOG_FACTS: json.dumps(facts)})


def write_csv(path: str | os.PathLike[str], log: JobLog) -> None:
    """Write the columns of a log as CSV; raises OutputError.

    Names that a spreadsheet would take for formulas get an apostrophe in front, and control characters are escaped.
    """
    table = table_of(log)
    safe = {}
    for series in (series for series in table if series.dtype == pl.String):
        distinct = series.unique().drop_nulls().to_list()
        safe[series.name] = series.replace_strict(distinct, [_escaped(text) for text in distinct], default=None, return_dtype=pl.String)
    with whole_file(path) as file:
        table.with_columns(**safe).write_csv(file, quote_style="non_numeric")  # so that a name such as 12 is read as a name


def _escaped(text: str) -> str:
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"'{plain}" if text.startswith(_FORMULA) else plain


def _read(state: ReaderState) -> JobLog:
    file = state.file
    content = file.content()
    facts: dict[str, Any] = {}
    if content.startswith(PARQUET):
        with reading(file.where):
            facts = json.loads(pl.read_parquet_metadata(io.BytesIO(content)).get(LOG_FACTS, "null"))
            table = pl.read_parquet(io.BytesIO(content)) if isinstance(facts, dict) else None
        if table is None:
            raise LogError(f"{file.where}: the table was not written by walltime; describe its columns with mapping=FILE")
    else:
        table = _csv(file, content)
    columns: dict[str, Array] = {}
    names: dict[str, tuple[str, ...]] = {}
    records = len(table)
    for name in table.columns:
        series = table.drop_in_place(name)  # releases its memory
        if not (name in SWF_BY_NAME or is_further_name(name)):
            raise LogError(f"{file.where}: a log cannot have a column {name!r}; describe the columns with mapping=FILE")
        if series.dtype == pl.String and name in SWF_BY_NAME and name not in TEXTS:
            if len(texts := series.drop_nulls()):
                raise LogError(f"{file.where}: {name} must contain numbers, not strings such as {quoted(texts[0])}")
            series = series.cast(pl.Int64)
        if series.dtype == pl.String:
            numbers = Names()
            columns[name] = numbers.numbers(series)
            names[name] = numbers.texts
        elif series.dtype.is_numeric():
            columns[name] = (series.fill_null(MISSING) if series.null_count() else series).to_numpy()
        else:
            raise LogError(f"{file.where}: {name} must contain numbers or names, not {series.dtype}")
    if not records:
        raise LogError(f"{file.where}: the log has no job records; give another log")
    about: dict[str, Any] = {
        name: {str(rule): int(count) for rule, count in facts.get(name, {}).items()} for name in ("dropped", "changed", "noticed")
    }
    about |= {"header_lines": tuple(map(str, facts.get("header", ()))), "names": names, "path": file.path, "sha256": file.sha256}
    try:
        return JobLog(records, columns, format="walltime", **about)
    except LogError as error:
        raise LogError(f"{file.where}: {error}") from None


def is_own_parquet(file: LogFile) -> bool:
    """Return whether this program wrote a Parquet file."""
    with reading(file.where):
        return LOG_FACTS in pl.read_parquet_metadata(io.BytesIO(file.content()))


def _csv(file: LogFile, content: bytes) -> pl.DataFrame:
    titles, *rows = content[:_LOOKED_AT].decode(errors="replace").splitlines()[:1000]
    fields = [[match[0] for match in _CELL.finditer(row)] for row in rows]
    names = [title.strip('"') for title in titles.strip().split(",")]
    quoted = {name: pl.String for k, name in enumerate(names) if any(len(row) > k and row[k][:1] == '"' for row in fields)}
    with reading(file.where, "CSV"):
        table = pl.read_csv(io.BytesIO(content), infer_schema_length=None, schema_overrides=quoted)
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    table = table.with_columns(pl.col(name).str.strip_prefix("'") for name in texts)
    return table.with_columns(pl.col(pl.Int128).cast(pl.Float64))  # numbers beyond int64, which columns cannot hold


def _is_own(head: bytes) -> bool:
    """Return whether at least one of the first rows has numbers where this program writes numbers."""
    if head.startswith(PARQUET):
        return True
    titles, *rows = head.decode(errors="replace").splitlines()[:50]
    numeric = [k for k, title in enumerate(titles.strip().split(",")) if title.strip('"') in _NUMERIC]
    fields = [row.split(",") for row in rows]
    return not rows or any(all(k < len(row) and _IS_NUMBER.fullmatch(row[k]) for k in numeric) for row in fields)


TABLE = LogFormat("walltime", "a table written by walltime convert", (".parquet", ".csv"), _HEAD, _read, is_one=_is_own, needs_head=True)
"""The output of `walltime convert`."""
