"""Tables, CSV or Parquet, of which a mapping says what the columns mean."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.accounting import (
    NEWLINE_IN_TEXT,
    NO_LIMIT,
    STILL_PENDING,
    STILL_RUNNING,
    Counts,
    Names,
    make_log,
    nothing_left,
    quoted,
    text_lines,
    unknown,
)
from walltime.logs.cells import BLANK, JOB_NUMBER, NUMBER, STAMP, blank, plain_numbers, plain_texts, spans, without_limit, zone_offsets
from walltime.logs.clock import AMBIGUOUS, SKIPPED, ZONE_UNKNOWN, Local, settle, to_unix
from walltime.logs.input import LogFile, reading_parquet, without_panics
from walltime.logs.joblog import BadLines, JobLog, ReadOptions
from walltime.logs.mapping import SPANS, STATUS, TIMES, UNITS, Source, Status, TableMapping
from walltime.logs.slurm.jobs import STEP
from walltime.logs.table_file import PARQUET
from walltime.workload import MISSING, SWF_BY_NAME

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

__all__ = ["MappedLog", "Table", "fields_of", "frame_of", "heading_of", "holds_objects", "read_table"]

Array = np.ndarray
ROWS_AT_ONCE = 50_000
_MOST_LINES = 1000
"""A record with more lines is none: a quote was lost."""
_BESIDE = 3
"""With so many words beside a list of objects, an object is a job and no file of jobs."""
_DEEPEST = 6
"""How deep objects and lists in JSON are looked into."""
_STAMP = f"^{STAMP.pattern}$"
_NUMBER = f"^{NUMBER.pattern}$"
_STEP = r"^(.+)\.(?:batch|extern|interactive|\d{1,10})$"
"""The number of a step of a job, and of its job."""
_NAMED_OBJECTS = re.compile(rb'\A\s*+\{\s*+"[^"\n]{1,100}+"\s*+:\s*+\{')
_CLASS_ADS = re.compile(rb"\A(?:\s*+\*\*\*[^\n]*+\n)?+\s*+(?:[A-Za-z]\w*+ = [^\n]*+\r?\n){5}")
_NEVER = 2 * 86_400
"""Times of day up to so many s since 1970 are those of what did not happen."""


@dataclass(frozen=True, eq=False, repr=False)
class MappedLog(JobLog):
    """A log from a table with a mapping; `reading`: how its columns were recognised, if nobody said it."""

    format: ClassVar[str] = "mapped"
    endings: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".ndjson")

    reading: tuple[str, ...] = ()


@dataclass
class Table:
    """The columns of a table that a mapping uses, as texts (or times, from Parquet), and the line or record of each row."""

    columns: dict[str, pl.Series]
    places: list[int]


def read_table(kind: type[JobLog], file: LogFile, options: ReadOptions, mapping: TableMapping, name: str = "the mapping") -> JobLog:
    """The log in a table. `name`: what messages call the mapping."""
    counts = Counts()
    is_parquet, is_json = file.head.startswith(PARQUET), holds_objects(file.head)
    zone = options.time_zone or mapping.time_zone
    bad = BadLines(file, replace(options, time_zone=zone), "record" if is_parquet or is_json else "line")
    wanted = dict.fromkeys(source.column for source in mapping.columns.values() if source.column is not None)
    if mapping.status is not None:
        wanted[mapping.status.column] = None
    if is_parquet or is_json:
        table = (_parquet if is_parquet else _json)(file, list(wanted), name)
    else:
        table = _csv(file, list(wanted), mapping, name, bad, counts)
    reader = _Reader(table, mapping, zone)
    good = reader.read()
    for row in np.flatnonzero(~good).tolist():
        bad.add(table.places[row], reader.reasons[row], "")
    if not good.any():
        raise LogError(nothing_left(bad, counts))
    return reader.log(kind, bad, good, counts)


class _Reader:
    """Reads the columns of a table as a mapping says."""

    def __init__(self, table: Table, mapping: TableMapping, zone: str | None) -> None:
        self.table, self.mapping, self.zone = table, mapping, zone
        self.rows = len(table.places)
        self.reasons: dict[int, str] = {}
        self.times: dict[str, Local] = {}
        self.values: dict[str, Array] = {}
        self.names: dict[str, tuple[str, ...]] = {}
        self.local = np.zeros(self.rows, bool)
        self.status = unknown(self.rows)
        self.steps = np.zeros(self.rows, bool)

    def read(self) -> Array:
        """Read all columns; returns which rows are good, `reasons` has those of the others."""
        texts = {}
        for name, source in self.mapping.columns.items():
            if source.text:
                texts[name] = self._texts(source)
            elif name in TIMES:
                self.times[name] = self._times(name, source)
            else:
                self.values[name] = self._numbers(name, source)
        if self.mapping.status is not None:
            self._read_status(self.mapping.status)
        good = np.ones(self.rows, bool)
        good[list(self.reasons)] = False
        good |= self.steps
        for name, column in texts.items():
            names = Names()
            self.values[name] = names.numbers(column, good)
            self.names[name] = names.texts
        return good

    def _bad(self, source: Source, texts: pl.Series, mask: Array, what: str) -> None:
        for row in np.flatnonzero(mask).tolist():
            self.reasons.setdefault(row, f"{source.column} is {quoted(str(texts[row]))}, {what}")

    def _texts(self, source: Source) -> pl.Series:
        if source.column is None:
            return pl.repeat(str(source.constant), self.rows, dtype=pl.String, eager=True)
        column = self.table.columns[source.column]
        texts = plain_texts(column)
        if source.pattern is not None:
            texts = texts.str.extract(source.pattern).fill_null("")
        elif not source.text:
            texts = plain_numbers(texts, self.mapping.delimiter)
        return texts.set(texts.is_in(BLANK), "")

    def _numbers(self, name: str, source: Source) -> Array:
        """Numbers with unit and factor, float64; -1 unknown."""
        texts = self._texts(source)
        fits = texts.str.contains(_NUMBER)
        values = texts.set(~fits, None).cast(pl.Float64, strict=False).fill_null(float(MISSING)).to_numpy().copy()
        bad = ~fits.to_numpy() & ~blank(texts)
        if name == "job_id":
            self.steps = _steps(texts)
        if name == "job_id" and bad.any():  # 17[3], 17_3 and 17.server are 17; of other names, such as 0x1f and 2026-17, nothing is known
            texts = texts.str.extract(f"^{JOB_NUMBER}$").fill_null("")
            values = texts.cast(pl.Float64, strict=False).fill_null(float(MISSING)).to_numpy().copy()
            bad[:] = False
        scale = source.factor * (UNITS[source.unit] if name in SPANS else 1.0)
        values[values >= 0] *= scale
        if name in SPANS:
            said, odd = spans(texts) if bad.any() else (values, bad)
            values = np.where(bad & ~odd, said, values)
            free = without_limit(texts) if name == "requested" else np.zeros(self.rows, bool)
            values[free] = NO_LIMIT
            bad &= odd & ~free
        known = SWF_BY_NAME.get(name)
        whole = known is not None and known.dtype == "int64" and known.unit != "s"
        if whole:
            values = np.where(np.abs(values - np.round(values)) < 1e-6, np.round(values), values)
        huge = values >= 2.0**53
        values[huge] = MISSING
        self._bad(source, texts, bad | huge, f"it must be {'a length of time' if name in SPANS else 'a number'}")
        if whole:
            self._bad(source, texts, (values != np.floor(values)) & ~bad, "it must be a whole number")
        return values

    def _times(self, name: str, source: Source) -> Local:
        column = self.table.columns[source.column] if source.column is not None else None
        if column is not None and column.dtype == pl.Datetime:
            return self._from_datetimes(column)
        texts = self._texts(source)
        if source.format is not None:
            none = blank(texts)
            parsed = texts.set(pl.Series(none), None).str.to_datetime(source.format, strict=False)
            self._bad(source, texts, parsed.is_null().to_numpy() & ~none, f"it must be a time such as {source.format}")
            return self._from_datetimes(parsed)
        parts = texts.str.extract_groups(_STAMP).struct.unnest()
        joined = parts.to_series(0) + "T" + parts.to_series(1) + parts.to_series(2).fill_null(":00")
        clock = joined.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)
        said = parts.to_series(3)
        own_zone = said.is_not_null().to_numpy()
        local = to_unix(clock, self.zone)
        seconds = clock.dt.epoch("s").fill_null(MISSING).to_numpy()
        read = clock.is_not_null().to_numpy()
        exact = seconds - zone_offsets(said)
        numbers = texts.set(~texts.str.contains(_NUMBER), None).cast(pl.Float64, strict=False)
        numeric = numbers.is_not_null().to_numpy()
        unix = np.floor(numbers.fill_null(float(MISSING)).to_numpy() * UNITS[source.unit] + 1e-6)
        huge = numeric & (unix >= 2.0**53)
        self._bad(
            source,
            texts,
            ~(read | numeric | blank(texts)) | huge,
            "it must be a time such as 2026-11-20 21:33:45 or seconds since 1970; or give its format",
        )
        unix = np.where(numeric & ~huge, unix, MISSING).astype(np.int64)
        self.local |= read & ~own_zone
        first, last = (np.where(numeric, unix, np.where(own_zone & read, exact, times)) for times in (local.first, local.last))
        return Local(first, last, local.skipped & ~own_zone)

    def _from_datetimes(self, column: pl.Series) -> Local:
        kind = column.dtype
        if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
            return Local.exact(column.dt.epoch("s").fill_null(MISSING).to_numpy())
        self.local |= column.is_not_null().to_numpy()
        return to_unix(column, self.zone)

    def _read_status(self, status: Status) -> None:
        texts = plain_texts(self.table.columns[status.column])
        words_in_table = texts.unique(maintain_order=True).to_list()
        other = -99 if status.other is None else STATUS[status.other]
        found = [(text, status.kind_of(text)) for text in words_in_table]
        kinds = [kind if kind is not None else MISSING if text in BLANK else other for text, kind in found]
        self.status = texts.replace_strict(words_in_table, kinds, return_dtype=pl.Int64).to_numpy().copy()
        unnamed = "which the mapping does not name; name it, or the kind of all others with status.other"
        self._bad(Source(status.column), texts, self.status == -99, unnamed)

    def log(self, kind: type[JobLog], bad: BadLines, good: Array, counts: Counts) -> JobLog:
        """The log of the good rows."""
        nothing = Local.exact(unknown(self.rows))
        local = {name: self.times.get(name, nothing) for name in TIMES}
        spent = np.floor(self.values.get("runtime", unknown(self.rows))).astype(np.int64)
        times, is_open = settle(local["submit"], local["eligible"], local["start"], local["end"], spent)
        if not self.mapping.relative_times and times["submit"].max() > _NEVER:
            times = {name: np.where(values <= _NEVER, MISSING, values) for name, values in times.items()}
        submit, eligible, start, end = times.values()
        wait = np.floor(self.values.pop("wait", unknown(self.rows))).astype(np.int64)
        start = np.where((start < 0) & (submit >= 0) & (wait >= 0), submit + wait, start)
        submit = np.where((submit < 0) & (start >= 0) & (wait >= 0), start - wait, submit)
        runtime = self.values.pop("runtime", np.full(self.rows, float(MISSING)))
        runtime = np.where((runtime < 0) & (start >= 0) & (end >= start), end - start, runtime)
        runtime = np.where((runtime < 0) & (start < 0) & (self.status == STATUS["cancelled"]), 0, runtime)
        kept = good & ~self.steps
        counts.add(STEP, self.steps)
        for rule, status in ((STILL_PENDING, STATUS["pending"]), (STILL_RUNNING, STATUS["running"])):
            counts.add(rule, kept & (self.status == status))
            kept &= self.status != status
        if not kept.any():
            raise LogError(nothing_left(bad, counts))
        counts.add(AMBIGUOUS, is_open & kept)
        counts.add(SKIPPED, kept & np.logical_or.reduce([one.skipped for one in local.values()]))
        if bad.options.time_zone is None:
            counts.add(ZONE_UNKNOWN, self.local & kept)
        requested = self.values.pop("requested", unknown(self.rows))
        requested = np.where((requested > 0) | (requested == NO_LIMIT), requested, MISSING)
        columns = {**self.values, "submit": submit, "eligible": eligible, "start": start, "runtime": runtime, "requested": requested}
        columns["status"] = np.where(self.status >= 0, self.status, MISSING)
        columns = {name: values[kept] for name, values in columns.items()}
        return make_log(kind, bad, counts, columns, self.names, self.mapping.header, not self.mapping.relative_times)


def heading_of(file: LogFile, delimiter: str = ",") -> list[str]:
    """The titles of a CSV file, from its first bytes."""
    head = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    try:
        return [title.strip() for title in next(csv.reader(io.StringIO(head), delimiter=delimiter), [])]
    except csv.Error:
        return []


def _places(file: LogFile, titles: Sequence[str], wanted: Sequence[str], name: str) -> list[int]:
    for column in wanted:
        if column not in titles:
            known = ", ".join(titles[:40])
            raise LogError(f"{file.where}: {name} names the column {quoted(column)}, which is not there; the columns are {known}")
    return [list(titles).index(column) for column in wanted]


def _csv(file: LogFile, wanted: Sequence[str], mapping: TableMapping, name: str, bad: BadLines, counts: Counts) -> Table:
    parts: dict[str, list[pl.Series]] = {column: [] for column in wanted}
    block: list[list[str]] = []
    places: list[int] = []

    def store() -> None:
        for k, column in enumerate(wanted):
            parts[column].append(pl.Series(column, [row[k] for row in block], pl.String))
        block.clear()

    first = ""
    fields = 0
    chosen: list[int] = []
    lines = text_lines(file, counts)
    if mapping.comment:
        lines = ((place, text) for place, text in lines if not text.lstrip().startswith(str(mapping.comment)))
    if mapping.titles:
        chosen, fields = _places(file, mapping.titles, wanted, name), len(mapping.titles)
    for place, text, row in _records(lines, mapping.delimiter, counts):
        if not fields:
            titles = [title.strip() for title in row or ()]
            chosen, first, fields = _places(file, titles, wanted, name), text, len(titles)
        elif row is None or len(row) != fields:
            bad.add(place, "a quote is open" if row is None else f"{len(row)} fields instead of {fields}", text)
        elif text != first:  # else it is the heading of a further file that was appended
            block.append([row[k].strip() for k in chosen])
            places.append(place)
            if len(block) >= ROWS_AT_ONCE:
                store()
    store()
    return Table({column: pl.concat(series) for column, series in parts.items()}, places)


def _records(lines: Iterator[tuple[int, str]], delimiter: str, counts: Counts) -> Iterator[tuple[int, str, list[str] | None]]:
    """Records with the number of their first line, and their fields; None where a quote is open.

    A text in quotes may go on in the next lines; but a line that is a whole record is never taken for a part of another one.
    """
    fields = 0
    waiting: list[tuple[int, str]] = []
    for place, text in lines:
        row = fields_of(text, delimiter)
        if waiting and not (row is not None and len(row) == fields):
            joined = "\n".join([*(part for _, part in waiting), text])
            whole = fields_of(joined, delimiter)
            if whole is not None and len(whole) == fields:
                counts.add(NEWLINE_IN_TEXT, 1)
                yield waiting[0][0], joined, whole
                waiting = []
            elif len(waiting) < _MOST_LINES:
                waiting.append((place, text))
            else:
                yield from ((at, part, None) for at, part in [*waiting, (place, text)])
                waiting = []
            continue
        yield from ((at, part, None) for at, part in waiting)
        waiting = []
        if row is None and fields:
            waiting = [(place, text)]
        else:
            fields = fields or len(row or ())
            yield place, text, row
    yield from ((at, part, None) for at, part in waiting)


def fields_of(text: str, delimiter: str) -> list[str] | None:
    """The fields of a record; None if it ends within quotes, or has quotes where none may be."""
    if delimiter == " ":
        return text.split()
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True), None)
    except csv.Error:
        return None


def _steps(numbers: pl.Series) -> Array:
    """Which records are steps of jobs: their number is `12.batch` or `12.0`, and there is a record of 12."""
    job = numbers.str.extract(_STEP)
    if job.null_count() == len(job):
        return np.zeros(len(job), bool)
    step: Array = job.is_in(numbers.unique().implode()).fill_null(False).to_numpy()
    return step


def holds_objects(head: bytes) -> bool:
    """Whether this is the beginning of JSON lines, of an array of objects, or of HTCondor's class ads."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _CLASS_ADS.match(start):
        return True
    return start[:1] == b"{" or (start[:1] == b"[" and start[1:].lstrip()[:1] in (b"{", b"]", b""))


def frame_of(file: LogFile, rows: int | None = None) -> pl.DataFrame:
    """The table in a Parquet or JSON file, or its first rows. Raises LogError."""
    if file.head.startswith(PARQUET):
        with reading_parquet(file.where):
            return pl.read_parquet(io.BytesIO(file.content()), n_rows=rows)
    content = file.content().removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        with without_panics():
            table = _table_of_objects(content)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, RuntimeError, TypeError) as error:
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise LogError(f"{file.where}: cannot be read as JSON ({reason[:100]}); give another file") from error
    return _flat(table if rows is None else table.head(rows))


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """The table with columns in place of objects and lists.

    `a.b` is the entry b of an object, `a.first`, `a.last` and `a.count` are of a list, `a.b.count` counts lists b in a list of objects.
    """
    for _ in range(_DEEPEST):
        if not any(isinstance(series.dtype, pl.Struct | pl.List) for series in table):
            break
        parts: list[pl.Series] = []
        for series in table:
            name, kind = series.name, series.dtype
            if isinstance(kind, pl.Struct):
                parts += [series.struct.field(field.name).alias(f"{name}.{field.name}") for field in kind.fields]
            elif isinstance(kind, pl.List):
                parts += [series.list.first().alias(f"{name}.first"), series.list.last().alias(f"{name}.last")]
                parts.append(series.list.len().alias(f"{name}.count"))
                inner = kind.inner.fields if isinstance(kind.inner, pl.Struct) else []
                for field in inner:
                    if isinstance(field.dtype, pl.List):
                        counted = series.list.eval(pl.element().struct.field(field.name).list.len()).list.sum()
                        parts.append(counted.alias(f"{name}.{field.name}.count"))
            else:
                parts.append(series)
        table = pl.DataFrame(list({one.name: one for one in parts}.values()))
    return table


def _table_of_objects(content: bytes) -> pl.DataFrame:
    if content[:1] not in (b"[", b"{"):
        return _class_ads(content)
    if _NAMED_OBJECTS.match(content):
        named = _named_objects(content)
        if named is not None:
            return named
    try:
        if content[:1] == b"[":
            return pl.read_json(io.BytesIO(content), infer_schema_length=None)
        table = pl.read_ndjson(io.BytesIO(content), infer_schema_length=None)
    except pl.exceptions.ComputeError:  # values of several kinds in one column
        rows = json.loads(content) if content[:1] == b"[" else [json.loads(line) for line in content.splitlines() if line.strip()]
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise
        return _of_rows(rows)
    return _within(table) if len(table) == 1 else table


def _of_rows(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The table of these objects; a column of values of several kinds holds them as texts."""
    columns = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns.append(pl.Series(name, values, strict=False))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError):
            columns.append(pl.Series(name, [None if one is None else json.dumps(one) for one in values], pl.String))
    return pl.DataFrame(columns)


def _class_ads(content: bytes) -> pl.DataFrame:
    """The class ads that `condor_history -long` prints, or that HTCondor's file of its history holds: lines such as `Owner = "ann"`."""
    rows: list[dict[str, str]] = [{}]
    for line in content.decode("utf-8", "replace").splitlines():
        name, sign, value = line.partition(" = ")
        if sign and not line.startswith("***"):
            rows[-1][name.strip()] = value.strip().removeprefix('"').removesuffix('"')
        elif rows[-1]:
            rows.append({})
    return pl.DataFrame([row for row in rows if row], infer_schema_length=None)


def _named_objects(content: bytes) -> pl.DataFrame | None:
    """The table in an object of objects: those of jobs under their numbers, or of columns under their titles; None for JSON lines."""
    try:
        whole = json.loads(content)
    except ValueError:
        return None
    if not all(isinstance(one, dict) for one in whole.values()):
        return None
    numbered = [all(key.isdecimal() for key in one) for one in (whole, *whole.values())]
    if numbered[0] or not all(numbered[1:]):
        return _of_rows(list(whole.values()))
    rows = {name: list(one.values()) for name, one in whole.items()}
    return pl.DataFrame(rows, strict=False) if len({tuple(one) for one in whole.values()}) == 1 else None


def _within(table: pl.DataFrame) -> pl.DataFrame:
    """The table that a single object holds: as a list of objects beside a few words, or as a list of each column."""
    kinds = table.schema
    lists = [name for name, kind in kinds.items() if isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct)]
    if len(lists) == 1 and sum(not kind.is_nested() for kind in kinds.values()) < _BESIDE:
        return table.select(pl.col(lists[0]).explode()).unnest(lists[0])
    if all(isinstance(kind, pl.List) for kind in kinds.values()) and len({len(one[0]) for one in table}) == 1:
        return table.explode(table.columns)
    return table


def _parquet(file: LogFile, wanted: Sequence[str], name: str) -> Table:
    content = file.content()
    with reading_parquet(file.where):
        titles = list(pl.read_parquet_schema(io.BytesIO(content)))
        _places(file, titles, wanted, name)
        table = pl.read_parquet(io.BytesIO(content), columns=list(wanted))
    return _table_of(file, table)


def _json(file: LogFile, wanted: Sequence[str], name: str) -> Table:
    table = frame_of(file)
    _places(file, table.columns, wanted, name)
    return _table_of(file, table.select(wanted))


def _table_of(file: LogFile, table: pl.DataFrame) -> Table:
    columns = {}
    for series in table:
        is_time = isinstance(series.dtype, pl.Datetime)
        if not is_time and (series.dtype.is_nested() or series.dtype == pl.Binary):
            raise LogError(f"{file.where}: {series.name} holds {series.dtype}; it must hold numbers, texts or times")
        columns[series.name] = series if is_time else plain_texts(series)
    return Table(columns, list(range(1, len(table) + 1)))
