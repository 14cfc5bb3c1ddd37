"""Logs from the accounting records of batch systems, in Unix times: parts that their formats share."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs import clock
from walltime.logs.cells import NO_LIMITS
from walltime.logs.header import Header
from walltime.logs.input import LogFile, decoded
from walltime.logs.joblog import REPEATED_RECORD, BadLines, JobLog, ReadOptions, Rule
from walltime.workload import MISSING

Array = np.ndarray
Log = TypeVar("Log", bound=JobLog)

ELIGIBLE_LATER = Rule(
    "eligible_later",
    "change",
    "The job was held, or waited for another job or a time, before it could start: its submission is moved to the time from which it "
    "waited for processors; the column `held` has the seconds in between.",
)
ELIGIBLE_AFTER_START = Rule("eligible_after_start", "notice", "In the log, the job became eligible only after its start.")
START_BEFORE_SUBMIT = Rule(
    "start_before_submit", "change", "In the log, the job started before it was submitted: its submission is moved to its start."
)
UNLIMITED = Rule("unlimited", "change", "The job has no time limit: its request is taken as 365 days, or its runtime if that is longer.")
NOT_UTF8 = Rule("not_utf8", "change", "The line holds bytes that are not UTF-8: they are read as Latin-1.")
OTHER_EVENT = Rule(
    "other_event", "drop", "The record is not of the end of a job, but of another event: queued, started, deleted, rerun, a licence."
)
NEWLINE_IN_TEXT = Rule("newline_in_text", "notice", "A text of the job contains line ends, so the record has several lines.")
FLOORED = Rule("floored_time", "change", "A time of day has a fraction of a second: it is rounded down.")
SUBMITTED_AGAIN = Rule(
    "submitted_again",
    "change",
    "The job ran before, and was put back into the queue: each run is a separate job; this one is submitted when the earlier one ends.",
)
UNREADABLE_DURATION = Rule(
    "unreadable_duration", "change", "A request, or another duration that is not essential, cannot be read: it is unknown."
)
UNREADABLE_VALUE = Rule("unreadable_value", "notice", "A value that is not needed for a simulation is unreadable; it is unknown.")
STILL_PENDING = Rule("still_pending", "drop", "The job had not started when the log was written; waiting tasks of an array are one record.")
STILL_RUNNING = Rule("still_running", "drop", "The job had not ended when the log was written.")
RULES = (
    OTHER_EVENT, STILL_PENDING, STILL_RUNNING, ELIGIBLE_LATER, ELIGIBLE_AFTER_START, START_BEFORE_SUBMIT, UNLIMITED, NOT_UTF8,
    NEWLINE_IN_TEXT, FLOORED, UNREADABLE_DURATION, UNREADABLE_VALUE, SUBMITTED_AGAIN, *clock.RULES,
)  # fmt: skip
"""Rules of all formats of batch systems."""
FIRST_LINES = rb"(?:\s*+\S[^\n]*+\n){0,2}?\s*+"
"""Start of patterns that match at the beginning of the first, second or third line of a file."""
YEAR = 365 * 86_400
"""Request of a job without a limit, s; Slurm writes the same for a partition without a limit."""
NO_LIMIT = -2
"""Requested time of a job without a limit, until `make_log` replaces it."""
UNREADABLE = -3
"""A value that cannot be read, until `read_runs` counts it and replaces it by an unknown one."""
_WEIGHTS = (1, 60, 3600, 86_400)


@dataclass
class Counts:
    """The counts of a reader by rule; zeros are not kept."""

    dropped: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)

    def add(self, rule: Rule, what: Array | int) -> None:
        """Add a number of jobs, or the jobs of a mask, to the count of a rule."""
        counts = {"drop": self.dropped, "change": self.changed, "notice": self.noticed}[rule.effect]
        if count := int(np.count_nonzero(what)) if isinstance(what, np.ndarray) else what:
            counts[rule.name] = counts.get(rule.name, 0) + count


def unknown(records: int) -> Array:
    """Return a column of unknown values."""
    return np.full(records, MISSING, np.int64)


def make_log(
    kind: type[Log],
    bad: BadLines,
    counts: Counts,
    columns: Mapping[str, Array],
    names: Mapping[str, Sequence[str]],
    header: Mapping[str, Any] | None = None,
    absolute: bool = True,
) -> Log:
    """Return the log of the jobs with these columns, in the order of the file; it begins with the first submission.

    The columns include `submit, start` and perhaps `eligible`: Unix times, int64, -1 if unknown; `runtime`: s; `requested`: s, NO_LIMIT
    for none. `absolute`: False if times count from an unknown start. Raises LogError if there is no job.
    """
    columns = dict(columns)
    submit, eligible, start = columns.pop("submit"), columns.pop("eligible", None), columns.pop("start")
    runtime, requested = columns.pop("runtime"), columns.pop("requested")
    records = len(submit)
    if not records:
        raise LogError(nothing_left(bad, counts))
    early = (submit >= 0) & (start >= 0) & (start < submit)
    counts.add(START_BEFORE_SUBMIT, early)
    submit = np.where(early, start, submit)
    if eligible is not None:
        late = (eligible >= 0) & (start >= 0) & (eligible > start)
        counts.add(ELIGIBLE_AFTER_START, late)
        moved = (eligible > submit) & (submit >= 0) & ~late
        counts.add(ELIGIBLE_LATER, moved)
        if moved.any():
            columns["held"] = np.where(moved, eligible - submit, 0)
            submit = np.where(moved, eligible, submit)
    free = requested == NO_LIMIT
    counts.add(UNLIMITED, free)
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
    for name, texts in names.items():
        values[name], used[name] = only_used(values[name], texts)
    lines = {"Version": ["2.2"], "Conversion": [f"walltime, from {kind.format}"], "MaxRecords": [str(records)]}
    lines |= {"UnixStartTime": [str(begin)]} if len(known) and absolute else {}
    zone = bad.options.time_zone or "UTC"
    lines |= {"TimeZone" if zone.lstrip("+-").isdecimal() else "TimeZoneString": [zone]}
    lines |= {key: [str(value)] for key, value in (header or {}).items()}
    return kind(
        records,
        values,
        header=Header(lines),
        names={name: texts for name, texts in used.items() if texts},
        bad_lines=tuple(sorted(bad.lines, key=lambda one: one.line)),
        path=bad.file.path,
        sha256=bad.file.sha256,
        dropped=counts.dropped,
        changed=counts.changed,
        noticed=counts.noticed,
    )


def nothing_left(bad: BadLines, counts: Counts) -> str:
    """Return the error message for a file without jobs."""
    if bad.lines and not counts.dropped:
        first = f"the first of {len(bad.lines)} bad lines is line {bad.lines[0].line}: {bad.lines[0].reason}"
        return f"{bad.file.where}: no job record can be read ({first}); give another log"
    dropped = ", ".join(f"{count:,} {rule}" for rule, count in counts.dropped.items())
    what = f"the log has no job that has ended ({dropped})" if dropped else "the log has no job records"
    return f"{bad.file.where}: {what}; give another log"


def text_lines(file: LogFile, counts: Counts) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers; lines that are not UTF-8 are counted."""
    for first, text in file.text_blocks():
        yield from lines_in(first, text, counts)


def lines_in(first: int, text: bytes, counts: Counts) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block whose first line has this number, as `text_lines` does."""
    for number, line in enumerate(text.split(b"\n"), first):
        if line.strip():
            decoded_line, is_utf8 = decoded(line)
            counts.add(NOT_UTF8, int(not is_utf8))
            yield number, decoded_line.rstrip("\r")


class Names:
    """The names in a column, numbered from 1 block by block.

    >>> users = Names()
    >>> users.numbers(["bob", "alice", "", "bob"]).tolist(), users.numbers(["carol", "alice"]).tolist(), users.texts
    ([1, 2, -1, 1], [3, 2], ('bob', 'alice', 'carol'))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """The names so far; the k-th has the number k."""
        return tuple(self._numbers)

    def numbers(self, texts: list[str] | pl.Series, rows: Array | None = None) -> Array:
        """Return the number of each text, int64; -1 for an empty or missing one, and for all outside of `rows` (bool)."""
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
    """Return numbers and names of a column without unused names, numbered again by first occurrence.

    >>> only_used(np.array([3, -1, 1, 3]), ("a", "b", "c"))
    (array([ 1, -1,  2,  1]), ('c', 'a'))
    """
    first = np.full(len(texts) + 2, len(numbers))
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # the last write to a number is its first place; -1 is the last entry
    order = np.argsort(first[1:-1], kind="stable")[: np.count_nonzero(first[1:-1] < len(numbers))] + 1
    if len(order) == len(texts) and (order[1:] > order[:-1]).all():
        return numbers, tuple(texts)
    table = np.full(len(texts) + 1, MISSING, np.int64)
    table[order] = np.arange(1, len(order) + 1)
    return np.where(numbers > 0, table[np.maximum(numbers, 0)], MISSING), tuple(texts[k - 1] for k in order.tolist())


class RecordError(Exception):
    """The line is not a record; the message gives the reason."""


class Skip(Exception):  # noqa: N818 (not an error)
    """The record is not of a run; `rule` counts it."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule


Run = tuple[Mapping[str, float], Mapping[str, str], object]
"""The numbers and the names of a run, and what its job's runs have in common, None if a job has one run.

Its Unix times are `submit, eligible, start`; -1 is unknown, `UNREADABLE` a value that cannot be read.
"""


def read_runs(
    kind: type[Log],
    file: LogFile,
    options: ReadOptions,
    records: Iterable[tuple[int, Any]],
    runs_of: Callable[[Any], Iterable[Run]],
    counts: Counts,
    unit: str = "line",
    **header: Any,
) -> Log:
    """Return the log of the runs in the records of a file, which `runs_of` reads one by one; all runs have the same columns.

    `header`: as for `make_log`. Raises LogError if there is no run, or if a record cannot be read.
    """
    bad = BadLines(file, options, unit)
    columns: defaultdict[str, list[float]] = defaultdict(list)
    names: defaultdict[str, list[str]] = defaultdict(list)
    runs_of_jobs: defaultdict[object, dict[tuple[float, float], int]] = defaultdict(dict)
    for number, record in records:
        try:
            for numbers, texts, job in runs_of(record):
                row = len(columns["start"])
                if job is not None and runs_of_jobs[job].setdefault((numbers["start"], numbers["runtime"]), row) < row:
                    counts.add(REPEATED_RECORD, 1)
                    continue
                odd = {name for name, value in numbers.items() if value == UNREADABLE}
                counts.add(UNREADABLE_DURATION, int("requested" in odd))
                counts.add(UNREADABLE_VALUE, int(bool(odd - {"requested"})))
                for name, value in numbers.items():
                    columns[name].append(MISSING if name in odd else value)
                for name, text in texts.items():
                    names[name].append(text)
        except Skip as other:
            counts.add(other.rule, 1)
        except RecordError as error:
            bad.add(number, str(error), record if isinstance(record, str) else str(record)[:200])
    if not columns["start"]:
        raise LogError(nothing_left(bad, counts))
    counts.add(SUBMITTED_AGAIN, sum(_submit_again(columns, list(rows.values())) for rows in runs_of_jobs.values() if len(rows) > 1))
    arrays, used = {name: np.array(values) for name, values in columns.items()}, {}
    for name, words in names.items():
        known = Names()
        arrays[name], used[name] = known.numbers(words), known.texts
    return make_log(kind, bad, counts, arrays, used, **header)


def _submit_again(columns: Mapping[str, list[float]], rows: list[int]) -> int:
    """Move the submissions of a job's later runs to the ends of the earlier ones; return how many were moved."""
    submit, start, runtime = (columns[name] for name in ("submit", "start", "runtime"))
    moved = 0
    for earlier, later in pairwise(sorted(rows, key=start.__getitem__)):
        end = start[earlier] + runtime[earlier]
        if start[earlier] >= 0 and submit[later] < end <= start[later]:
            submit[later] = end
            moved += 1
    return moved


def numbered(job: float, task: float | None) -> dict[str, float]:
    """Return the columns of a job's number, or of an array's number and a task."""
    values = (job, MISSING, MISSING) if task is None else (MISSING, job, task)
    return dict(zip(("job_id", "array_job", "array_task"), values, strict=True))


def whole(text: str | None, name: str) -> int:
    """Return a whole number; -1 if missing. Raises RecordError for other texts."""
    if not text:
        return MISSING
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise RecordError(f"{name} is {text[:30]!r}; it must be a whole number")
    return int(text)


def count_of(text: str | None) -> int:
    """Return a whole number, perhaps written with a fraction of zeros; -1 if it is missing or negative, `UNREADABLE` for other texts."""
    match = re.fullmatch(r"(-?)([0-9]{1,15})(?:\.0*)?", text or "-1", re.ASCII)
    return UNREADABLE if match is None else MISSING if match[1] else int(match[2])


def seconds_of(text: str | None) -> int:
    """Return a duration such as 1:02:03:04, 26:00:00 or 90, s; -1 if it is missing, 0 or negative, and for others the values below.

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


def first_known(items: Mapping[str, str], readers: Iterable[tuple[str, Callable[[str], int]]]) -> int:
    """Return the first positive amount among items, each read by its function, in this order; -1 if there is none."""
    return next((amount for key, read in readers if key in items and (amount := read(items[key])) > 0), MISSING)
