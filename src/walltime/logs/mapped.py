"""Read logs from tables (CSV, Parquet, JSON) whose columns a mapping describes."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs import cells, rules
from walltime.logs.batch_systems import NO_LIMIT, Names, make_log, unknown
from walltime.logs.clock import Local, settle, to_unix
from walltime.logs.csv_rows import ROWS_AT_ONCE, Table, csv_tables, places_of
from walltime.logs.input import LogFile, reading
from walltime.logs.joblog import JobLog
from walltime.logs.mapping import SPANS, STATUS, TIMES, UNITS, Source, Status, TableMapping
from walltime.logs.objects import frame_of, holds_objects
from walltime.logs.reader import ReaderState
from walltime.logs.slurm.jobs import NEVER_STARTED, STEP
from walltime.logs.table_file import PARQUET
from walltime.wording import quoted
from walltime.workload import MISSING, SWF_BY_NAME, Array

_NUMBER = f"^{cells.NUMBER.pattern}$"
_STEP = r"^(.+)\.(?:batch|extern|interactive|[0-9]{1,10})$"
"""The number of a step of a job; the group is the job's number."""
_ARRAY_TASK = r"^([0-9]{1,15})(?:_|\[)([0-9]{1,9})\]?(?:\..*)?$"
"""The number of a job array, and of a task in it."""
_ESSENTIAL = {"runtime": ("start", "end"), "wait": ("submit", "start"), "allocated_procs": (), "requested_procs": ()}
"""Values without which a record is not a job, and the times from which a duration can be computed instead."""
_NOTED = (rules.ZONE_UNKNOWN, rules.FLOORED, rules.UNREADABLE_DURATION, rules.UNREADABLE_VALUE, rules.AMBIGUOUS, rules.SKIPPED)
"""The rules that keep a row as a job, but change or flag it."""
_FRACTION = r":[0-9][0-9][.,][0-9]*[1-9]"
_NO_LIMITS = [float(text) for text in cells.NO_LIMITS if cells.NUMBER.fullmatch(text)] + [float("inf")]
_NEVER = 2 * 86_400
"""Times up to this many s since 1970 mean that the event did not happen."""


def read_table(state: ReaderState, mapping: TableMapping, name: str = "the mapping") -> JobLog:
    """Return the log in a table; `name`: the name of the mapping in messages."""
    file = state.file
    is_parquet, is_json = file.head.startswith(PARQUET), holds_objects(file.head)
    state.options = replace(state.options, time_zone=state.options.time_zone or mapping.time_zone)
    state.unit = "record" if is_parquet or is_json else "line"
    sources = mapping.columns.values()
    status = [] if mapping.status is None else [mapping.status.column, mapping.status.exit_code]
    wanted = mapping.wanted
    if is_parquet or is_json:
        tables = _tables_of(file, wanted, name, is_parquet)
    else:
        texts = {*status, *(source.column for source in sources if source.text or source.pattern or source.format)}
        tables = csv_tables(state, wanted, mapping, name, [column for column in wanted if column not in texts])
    reader = _TableReader(state, mapping)
    for table, places in tables:
        reader.add(table, places)
    return reader.log()


def _narrow(values: Array) -> Array:
    """Return the values as int32 if they are whole numbers that fit, to save memory."""
    if values.dtype in (np.float64, np.int64) and (np.abs(values) < 2.0**31).all() and (values == np.floor(values)).all():
        return values.astype(np.int32)
    return values


class _TablePart:
    """Reads some rows of a table according to a mapping. `names`: the names of earlier rows; `ids`: the job numbers as written."""

    def __init__(self, table: pl.DataFrame, mapping: TableMapping, zone: str | None, names: Mapping[str, Names]) -> None:
        self.table, self.mapping, self.zone = table, mapping, zone
        self.rows = len(table)
        self.reasons: dict[int, str] = {}
        self.times: dict[str, Local] = {}
        self.values: dict[str, Array] = {}
        self.noted = {rule: np.zeros(self.rows, bool) for rule in _NOTED}
        self.status = unknown(self.rows)
        self.ids: pl.Series | None = None
        texts = {}
        for name, source in mapping.columns.items():
            if source.text:
                texts[name] = self._texts(source)
            elif name in TIMES:
                self.times[name] = self._times(name, source)
            else:
                self.values[name] = self._numbers(name, source)
        if mapping.status is not None:
            self._read_status(mapping.status)
        self.good = np.ones(self.rows, bool)
        self.good[list(self.reasons)] = False
        for name, column in texts.items():
            self.values[name] = names[name].numbers(column, self.good)

    def _bad(self, source: Source, texts: pl.Series, mask: Array, what: str) -> None:
        for row in np.flatnonzero(mask).tolist():
            self.reasons.setdefault(row, f"{source.column} must be {what}, not {quoted(str(texts[row]))}")

    def _texts(self, source: Source, grouped: bool = True) -> pl.Series:
        """Return the texts of a source, empty where unknown; `grouped`: remove separators of thousands from numbers."""
        if source.column is None:
            return pl.repeat(str(source.constant), self.rows, dtype=pl.String, eager=True)
        texts = cells.plain_texts(self.table[source.column])
        if source.pattern is not None:
            texts = texts.str.extract(source.pattern).fill_null("")
        elif grouped and not source.text:
            texts = cells.plain_numbers(texts, self.mapping.delimiter)
        return texts.set(texts.is_in((*cells.BLANK, str(MISSING)) if source.text else cells.BLANK), "")

    def _numbers(self, name: str, source: Source) -> Array:
        """Return the numbers of a source, scaled by unit and factor, float64; -1 if unknown."""
        if source.otherwise is not None:
            titles = (source.column, source.otherwise)
            first, second = (self._numbers(name, replace(source, column=title, otherwise=None)) for title in titles)
            return np.where(first >= 0, first, second)
        column = None if source.column is None else self.table[source.column]
        scale = source.factor * (UNITS[source.unit] if name in SPANS else 1.0)
        if source.by is not None:
            scale = scale * np.maximum(self._numbers("", Source(source.by, text=False)), 0)
        if column is not None and column.dtype.is_numeric() and source.pattern is None:
            values, bad, free = _read_numbers(name, column)
            values = np.where(values >= 0, values * scale, values)
            self.ids = column if name == "job_id" else self.ids
            return self._checked(name, source, column, values, bad, free)
        texts = self._texts(source)
        fits = texts.str.contains(_NUMBER)
        values = texts.set(~fits, None).cast(pl.Float64, strict=False).fill_null(float(MISSING)).to_numpy().copy()
        bad = ~fits.to_numpy() & ~cells.blank(texts)
        free = cells.without_limit(texts) if name == "requested" else np.zeros(self.rows, bool)
        if name == "job_id":
            self.ids = texts
            if bad.any():  # 17[3], 17_3 and 17.server mean 17; others, such as 0x1f and 2026-17, are unknown
                numbers = texts.str.extract(f"^{cells.JOB_NUMBER}$").cast(pl.Float64, strict=False).fill_null(float(MISSING)).to_numpy()
                values = np.where(bad, numbers, values)
                bad[:] = False
        values = np.where(values >= 0, values * scale, values)
        if name in SPANS and bad.any():
            durations, odd = cells.spans(texts, source.clock or cells.CLOCKS[0])
            values = np.where(bad & ~odd, durations, values)
            bad &= odd
        return self._checked(name, source, texts, values, bad & ~free, free)

    def _checked(self, name: str, source: Source, texts: pl.Series, values: Array, bad: Array, free: Array) -> Array:
        """Check numbers, and return them as float64. `bad`: cells that are not numbers; `free`: requests without a limit."""
        values[free] = NO_LIMIT
        known = SWF_BY_NAME.get(name)
        whole = known is not None and known.dtype == "int64" and known.unit != "s"
        if whole:
            values = np.where(np.abs(values - np.round(values)) < 1e-6, np.round(values), values)
        huge = values >= 2.0**53
        values[huge] = MISSING
        bad |= huge
        broken = (values != np.floor(values)) & ~bad if whole else np.zeros(self.rows, bool)
        others = _ESSENTIAL.get(name)
        if (others is None or (others and set(others) <= self.mapping.columns.keys())) and (values >= 0).any():
            self.noted[rules.UNREADABLE_DURATION if name in SPANS else rules.UNREADABLE_VALUE] |= bad | broken
            return np.where(broken, MISSING, values)
        self._bad(source, texts, bad, "a duration" if name in SPANS else "a number")
        self._bad(source, texts, broken, "a whole number")
        return values

    def _times(self, name: str, source: Source) -> Local:
        column = self.table[source.column] if source.column is not None else None
        if column is not None and column.dtype == pl.Datetime:
            return self._from_datetimes(column)
        if column is not None and source.pattern is None and source.format is None and column.dtype.is_numeric():
            return Local.exact(self._epochs(source, column, *_read_numbers(name, column)[:2]))
        if source.format is not None:
            return self._formatted_times(source, source.format, self._texts(source))
        texts = self._texts(source, grouped=False)
        local, read, own_zone = cells.stamps(texts, self.zone)
        self.noted[rules.ZONE_UNKNOWN] |= read & ~own_zone
        self.noted[rules.FLOORED] |= texts.str.contains(_FRACTION).to_numpy()
        if (read | cells.blank(texts)).all():
            return local
        texts = self._texts(source)
        numbers = texts.set(~texts.str.contains(_NUMBER), None).cast(pl.Float64, strict=False)
        numeric = numbers.is_not_null().to_numpy()
        unix = self._epochs(source, texts, numbers.fill_null(float(MISSING)).to_numpy(), ~(read | numeric | cells.blank(texts)))
        first, last = (np.where(numeric, unix, times) for times in (local.first, local.last))
        return Local(first, last, local.skipped)

    def _formatted_times(self, source: Source, form: str, texts: pl.Series) -> Local:
        empty = cells.blank(texts)
        written = texts.set(pl.Series(empty), None)
        parsed = cells.times_as(written, form)
        self._bad(source, texts, parsed.is_null().to_numpy() & ~empty, f"a time such as {form}")
        if "%Z" not in form:
            return self._from_datetimes(parsed)
        seconds = parsed.dt.epoch("s").fill_null(MISSING).to_numpy()
        offsets = cells.zone_offsets(written.str.extract(cells.ZONE_IN_TEXT), self.zone)
        return Local.exact(np.where(parsed.is_null().to_numpy(), MISSING, seconds - offsets))

    def _epochs(self, source: Source, texts: pl.Series, numbers: Array, bad: Array) -> Array:
        """Return Unix times, int64 s, from numbers in the source's unit (float64, -1 unknown); `bad`: cells that are not times."""
        exact = numbers * UNITS[source.unit]
        unix = np.where(numbers >= 0, np.floor(exact + 1e-6), MISSING)
        self.noted[rules.FLOORED] |= (numbers >= 0) & (exact - unix > 1e-6)
        huge = unix >= 2.0**53
        self._bad(source, texts, bad | huge, "a time such as 2026-11-20 21:33:45, seconds since 1970, or as the key format describes it")
        return np.where(huge, MISSING, unix).astype(np.int64)

    def _from_datetimes(self, column: pl.Series) -> Local:
        kind = column.dtype
        self.noted[rules.FLOORED] |= (column.dt.nanosecond().fill_null(0) > 0).to_numpy()
        if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
            return Local.exact(column.dt.epoch("s").fill_null(MISSING).to_numpy())
        self.noted[rules.ZONE_UNKNOWN] |= column.is_not_null().to_numpy()
        return to_unix(column, self.zone)

    def _read_status(self, status: Status) -> None:
        texts = cells.plain_texts(self.table[status.column])
        words_in_table = texts.unique(maintain_order=True).to_list()
        other = -99 if status.other is None else STATUS[status.other]
        known = [(text, status.kind_of(text)) for text in words_in_table]
        kinds = [kind if kind is not None else MISSING if text in cells.BLANK else other for text, kind in known]
        self.status = texts.replace_strict(words_in_table, kinds, return_dtype=pl.Int64).to_numpy().copy()
        if status.exit_code is not None:
            codes = cells.plain_texts(self.table[status.exit_code])
            failed = codes.str.contains("[1-9]").to_numpy() & ~cells.blank(codes)
            self.status[failed & (self.status == STATUS["completed"])] = STATUS["failed"]
        unnamed = "a state in the mapping (set status.other for all others)"
        self._bad(Source(status.column), texts, self.status == -99, unnamed)

    def columns(self) -> dict[str, Array]:
        """Return the columns, with `submit, eligible, start` as Unix times, and `runtime, requested` in s."""
        values, status = self.values, self.status
        nothing = Local.exact(unknown(self.rows))
        elapsed = np.floor(values.get("runtime", unknown(self.rows))).astype(np.int64)
        times, self.noted[rules.AMBIGUOUS] = settle([self.times.get(name, nothing) for name in TIMES], elapsed)
        self.noted[rules.SKIPPED] = np.logical_or.reduce([nothing.skipped, *(one.skipped for one in self.times.values())])
        if not self.mapping.relative_times and times["submit"].max(initial=MISSING) > _NEVER:
            times = {name: np.where(clock <= _NEVER, MISSING, clock) for name, clock in times.items()}
        submit, eligible, start, end = times.values()
        wait = np.floor(values.pop("wait", unknown(self.rows))).astype(np.int64)
        start = np.where((start < 0) & (submit >= 0) & (wait >= 0), submit + wait, start)
        submit = np.where((submit < 0) & (start >= 0) & (wait >= 0), start - wait, submit)
        runtime = values.pop("runtime", np.full(self.rows, float(MISSING)))
        runtime = np.where((runtime < 0) & (start >= 0) & (end >= start), end - start, runtime)
        runtime = np.where((runtime < 0) & (start < 0) & (status == STATUS["cancelled"]), 0, runtime)
        requested = values.pop("requested", unknown(self.rows))
        requested = np.where((requested > 0) | (requested == NO_LIMIT), requested, MISSING)
        times = {"submit": submit, "start": start} | ({"eligible": eligible} if "eligible" in self.times else {})
        return {**values, **times, "runtime": runtime, "requested": requested}

    def never_started(self, columns: Mapping[str, Array]) -> Array:
        """Return a mask (bool) of the rows of jobs that ended without a start and were not cancelled."""
        idle = (columns["runtime"] == 0) | ((columns["runtime"] < 0) & (self.status == STATUS["failed"]))
        return idle & (columns["start"] < 0) & (self.status != STATUS["cancelled"]) & ("start" in self.times)


class _TableReader:
    """Reads the tables of a file according to a mapping, and joins them into one log."""

    def __init__(self, state: ReaderState, mapping: TableMapping) -> None:
        self.state, self.mapping = state, mapping
        self.rows = 0
        self._names = {name: Names() for name, source in mapping.columns.items() if source.text}
        self._columns: defaultdict[str, list[Array]] = defaultdict(list)
        self._noted: defaultdict[rules.Rule, list[Array]] = defaultdict(list)
        self._ids: list[pl.Series | None] = []
        self._later: dict[int, tuple[int, str]] = {}
        """Rows that are bad unless they are steps of jobs: their line or record number, and the reason."""

    def add(self, table: pl.DataFrame, places: Array) -> None:
        """Read additional rows, with their line or record numbers; bad rows are added to the bad lines, unless they may be steps."""
        try:
            part = _TablePart(table, self.mapping, self.state.options.time_zone, self._names)
        except LogError as error:  # the error concerns the table as a whole
            raise LogError(f"{self.state.file.where}: {error}") from None
        columns = part.columns()
        facts = {"STATUS": part.status, "GOOD": part.good, "NEVER": part.never_started(columns)}
        for name, values in {**columns, **facts}.items():
            self._columns[name].append(_narrow(values))
        for rule, mask in part.noted.items():
            self._noted[rule].append(mask)
        self._ids.append(part.ids)
        for row, reason in sorted(part.reasons.items()):
            if part.ids is not None and part.ids.dtype == pl.String and re.match(_STEP, part.ids[row] or ""):
                self._later[self.rows + row] = int(places[row]), reason
            else:
                self.state.add_bad(int(places[row]), reason, "")
        self.rows += part.rows

    def log(self) -> JobLog:
        """Return the log of the good rows; rows that turn out not to be steps of jobs are added to the bad lines."""
        state, numbers = self.state, [part for part in self._ids if part is not None]
        texts = (
            pl.concat(map(cells.plain_texts, numbers)) if any(one.dtype == pl.String for one in numbers) else pl.Series([""] * self.rows)
        )
        steps, tasks = _steps(texts), _tasks(texts)
        self._ids = []
        for row, (place, reason) in self._later.items():
            if not steps[row]:
                state.add_bad(place, reason, "")
        columns = {name: np.concatenate(self._columns.pop(name)) for name in list(self._columns)}  # releases the parts
        facts = {name: columns.pop(name) for name in list(columns) if name.isupper()}
        kept = facts["GOOD"] & ~steps
        status = facts["STATUS"]
        state.count(STEP, steps)
        state.drop(kept, rules.STILL_PENDING, status == STATUS["pending"])
        state.drop(kept, rules.STILL_RUNNING, status == STATUS["running"])
        state.drop(kept, NEVER_STARTED, facts["NEVER"])
        if not kept.any():
            raise state.no_jobs()
        for rule, masks in self._noted.items():
            if rule is not rules.ZONE_UNKNOWN or state.options.time_zone is None:
                state.count(rule, np.concatenate(masks) & kept)
        columns["status"] = np.where(status >= 0, status, MISSING)
        if tasks is not None and not tasks.keys() & columns.keys():
            columns |= tasks | {"job_id": np.where(tasks["array_job"] >= 0, MISSING, columns["job_id"])}
        columns = columns if kept.all() else {name: values[kept] for name, values in columns.items()}
        names = {name: numbers.texts for name, numbers in self._names.items()}
        return make_log(state, "mapped", columns, names, self.mapping.header, not self.mapping.relative_times)


def _steps(numbers: pl.Series) -> Array:
    """Return a mask (bool) of the records of job steps: their number is `12.batch` or `12.0`, and there is a record of 12."""
    jobs = numbers.str.extract(_STEP)
    has_any = jobs.null_count() < len(jobs)
    step: Array = jobs.is_in(numbers.unique().implode()).fill_null(False).to_numpy() if has_any else np.zeros(len(jobs), bool)
    return step


def _tasks(numbers: pl.Series) -> dict[str, Array] | None:
    """Return the array and task of job numbers such as 52_12 and 52[12]; -1 for other jobs and arrays of one task, None without arrays."""
    if not numbers.str.contains(_ARRAY_TASK).any():
        return None
    pieces = numbers.str.extract_groups(_ARRAY_TASK).struct.unnest()
    arrays, indices = (pieces.to_series(place).cast(pl.Int64).fill_null(MISSING) for place in range(2))
    several = arrays.is_duplicated().to_numpy()
    return {name: np.where(several, part.to_numpy(), MISSING) for name, part in (("array_job", arrays), ("array_task", indices))}


def _read_numbers(name: str, column: pl.Series) -> tuple[Array, Array, Array]:
    """Return a numeric column as float64 (-1 if unknown), and masks of its invalid values and of requests without a limit."""
    values = column.cast(pl.Float64).fill_null(float(MISSING)).to_numpy().copy()
    values[np.isnan(values)] = MISSING
    free = np.isin(values, _NO_LIMITS) if name == "requested" else np.zeros(len(values), bool)
    bad = (((values < 0) & (values != MISSING)) | np.isinf(values)) & ~free
    values[bad] = MISSING
    return values, bad, free


def _tables_of(file: LogFile, wanted: list[str], name: str, is_parquet: bool) -> Iterator[Table]:
    """Yield the rows of a Parquet or JSON file in one or more tables of `ROWS_AT_ONCE`; columns without numbers or times become texts."""
    if is_parquet:
        with reading(file.where):
            places_of(file, list(pl.read_parquet_schema(io.BytesIO(file.content()))), wanted, name)
            frame = pl.read_parquet(io.BytesIO(file.content()), columns=wanted)
    else:
        frame = frame_of(file)
        places_of(file, frame.columns, wanted, name)
        frame = frame.select(wanted)
    for series in frame:
        if not isinstance(series.dtype, pl.Datetime) and (series.dtype.is_nested() or series.dtype == pl.Binary):
            raise LogError(f"{file.where}: {series.name} must contain numbers, texts or times, not {series.dtype}")
    for first in range(0, max(len(frame), 1), ROWS_AT_ONCE):
        rows = frame.slice(first, ROWS_AT_ONCE)
        plain = [one if isinstance(one.dtype, pl.Datetime) or one.dtype.is_numeric() else cells.plain_texts(one) for one in rows]
        yield pl.DataFrame(plain), np.arange(first + 1, first + 1 + len(rows))
        if file.progress is not None:
            file.progress(first + len(rows), len(frame), "rows")
