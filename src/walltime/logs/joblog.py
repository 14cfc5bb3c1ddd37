"""A job log as its reader leaves it: columns, a header and the reader's counts; and the jobs that can be simulated of it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from walltime.errors import LogError, WorkloadError
from walltime.logs.header import Header
from walltime.logs.input import LogFile, unpacked_name
from walltime.logs.rules import Rule
from walltime.wording import printable
from walltime.workload import BELIEVED, MISSING, PROCS, SWF_BY_NAME, Column, Origin, Workload

Array = np.ndarray
Partial = Literal["summary", "parts"]
TooWide = Literal["drop", "clip", "error"]
OWN_NAMES = frozenset({*SWF_BY_NAME, PROCS.name, BELIEVED.name, "job", "and", "or", "not"})
"""Names that additional columns may not have: they have other meanings in workloads and filters."""
_PARTS = (2, 3, 4)
_FIRST = 4096
_CANCELLED = 5
_OWN_ARRAY = ("job_id", "submit", "runtime", "requested")
LIMIT = 2.0**53
"""Below it every whole number is exact in a float64, so that one parser serves all fields."""
_TIMES = ("submit", "runtime", "requested")


@dataclass(frozen=True)
class ReadOptions:
    """What a reader is told besides the file.

    `skip_bad_lines`: skip and list invalid lines, instead of raising LogError. `time_zone`: zone of the local times in a log that
    does not say it, such as Europe/Stockholm, or an offset in seconds; None if unknown.
    """

    skip_bad_lines: bool = False
    time_zone: str | None = None


@dataclass(frozen=True)
class BadLine:
    """A skipped line: its number from 1, the reason, and its text."""

    line: int
    reason: str
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class JobLog:
    """A log whose columns have been read and mapped to the common names by a reader.

    `columns`: by name, one entry per record in the order of the file; those of `walltime.workload.SWF_COLUMNS`, in their units,
    and others under the format's own names (int64 or float64, -1 is unknown). They become read-only int64, or float64 if a
    value is fractional; columns that are -1 everywhere are not stored. `header`: the log's description of itself. `names`: what
    the numbers 1, 2, ... of a column stand for, where the log has names. `dropped, changed, noticed`: the reader's counts, by rule.

    Raises LogError if the columns differ in length or contain invalid values.

    >>> log = JobLog(2, {"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2], "nodes": [1, 1]})
    >>> log.column("user").tolist(), log.to_workload(procs=4).columns["nodes"].tolist()
    ([-1, -1], [1, 1])
    """

    format: ClassVar[str] = "table"
    endings: ClassVar[tuple[str, ...]] = ()
    """file extensions to remove from the name of the log, besides those of packed files"""

    records: int
    columns: Mapping[str, Array]
    header: Header = field(default_factory=lambda: Header({}), kw_only=True)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    bad_lines: tuple[BadLine, ...] = field(default=(), kw_only=True)
    path: str = field(default="log", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    dropped: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    changed: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    noticed: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        given = {name: self._checked(name, values) for name, values in self.columns.items()}
        names = [*(name for name in SWF_BY_NAME if name in given), *(name for name in given if name not in SWF_BY_NAME)]
        object.__setattr__(self, "columns", MappingProxyType({n: given[n] for n in names if _is_known(given[n])}))
        for name, texts in self.names.items():
            if name in self.columns and self.columns[name].max() > len(texts):
                raise LogError(f"{name} has the number {self.columns[name].max()}, and {len(texts)} names")

    def __len__(self) -> int:
        return self.records

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.records:,} records>"

    @property
    def name(self) -> str:
        """File name without directory, the ending of a packed file and the extension of the format."""
        file = Path(self.path).name
        short = unpacked_name(file)
        for ending in self.endings:
            if short.lower().endswith(ending):
                short = short[: -len(ending)]
        return short or file

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The header as lines of the Standard Workload Format."""
        return tuple(f"; {key}: {line}" for key, values in self.header.items() for value in values for line in value.splitlines())

    def all_dropped(self) -> dict[str, int]:
        """What the reader left out, by rule, bad lines among it."""
        return dict(self.dropped) | ({"bad_line": len(self.bad_lines)} if self.bad_lines else {})

    @property
    def further_columns(self) -> tuple[str, ...]:
        """Names of the columns that the Standard Workload Format does not have."""
        return tuple(name for name in self.columns if name not in SWF_BY_NAME)

    def column(self, name: str) -> Array:
        """One column, an entry per record; all -1 if nothing is known. Raises KeyError for an unknown name."""
        if name in self.columns:
            return self.columns[name]
        known = dict.fromkeys([*SWF_BY_NAME, *self.further_columns])
        if name not in known:
            raise KeyError(f"{name} is no field of a log; the fields are {', '.join(known)}")
        return np.broadcast_to(np.int64(MISSING), self.records)

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """The jobs of the log that can be simulated, in order of arrival, with all changes counted in `origin`.

        `procs`: processors of the machine, else MaxProcs or MaxNodes of the header. `partial`: of an interrupted job, keep the
        `summary` or the `parts`. `too_wide`: `drop` jobs wider than the machine, `clip` them to it, or raise an `error`. A job
        has the number of processors allocated or, if unknown, requested; `requested_first` reverses this, which is open in the
        papers. The rules are listed in `walltime.logs.RULES`; if none dropped or moved a record, the workload shares its arrays
        with the log.

        Raises WorkloadError if the size of the machine is unknown, or no job is left.
        """
        return apply_rules(self, procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)

    def may_have(self, name: str) -> bool:
        """Whether a column may have this name."""
        return name in SWF_BY_NAME or is_further_name(name)

    def _checked(self, name: str, values: Array) -> Array:
        if not self.may_have(name):
            raise LogError(f"{name} is no field of a log; the fields are {', '.join(SWF_BY_NAME)}", "unknown_column")
        array = np.asarray(values)
        if array.shape != (self.records,):
            raise LogError(f"{name} has shape {array.shape}; it must have one entry for each of the {self.records} records", "wrong_length")
        if array.dtype.kind not in "iuf":
            raise LogError(f"{name} holds {array.dtype}; it must hold numbers", "wrong_type")
        for mask, what in faults(SWF_BY_NAME.get(name) or Column(name, "float64", "", ""), array):
            if mask.any():
                row = int(np.argmax(mask))
                raise LogError(f"{name} of record {row + 1} is {array[row]}, it {what}", "wrong_field")
        if array.dtype != np.int64:
            array = narrowed(array)
        array = array.view()
        array.flags.writeable = False
        return array


def _is_known(values: Array) -> bool:
    """Whether anything but -1 is in a column; mostly the first values tell."""
    return bool((values[:_FIRST] != MISSING).any() or (values[_FIRST:] != MISSING).any())


def is_further_name(name: str) -> bool:
    """Whether this is a valid name for a non-standard column: lower case, and usable in a filter."""
    return name.isidentifier() and name == name.lower() and name not in OWN_NAMES


@dataclass(frozen=True)
class LogFormat:
    """A format of job logs: its name, and how files are recognized and read.

    `title`: its name in messages. `endings`: file extensions, in lower case and without `.gz`, such as `.swf`; they decide if
    no format recognizes the content. `head`: what is looked for in the first bytes of a file (up to 512 KiB, decompressed). `read`: reads a
    file, with `ReadOptions`; an invalid line is a LogError that names it, unless bad lines are skipped. `rules`: those that the reader
    itself counts. `is_one`: where `head` does not suffice, whether these bytes are in this format. `needs_head`: an extension alone
    does not make a file one of this format.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    head: re.Pattern[bytes]
    read: Callable[[LogFile, ReadOptions], JobLog]
    rules: tuple[Rule, ...] = ()
    is_one: Callable[[bytes], bool] = lambda head: True
    needs_head: bool = False


def faults(column: Column, values: Array) -> Iterator[tuple[Array, str]]:
    """Which values (float64 or int64) are invalid in a column, as masks with the reason; whole numbers that are valid need none."""
    if values.dtype == np.int64 and values.min(initial=0) >= MISSING and values.max(initial=0) < LIMIT:
        return
    yield ~((values > -LIMIT) & (values < LIMIT)), "is not a number below 2**53"
    if column.dtype == "int64" and column.unit != "s":
        yield values != np.floor(values), "must be a whole number"
    if column.name in _TIMES:
        yield (values < 0) & (values != MISSING), "is negative, only -1 (unknown) may be"


def narrowed(values: Array) -> Array:
    """The values as int64 if all are whole, else as float64 (a copy)."""
    whole = values.astype(np.int64)
    if values.dtype == np.int64:
        return whole
    return whole if (whole == values).all() else values.astype(np.float64)


def apply_rules(log: JobLog, *, procs: int | None, partial: Partial, too_wide: TooWide, requested_first: bool) -> Workload:
    """Build a workload from a log; see `walltime.logs.joblog.JobLog.to_workload`."""
    if partial not in get_args(Partial):
        raise WorkloadError(f"partial is {partial!r}; it must be 'summary' or 'parts'", "unknown_rule")
    if too_wide not in get_args(TooWide):
        raise WorkloadError(f"too_wide is {too_wide!r}; it must be 'drop', 'clip' or 'error'", "unknown_rule")
    machine = _machine_procs(log, procs)
    times = _Times.of(log)
    width = _width(log, requested_first)
    dropped = log.all_dropped()
    records = log.records + sum(dropped.values())
    kept = np.ones(log.records, bool)
    for name, mask in _reasons_to_drop(log, times, width, partial):
        _drop(name, mask, kept, dropped)
    wide = kept & (width > machine)
    if too_wide == "drop":
        _drop("too_wide", wide, kept, dropped)
    elif too_wide == "error" and wide.any():
        first = int(np.argmax(wide))
        what = f"job {log.column('job_id')[first]} needs {width[first]} processors, the machine has {machine}"
        raise WorkloadError(f"{printable(log.path)}: {what}; give it more with procs=N", "job_too_wide")
    elif wide.any():
        width = np.minimum(width, machine)
    if not kept.any():
        counts = ", ".join(f"{count} {name}" for name, count in dropped.items())
        raise WorkloadError(
            f"{printable(log.path)}: none of the {records} records is a job that can be simulated ({counts}); give another log",
            "no_jobs_left",
        )

    ids, new_ids = _distinct_ids(log.column("job_id"), kept)
    behind = np.zeros(log.records, bool)
    if (times.submit[1:] < times.submit[:-1]).any():
        behind[kept] = times.submit[kept] < np.maximum.accumulate(times.submit[kept])
    estimated = times.requested > 0
    requested = np.where(estimated, times.requested, np.maximum(times.runtime, 1)) if not estimated[kept].all() else times.requested
    allocated, asked = log.column("allocated_procs"), log.column("requested_procs")
    changed = {
        "clipped_to_machine": wide & kept,
        "runtime_as_estimate": ~estimated,
        "rounded_time": times.rounded,
        "reordered": behind,
        **new_ids,
    }
    noticed = {
        "zero_runtime": times.runtime == 0,
        "runtime_over_estimate": times.runtime > requested,
        "procs_differ": (allocated > 0) & (asked > 0) & (allocated != asked),
    }
    chosen = _order_of_arrival(kept, times.submit, ids)
    pick = _Pick(chosen)
    requested = pick(requested)
    return Workload(
        job_id=pick(ids),
        submit=pick(times.submit),
        runtime=pick(times.runtime),
        requested=requested,
        procs=pick(width),
        machine_procs=machine,
        believed=requested,
        columns=_other_columns(log, times, pick),
        origin=Origin(
            name=log.name,
            sha256=log.sha256,
            records=records,
            dropped=dropped,
            changed=dict(log.changed) | _counts(changed, kept),
            noticed=dict(log.noticed) | _counts(noticed, kept),
            header=log.header_lines,
            unix_start_time=log.header.unix_start_time,
            time_zone=log.header.time_zone,
            names={name: texts for name, texts in log.names.items() if name in log.columns},
        ),
        order=chosen if chosen is not None and (np.diff(chosen) < 0).any() else None,
    )


class _Times(NamedTuple):
    """The times of a log in whole seconds, int64, and which records had fractional ones."""

    submit: Array
    runtime: Array
    requested: Array
    others: Mapping[str, Array]
    rounded: Array

    @classmethod
    def of(cls, log: JobLog) -> _Times:
        rounded = np.zeros(log.records, bool)
        whole = {}
        for name in ("submit", "runtime", "requested", "wait", "think_time"):
            values = log.column(name)
            if values.dtype == np.float64:
                low = np.floor(values)
                rounded |= values != low
                whole[name] = (low + (values - low >= 0.5)).astype(np.int64)
                if name == "requested":
                    whole[name][(values > 0) & (values < 1)] = 1
            else:
                whole[name] = values
        return cls(whole.pop("submit"), whole.pop("runtime"), whole.pop("requested"), whole, rounded)


class _Pick:
    """Takes the chosen entries of an array, or the array itself if all are chosen in order."""

    def __init__(self, chosen: Array | None) -> None:
        self.chosen = chosen

    def __call__(self, values: Array) -> Array:
        return values if self.chosen is None else values[self.chosen]


def _machine_procs(log: JobLog, procs: int | None) -> int:
    if procs is None:
        size = log.header.machine_procs
        if size is None:
            use = highest_use(log)
            busy = 0 if use is None else use.most
            hint = f"; at most {busy:,} processors were busy at once in this log" if busy else ""
            raise WorkloadError(
                f"{printable(log.path)}: the header does not give the size of the machine (MaxProcs, MaxNodes); pass it with procs=N{hint}",
                "unknown_machine_size",
            )
        return size
    try:
        size = operator.index(procs)
    except TypeError:
        raise WorkloadError(
            f"the number of processors must be a whole number, not {procs!r}; pass another with procs=N", "wrong_type"
        ) from None
    if size < 1:
        raise WorkloadError(f"the machine must have at least 1 processor, not {size}; pass another with procs=N", "number_out_of_range")
    return size


class HighestUse(NamedTuple):
    """How much of a machine was in use at once at most, in a log, and for how many seconds in sum."""

    most: int
    seconds: int


def highest_use(log: JobLog, column: str | None = None) -> HighestUse | None:
    """The highest use in the schedule that a log recorded, of processors or of what this column counts, such as `nodes`.

    None if no job of the log has a start, a runtime and a size.
    """
    submit, wait, runtime = (np.asarray(log.column(name), np.float64) for name in ("submit", "wait", "runtime"))
    size = _width(log, requested_first=False) if column is None else log.column(column)
    ran = (submit >= 0) & (wait >= 0) & (runtime > 0) & (size > 0)
    if not ran.any():
        return None
    start, used = (submit + wait)[ran], size[ran].astype(np.int64)
    times = np.concatenate([start + runtime[ran], start])  # at the same time ends come first
    order = np.argsort(times, kind="stable")
    busy = np.cumsum(np.concatenate([-used, used])[order])
    most = int(busy.max())
    lasting = np.diff(times[order], append=times[order][-1])
    return HighestUse(most, int(lasting[busy == most].sum()))


def widest(log: JobLog) -> int:
    """The processors of the widest job of a log."""
    return int(_width(log, requested_first=False).max(initial=0))


def _width(log: JobLog, requested_first: bool) -> Array:
    """Processors of each record: the first of the two numbers that is positive; 0 or less if neither is."""
    first, second = log.column("allocated_procs"), log.column("requested_procs")
    if requested_first:
        first, second = second, first
    return first if (first > 0).all() else np.where(first > 0, first, second)


def _reasons_to_drop(log: JobLog, times: _Times, width: Array, partial: Partial) -> list[tuple[str, Array]]:
    status, ids = log.column("status"), log.column("job_id")
    part = (status >= min(_PARTS)) & (status <= max(_PARTS))
    cancelled = status == _CANCELLED
    reasons = []
    if part.any() and partial == "summary":
        summarised = part & np.isin(ids, ids[~part])
        reasons += [("partial_execution", summarised), ("partial_execution_without_summary", part & ~summarised)]
    elif part.any():
        reasons += [("partial_execution_summary", ~part & np.isin(ids, ids[part]))]
    return [
        *reasons,
        ("cancelled_before_start", cancelled & ((times.runtime <= 0) | (width <= 0))),
        ("unknown_submit", times.submit < 0),
        ("unknown_runtime", times.runtime < 0),
        ("no_processors", width <= 0),
    ]


def _drop(name: str, mask: Array, kept: Array, dropped: dict[str, int]) -> None:
    hit = mask & kept
    count = int(np.count_nonzero(hit))
    if count:
        dropped[name] = count
        kept &= ~hit


def _distinct_ids(ids: Array, kept: Array) -> tuple[Array, dict[str, Array]]:
    """Job numbers without repetition among the kept records, and which of them are new."""
    unknown = kept & (ids < 0)
    if not unknown.any() and (ids[1:] > ids[:-1]).all():
        return ids, {}
    rows = np.flatnonzero(kept & ~unknown)
    repeated = np.zeros(len(ids), bool)
    if (ids[rows][1:] <= ids[rows][:-1]).any():
        repeated[rows] = True
        repeated[rows[np.unique(ids[rows], return_index=True)[1]]] = False
    new = np.flatnonzero(unknown | repeated)
    if len(new):
        ids = ids.copy()
        ids[new] = max(int(ids.max()), 0) + 1 + np.arange(len(new))
    return ids, {"unknown_id": unknown, "duplicate_id": repeated}


def _order_of_arrival(kept: Array, submit: Array, ids: Array) -> Array | None:
    """Rows of the kept records by submission, then job number; None if that is every record in file order."""
    whole = bool(kept.all())
    rows = np.flatnonzero(kept) if not whole else None
    at, number = (submit, ids) if rows is None else (submit[rows], ids[rows])
    later = at[1:] > at[:-1]
    if not later.all():
        later |= (at[1:] == at[:-1]) & (number[1:] > number[:-1])
    if later.all():
        return rows
    order = np.lexsort((number, at))
    return order if rows is None else rows[order]


def _other_columns(log: JobLog, times: _Times, pick: _Pick) -> dict[str, Array]:
    columns = {}
    for name, stored in log.columns.items():
        if name in _OWN_ARRAY:
            continue
        values = pick(times.others.get(name, stored))
        if _is_known(values):
            columns[name] = values.astype(SWF_BY_NAME[name].dtype, copy=False) if name in SWF_BY_NAME else values
    return columns


def _counts(masks: Mapping[str, Array], kept: Array) -> dict[str, int]:
    counts = {name: int(np.count_nonzero(mask & kept)) for name, mask in masks.items()}
    return {name: count for name, count in counts.items() if count}


class BadLines:
    """Collects bad lines, or raises LogError at the first one."""

    def __init__(self, file: LogFile, options: ReadOptions, what: str = "line") -> None:
        self.file, self.options, self._what = file, options, what
        self.lines: list[BadLine] = []

    def add(self, line: int, reason: str, text: str) -> None:
        """Note a bad line, or raise LogError that names it."""
        if not self.options.skip_bad_lines:
            place = f"{self.file.where}:{line}" if self._what == "line" else f"{self.file.where}: {self._what} {line}"
            raise LogError(f"{place}: {reason}; repair the {self._what}, or leave bad lines out with skip_bad_lines=True", "bad_line")
        self.lines.append(BadLine(line, reason, text))
