"""Logs from the accounting records of batch systems, in Unix times: parts that their formats share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs import clock
from walltime.logs.header import Header
from walltime.logs.input import LogFile, decoded
from walltime.logs.joblog import BadLines, JobLog, Rule
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

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
STILL_PENDING = Rule("still_pending", "drop", "The job had not started when the log was written; waiting tasks of an array are one record.")
STILL_RUNNING = Rule("still_running", "drop", "The job had not ended when the log was written.")
RULES = (
    OTHER_EVENT,
    STILL_PENDING,
    STILL_RUNNING,
    ELIGIBLE_LATER,
    ELIGIBLE_AFTER_START,
    START_BEFORE_SUBMIT,
    UNLIMITED,
    NOT_UTF8,
    NEWLINE_IN_TEXT,
    *clock.RULES,
)
"""Rules of all formats of batch systems."""
FIRST_LINES = rb"(?:\s*+\S[^\n]*+\n){0,2}?\s*+"
"""Start of patterns that match at the beginning of the first, second or third line of a file."""
YEAR = 365 * 86_400
"""Request of a job without a limit, s; Slurm writes the same for a partition without a limit."""
NO_LIMIT = -2
"""Requested time of a job without a limit, until `make_log` replaces it."""


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


class JobRows:
    """The jobs of a log so far."""

    def __init__(self) -> None:
        self._columns: dict[str, list[float]] = {}
        self._texts: dict[str, list[str]] = {}
        self._rows = 0

    def add(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Add a job with the same columns as the others; its Unix times are `submit, eligible, start`, and -1 is unknown."""
        for name, number in numbers.items():
            self._columns.setdefault(name, []).append(number)
        for name, text in texts.items():
            self._texts.setdefault(name, []).append(text)
        self._rows += 1

    def log(self, kind: type[Log], bad: BadLines, counts: Counts) -> Log:
        """Return the log of these jobs. Raises LogError if there are none."""
        if not self._rows:
            raise LogError(nothing_left(bad, counts))
        columns = {name: np.array(values) for name, values in self._columns.items()}
        names = {}
        for name, texts in self._texts.items():
            numbers = Names()
            columns[name], names[name] = numbers.numbers(texts), numbers.texts
        return make_log(kind, bad, counts, columns, names)


def whole(text: str | None, name: str) -> int:
    """Return a whole number; -1 if missing. Raises RecordError for other texts."""
    if not text:
        return MISSING
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise RecordError(f"{name} is {text[:30]!r}; it must be a whole number")
    return int(text)
