"""Parts shared by the readers of batch systems' accounting records, whose times are Unix times."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any

import numpy as np

from walltime.dataframes import pl
from walltime.logs import rules
from walltime.logs.cells import NO_LIMITS
from walltime.logs.joblog import JobLog
from walltime.logs.reader import ReaderState
from walltime.workload import MISSING, Array

FIRST_LINES = rb"(?:\s*+\S[^\n]*+\n){0,2}?\s*+"
"""Prefix of patterns that match at the start of the first, second or third line of a file."""
YEAR = 365 * 86_400
"""The request of a job without a limit, s; Slurm's accounting uses the same value."""
NO_LIMIT = -2
"""The requested time of a job without a limit, until `make_log` replaces it."""
UNREADABLE = -3
"""A value that cannot be read, until `read_runs` counts it and replaces it with -1."""
_WEIGHTS = (1, 60, 3600, 86_400)


def unknown(records: int) -> Array:
    """Return a column of unknown values."""
    return np.full(records, MISSING, np.int64)


def make_log(
    state: ReaderState,
    name: str,
    columns: Mapping[str, Array],
    names: Mapping[str, Sequence[str]],
    header: Mapping[str, Any] | None = None,
    absolute: bool = True,
) -> JobLog:
    """Return the log of the jobs with these columns, in the order of the file; its time 0 is the first submission.

    `name`: the name of the format. The columns include `submit, start` and perhaps `eligible`: Unix times, int64, -1 if unknown; `runtime`:
    s; `requested`: s, NO_LIMIT without a limit. `absolute`: False if times count from an unknown start. Raises LogError without jobs.
    """
    columns = dict(columns)
    submit, eligible, start = columns.pop("submit"), columns.pop("eligible", None), columns.pop("start")
    runtime, requested = columns.pop("runtime"), columns.pop("requested")
    records = len(submit)
    if not records:
        raise state.no_jobs()
    early = (submit >= 0) & (start >= 0) & (start < submit)
    state.count(rules.START_BEFORE_SUBMIT, early)
    submit = np.where(early, start, submit)
    if eligible is not None:
        late = (eligible >= 0) & (start >= 0) & (eligible > start)
        state.count(rules.ELIGIBLE_AFTER_START, late)
        moved = (eligible > submit) & (submit >= 0) & ~late
        state.count(rules.ELIGIBLE_LATER, moved)
        if moved.any():
            columns["held"] = np.where(moved, eligible - submit, 0)
            submit = np.where(moved, eligible, submit)
    free = requested == NO_LIMIT
    state.count(rules.UNLIMITED, free)
    known = submit[submit >= 0]
    begin = int(known.min()) if len(known) else 0
    values = {
        "submit": np.where(submit >= 0, submit - begin, MISSING),
        "wait": np.where((submit >= 0) & (start >= 0), start - submit, MISSING),
        "runtime": runtime,
        "requested": np.where(free, np.maximum(runtime, YEAR), requested),
        **columns,
    }
    used = {}
    for column, texts in names.items():
        values[column], used[column] = only_used(values[column], texts)
    zone = state.options.time_zone or "UTC"
    facts = {"Version": "2.2", "Conversion": f"walltime, from {name}", "MaxRecords": records}
    facts |= {"UnixStartTime": begin} if len(known) and absolute else {}
    facts |= {"TimeZone" if zone.lstrip("+-").isdecimal() else "TimeZoneString": zone, **(header or {})}
    return JobLog(
        records,
        values,
        format=name,
        header_lines=tuple(f"; {key}: {value}" for key, value in facts.items()),
        names={column: texts for column, texts in used.items() if texts},
        bad_lines=tuple(sorted(state.bad_lines, key=lambda one: one.line)),
        path=state.file.path,
        sha256=state.file.sha256,
        dropped=state.dropped,
        dropped_work=state.dropped_work,
        changed=state.changed,
        noticed=state.noticed,
    )


class Names:
    """The names in a column, numbered from 1 as they appear.

    >>> users = Names()
    >>> users.numbers(["bob", "alice", "", "bob"]).tolist(), users.numbers(["carol", "alice"]).tolist(), users.texts
    ([1, 2, -1, 1], [3, 2], ('bob', 'alice', 'carol'))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the names so far; the k-th one has the number k."""
        return tuple(self._numbers)

    def numbers(self, texts: list[str] | pl.Series, rows: Array | None = None) -> Array:
        """Return the number of each text, int64; -1 if it is empty or missing, or outside of `rows` (bool)."""
        series = pl.Series("", texts, pl.String)
        if not len(series):
            return np.zeros(0, np.int64)
        if rows is not None:
            series = series.set(~pl.Series(rows), None)
        series = series.fill_null("")
        distinct = series.unique(maintain_order=True).to_list()
        known = [MISSING if not text else self._numbers.setdefault(text, len(self._numbers) + 1) for text in distinct]
        return series.replace_strict(distinct, known, return_dtype=pl.Int64).to_numpy().copy()


def only_used(numbers: Array, texts: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Drop unused names of a column, number the others by first occurrence, and return the new numbers and names.

    >>> only_used(np.array([3, -1, 1, 3]), ("a", "b", "c"))
    (array([ 1, -1,  2,  1]), ('c', 'a'))
    """
    order = pl.Series(numbers[numbers > 0], dtype=pl.Int64).unique(maintain_order=True).to_numpy()
    table = np.full(len(texts) + 1, MISSING, np.int64)
    table[order] = np.arange(1, len(order) + 1)
    return table[np.maximum(numbers, 0)], tuple(texts[k - 1] for k in order.tolist())


class RecordError(Exception):
    """The line is not a valid record; the message gives the reason."""


class Skip(Exception):  # noqa: N818 (not an error)
    """The record does not describe a run; it is counted under `rule`."""

    def __init__(self, rule: rules.Rule) -> None:
        self.rule = rule


Run = tuple[Mapping[str, float], Mapping[str, str], object]
"""The numbers and the names of a run, and a value that all runs of its job share, None if a job has only one run.

Its Unix times are `submit, eligible, start`; -1 is unknown, `UNREADABLE` a value that cannot be read.
"""


def read_runs(
    state: ReaderState,
    name: str,
    records: Iterable[tuple[int, Any]],
    runs_of: Callable[[Any], Iterable[Run]],
    header: Mapping[str, Any] | None = None,
    absolute: bool = True,
) -> JobLog:
    """Return the log of the runs that `runs_of` finds in each record of a file; all runs must have the same columns.

    `name, header, absolute`: as in `make_log`. Raises LogError if the file has no runs, or a record cannot be read.
    """
    columns: defaultdict[str, list[float]] = defaultdict(list)
    names: defaultdict[str, list[str]] = defaultdict(list)
    runs_of_jobs: defaultdict[object, dict[tuple[float, float], int]] = defaultdict(dict)
    for number, record in records:
        try:
            for numbers, texts, job in runs_of(record):
                row = len(columns["start"])
                if job is not None and runs_of_jobs[job].setdefault((numbers["start"], numbers["runtime"]), row) < row:
                    state.count(rules.REPEATED_RECORD, 1)
                    continue
                odd = {column for column, value in numbers.items() if value == UNREADABLE}
                state.count(rules.UNREADABLE_DURATION, int("requested" in odd))
                state.count(rules.UNREADABLE_VALUE, int(bool(odd - {"requested"})))
                for column, value in numbers.items():
                    columns[column].append(MISSING if column in odd else value)
                for column, text in texts.items():
                    names[column].append(text)
        except Skip as other:
            state.count(other.rule, 1)
        except RecordError as error:
            state.add_bad(number, str(error), record if isinstance(record, str) else str(record)[:200])
    if not columns["start"]:
        raise state.no_jobs()
    state.count(rules.SUBMITTED_AGAIN, sum(_submit_again(columns, list(rows.values())) for rows in runs_of_jobs.values() if len(rows) > 1))
    arrays, used = {column: np.array(values) for column, values in columns.items()}, {}
    widths = [np.maximum(arrays.get(column, 0), 0) for column in ("allocated_procs", "requested_procs")]
    for column, total, (width, spare) in (("memory", "used_mem_mb", widths), ("requested_memory", "requested_mem_mb", widths[::-1])):
        if total in arrays:
            procs = np.maximum(np.where(width > 0, width, spare), 1)
            arrays[column] = np.where(arrays[total] > 0, arrays[total] * 1024 / procs, float(MISSING))
    for column, words in names.items():
        known = Names()
        arrays[column], used[column] = known.numbers(words), known.texts
    return make_log(state, name, arrays, used, header, absolute)


def _submit_again(columns: Mapping[str, list[float]], rows: list[int]) -> int:
    """Move the submission of each later run of a job to the end of the run before it; return how many were moved."""
    submit, start, runtime = (columns[name] for name in ("submit", "start", "runtime"))
    moved = 0
    for earlier, later in pairwise(sorted(rows, key=start.__getitem__)):
        end = start[earlier] + runtime[earlier]
        if start[earlier] >= 0 and submit[later] < end <= start[later]:
            submit[later] = end
            moved += 1
    return moved


def numbered(job: float, task: float | None) -> dict[str, float]:
    """Return the columns for the number of a job, or for the numbers of an array and a task."""
    values = (job, MISSING, MISSING) if task is None else (MISSING, job, task)
    return dict(zip(("job_id", "array_job", "array_task"), values, strict=True))


def whole(text: str | None, name: str) -> int:
    """Parse a whole number; return -1 if it is missing. Raises RecordError for other texts."""
    if not text:
        return MISSING
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise RecordError(f"{name} must be a whole number, not {text[:30]!r}")
    return int(text)


def count_of(text: str | None) -> int:
    """Parse a whole number, perhaps with a fraction of zeros; return -1 if it is missing or negative, `UNREADABLE` for other texts."""
    match = re.fullmatch(r"(-?)([0-9]{1,15})(?:\.0*)?", text or "-1", re.ASCII)
    return UNREADABLE if match is None else MISSING if match[1] else int(match[2])


def seconds_of(text: str | None) -> int:
    """Parse a duration such as 1:02:03:04, 26:00:00 or 90; return s, -1 if it is missing or not positive, else as below.

    >>> [seconds_of(text) for text in ("26:00:00", "90", "", "-1", "UNLIMITED", "soon")] == [93600, 90, -1, -1, NO_LIMIT, UNREADABLE]
    True
    """
    if (text or "").lower() in NO_LIMITS:
        return NO_LIMIT
    parts = [count_of(part or "0") for part in (text or "-1").split(":")]
    if len(parts) > len(_WEIGHTS) or UNREADABLE in parts:
        whole_part, point, fraction = (text or "").rpartition(".")
        return seconds_of(whole_part) if point and fraction.isdecimal() else UNREADABLE
    return max(sum(weight * part for weight, part in zip(_WEIGHTS, reversed(parts), strict=False)), 0) or MISSING


def unix_time(text: str, zone: tzinfo) -> str:
    """Parse a time in one of the forms below, in this zone, and return the Unix time as text; raises RecordError for other texts.

    >>> from datetime import UTC
    >>> forms = "Mon Mar  2 10:00:00 2026", "2026-03-02 10:00:00", "03/02/2026 10:00:00.5", "1772445600"
    >>> [unix_time(text, UTC) for text in forms] == ["1772445600"] * 4
    True
    """
    if re.fullmatch(r"[0-9]+(?:\.0*)?", text, re.ASCII):
        return text.partition(".")[0]
    try:
        day = "%m/%d/%Y %H:%M:%S" if "/" in text else "%a %b %d %H:%M:%S %Y"
        dated = text[:1].isdecimal() and "/" not in text
        time = datetime.fromisoformat(text) if dated else datetime.strptime(text.partition(".")[0], day)
        return str(int((time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()))
    except (ValueError, OverflowError):
        raise RecordError(f"{text[:30]!r} is not a time") from None


def first_known(items: Mapping[str, str], readers: Iterable[tuple[str, Callable[[str], float]]]) -> float:
    """Return the first positive amount among the items, in the order of `readers`, which parse them; -1 if there is none."""
    return next((amount for key, read in readers if key in items and (amount := read(items[key])) > 0), MISSING)
