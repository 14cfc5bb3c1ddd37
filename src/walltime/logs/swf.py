"""Logs in the Standard Workload Format 2.2: read with every field and comment, made into a workload, written back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from walltime.errors import LogError, WorkloadError
from walltime.logs.header import Header
from walltime.logs.output import whole_file
from walltime.logs.rules import Partial, TooWide, apply_rules
from walltime.logs.swf_text import BadLine, Comment, faults, narrowed, parse_swf
from walltime.workload import MISSING, SWF_BY_NAME, SWF_COLUMNS, Workload

Array = np.ndarray
_ROWS_AT_ONCE = 8192
_BLANKS = " \t\r\x0b\x0c"


@dataclass(frozen=True, eq=False)
class SwfLog:
    """A log as it stands in its file; two logs are equal if their comments and all 18 fields are.

    `columns`: the fields by name (see `walltime.workload.SWF_COLUMNS`), one entry per record in the order of the file,
    read-only; int64, or float64 where a value is not whole. A field that is -1 (unknown) everywhere is not stored:
    `column` gives it all the same. `comments`: every line that starts with `;`, the header among them. `bad_lines`: what
    was skipped. `sha256`: checksum of the file as it is stored, compressed or not.

    Raises LogError where the columns are not of one length or hold what a log cannot.
    Source: SPEC L-01, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

    >>> log = SwfLog(records=2, columns={"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2]})
    >>> log.column("user").tolist(), log.to_workload(procs=4)
    ([-1, -1], <Workload log: 2 jobs on 4 processors>)
    """

    records: int
    columns: Mapping[str, Array]
    comments: tuple[Comment, ...] = ()
    bad_lines: tuple[BadLine, ...] = ()
    path: str = "log"
    sha256: str = ""

    def __post_init__(self) -> None:
        columns = {name: _column(self.records, name, values) for name, values in self.columns.items()}
        known = {column.name: columns[column.name] for column in SWF_COLUMNS if column.name in columns}
        object.__setattr__(self, "columns", MappingProxyType({n: a for n, a in known.items() if (a != MISSING).any()}))
        object.__setattr__(self, "comments", tuple(sorted(self.comments, key=lambda comment: comment.record)))
        for comment in self.comments:
            _check_comment(comment, self.records)

    def __len__(self) -> int:
        return self.records

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwfLog):
            return NotImplemented
        return (
            self.records == other.records
            and self.comments == other.comments
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(values, other.columns[name]) for name, values in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __repr__(self) -> str:
        return f"<SwfLog {self.name}: {self.records:,} records>"

    @property
    def name(self) -> str:
        """File name without directory and without `.swf` and `.gz`."""
        file = Path(self.path).name
        short = file
        for ending in (".gz", ".swf"):
            if short.lower().endswith(ending):
                short = short[: -len(ending)]
        return short or file

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The comment lines that stand before the first record, as they are in the file."""
        return tuple(comment.text for comment in self.comments if comment.record == 0)

    @cached_property
    def header(self) -> Header:
        """The standard keys of the header with their values; the case of a key does not matter."""
        return Header.parse(self.header_lines)

    def column(self, name: str) -> Array:
        """One of the 18 fields, an entry per record; all -1 where nothing is known. Raises KeyError for an unknown name."""
        if name in self.columns:
            return self.columns[name]
        if name not in SWF_BY_NAME:
            raise KeyError(f"{name} is no field of a log; the fields are {', '.join(SWF_BY_NAME)}")
        return np.broadcast_to(np.int64(MISSING), self.records)

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """The jobs of the log that can be simulated, in order of arrival, all that was done to them counted in `origin`.

        `procs`: processors of the machine, else MaxProcs or MaxNodes of the header. `partial`: of a job that was
        interrupted, keep the `summary` or the `parts`. `too_wide`: `drop` jobs wider than the machine, `clip` them to
        it, or raise an `error`. A job has as many processors as it was allocated, else requested;
        `requested_first` turns that round. The rules are listed in `walltime.logs.RULES`; where none dropped or moved a
        record, the workload shares its arrays with the log.

        Raises WorkloadError where the size of the machine is unknown, or no job is left.
        Source: SPEC L-01, W-22, W-23, Q-02, Q-25, Q-30
        """
        return apply_rules(self, procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all comments and all 18 fields, as gzip if the name ends in `.gz`; what is read back equals this log.

        The file appears when it is complete, and the same log always gives the same bytes. Raises OutputError.
        """
        with whole_file(path) as file:
            for piece in self._pieces():
                file.write(piece.encode())

    def _pieces(self) -> Iterator[str]:
        done = 0
        for comment in self.comments:
            yield from self._rows(done, comment.record)
            yield f"{comment.text}\n"
            done = comment.record
        yield from self._rows(done, self.records)

    def _rows(self, first: int, last: int) -> Iterator[str]:
        for start in range(first, last, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, last)
            fields = [_tokens(self.columns.get(column.name), start, stop) for column in SWF_COLUMNS]
            yield "\n".join(map(" ".join, zip(*fields, strict=True))) + "\n"


def read_swf(path: str | os.PathLike[str], *, skip_bad_lines: bool = False) -> SwfLog:
    r"""Read a log in the Standard Workload Format, plain or gzip, whatever its name.

    `skip_bad_lines` leaves out the lines that are no record and lists them in `bad_lines`.

    Raises LogError, one line that starts with `FILE:LINE:`, where a line has not 18 fields, a field is not a finite
    number (or not whole, where the field counts something), or a submit time, runtime or requested time is negative but
    not -1; and where the file is missing, unreadable, empty, without job records, no text or a damaged gzip file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tiny.swf")
    ...     _ = file.write_text("; MaxProcs: 8\n1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1\n")
    ...     log = read_swf(file)
    >>> log, log.header["MaxProcs"], log.column("requested").tolist()
    (<SwfLog tiny: 1 records>, ('8',), [90])
    """
    text = parse_swf(path, skip_bad_lines=skip_bad_lines)
    return SwfLog(text.records, text.columns, tuple(text.comments), tuple(text.bad_lines), os.fspath(path), text.sha256)


def read(
    path: str | os.PathLike[str],
    *,
    procs: int | None = None,
    skip_bad_lines: bool = False,
    partial: Partial = "summary",
    too_wide: TooWide = "drop",
    requested_first: bool = False,
) -> Workload:
    """Read the jobs of a log: `read_swf`, then `SwfLog.to_workload`, with their options.

    Raises LogError where the file is not a log, WorkloadError where its jobs cannot be simulated.
    """
    log = read_swf(path, skip_bad_lines=skip_bad_lines)
    return log.to_workload(procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)


def write_swf(
    path: str | os.PathLike[str],
    workload: Workload,
    *,
    wait: Array | None = None,
    submit: Array | None = None,
    runtime: Array | None = None,
    extra_header: Sequence[str] = (),
) -> None:
    """Write a workload as a log; read back on its defaults, it gives the same jobs on the same machine.

    `wait, submit, runtime`: int64 seconds, one per job, replace fields 3, 2 and 4 by those of a simulated schedule; the
    records then are in order of that submission. The header is that of the log the workload came from, with MaxProcs of
    the workload's machine, or a minimal one; `extra_header` lines come after it.

    Where a field would make the reader choose otherwise, it follows the job: allocated processors are those of the job
    if the log's numbers lead to others, and the status is -1 if it says part of a job, or cancelled with runtime 0.

    Raises WorkloadError where an array does not fit the jobs, LogError where a header line is no line of text,
    OutputError where the file cannot be written.
    """
    columns = dict(workload.columns)
    columns |= {"job_id": workload.job_id, "submit": workload.submit, "runtime": workload.runtime, "requested": workload.requested}
    for name, values in (("wait", wait), ("submit", submit), ("runtime", runtime)):
        if values is None:
            continue
        columns[name] = np.asarray(values)
        if columns[name].shape != (len(workload),):
            raise WorkloadError(f"{name} has shape {columns[name].shape}; it must have one entry for each of the {len(workload)} jobs")
    unknown = np.full(len(workload), MISSING, np.int64)
    allocated, asked = columns.get("allocated_procs", unknown), columns.get("requested_procs", workload.procs)
    taken = np.where(allocated > 0, allocated, asked)
    columns["allocated_procs"] = np.where(taken == workload.procs, columns.get("allocated_procs", workload.procs), workload.procs)
    columns["requested_procs"] = asked
    status = columns.get("status", unknown)
    columns["status"] = np.where(np.isin(status, (2, 3, 4)) | ((status == 5) & (columns["runtime"] == 0)), MISSING, status)
    header = [*_header(workload), *extra_header]
    comments = tuple(Comment(0, line if line.lstrip(_BLANKS).startswith(";") else f"; {line}") for line in header)
    order = np.lexsort((columns["job_id"], columns["submit"]))
    swf_columns = {name: np.asarray(values)[order] for name, values in columns.items() if name in SWF_BY_NAME}
    SwfLog(len(workload), swf_columns, comments, path=os.fspath(path)).write(path)


def _header(workload: Workload) -> list[str]:
    """Header lines for a workload: those of its origin, or a minimal header; both say the size of the machine."""
    origin, size = workload.origin, workload.machine_procs
    if not origin.header:
        lines = [
            "; Version: 2.2",
            f"; Computer: {' '.join(origin.name.split())}",
            f"; MaxJobs: {len(workload)}",
            f"; MaxRecords: {len(workload)}",
        ]
        if origin.unix_start_time is not None:
            lines.append(f"; UnixStartTime: {origin.unix_start_time}")
        offset = origin.time_zone.lstrip("+-").isdigit()
        lines.append(f"; {'TimeZone' if offset else 'TimeZoneString'}: {origin.time_zone}")
        return [*lines, f"; MaxNodes: {size}", f"; MaxProcs: {size}"]
    if Header.parse(origin.header).machine_procs == size:
        return list(origin.header)
    lines = [f"; Note: the log had {line.strip(_BLANKS + ';')}" if "MaxProcs" in Header.parse([line]) else line for line in origin.header]
    return [*lines, f"; MaxProcs: {size}"]


def _column(records: int, name: str, values: Array) -> Array:
    if name not in SWF_BY_NAME:
        raise LogError(f"{name} is no field of a log; the fields are {', '.join(SWF_BY_NAME)}")
    array = np.asarray(values)
    if array.shape != (records,):
        raise LogError(f"{name} has shape {array.shape}; it must have one entry for each of the {records} records")
    if array.dtype.kind not in "iuf":
        raise LogError(f"{name} holds {array.dtype}; it must hold numbers")
    for mask, what in faults(SWF_BY_NAME[name], array):
        if mask.any():
            row = int(np.argmax(mask))
            raise LogError(f"{name} of record {row + 1} is {array[row]}, it {what}")
    if array.dtype != np.int64:
        array = narrowed(array)
    array = array.view()
    array.flags.writeable = False
    return array


def _check_comment(comment: Comment, records: int) -> None:
    if not 0 <= comment.record <= records:
        raise LogError(f"a comment stands after {comment.record} records, the log has {records}")
    text = comment.text
    if not text.lstrip(_BLANKS).startswith(";") or "\n" in text or "\0" in text or text.endswith("\r"):
        raise LogError(f"{text!r} is no comment; it must be one line of text that starts with a semicolon")


def _tokens(values: Array | None, start: int, stop: int) -> list[str]:
    """The fields of some rows as they are written: the shortest text that gives the same value back."""
    if values is None:
        return [str(MISSING)] * (stop - start)
    numbers = values[start:stop].tolist()
    if values.dtype == np.int64:
        return list(map(str, numbers))
    return [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
