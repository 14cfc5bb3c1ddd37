"""Read and write logs in the Standard Workload Format 2.2, with all fields and comments."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from walltime.errors import LogError, WorkloadError
from walltime.files import whole_file
from walltime.logs import swf_text
from walltime.logs.header import BLANKS, Header, declared_fields, with_max_procs
from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, is_further_name
from walltime.logs.reader import LogFormat, ReaderState, ReadOptions
from walltime.logs.rules import Rule
from walltime.logs.swf_text import FIELDS, HEAD, MOST_FIELDS, Comment, field_column, parse_swf
from walltime.wording import printable
from walltime.workload import MISSING, SWF_BY_NAME, Array, Workload

ENDINGS = (".swf",)
_ROWS_AT_ONCE = 8192
_TESTED_LINES = 200
"""Number of lines from which files of other formats are recognised."""
_NUMBERED = re.compile(r"field[0-9]{1,3}")

MORE_FIELDS = Rule(
    "more_fields", "notice", "The line has known values beyond the 18 fields of the Standard Workload Format, kept as additional columns."
)


@dataclass(frozen=True, eq=False, repr=False)
class SwfLog(JobLog):
    """A log in the Standard Workload Format; two logs are equal if their comments and all fields are.

    `columns`: the fields by name (see `walltime.workload.SWF_COLUMNS`), one entry per record in the order of the file,
    read-only; int64, or float64 if a value is fractional. A field that is -1 (unknown) everywhere is not stored, but `column`
    returns it. `comments`: all lines that start with `;`, including the header. `further`: the names of the fields beyond the
    18th, in order, if there are any; a field with texts is a column of names. `layout`: the known layout of these fields, such
    as `MetaCentrum/CERIT`, or empty. `bad_lines`: the skipped lines. `sha256`: checksum of the file as stored, compressed or not.

    Raises LogError if the columns differ in length or contain invalid values. Source:
    https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

    >>> log = SwfLog(records=2, columns={"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2]})
    >>> log.column("user").tolist(), log.to_workload(procs=4)
    ([-1, -1], <Workload log: 2 jobs on 4 processors>)
    """

    format: str = field(default="swf", kw_only=True)
    endings: tuple[str, ...] = field(default=ENDINGS, kw_only=True)
    header_lines: tuple[str, ...] = field(init=False)
    """The comment lines before the first record, as in the file."""
    comments: tuple[Comment, ...] = ()
    further: tuple[str, ...] = ()
    layout: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "comments", tuple(sorted(self.comments, key=lambda comment: comment.record)))
        for comment in self.comments:
            _check_comment(comment, self.records)
        object.__setattr__(self, "header_lines", tuple(comment.text for comment in self.comments if comment.record == 0))
        super().__post_init__()
        further = [self.columns[name] != MISSING for name in self.further if name in self.columns]
        if further:
            object.__setattr__(self, "noticed", dict(self.noticed) | {MORE_FIELDS.name: int(np.logical_or.reduce(further).sum())})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwfLog):
            return NotImplemented
        mine, theirs = (
            (log.records, log.comments, log.further, log.names, {name: values.tolist() for name, values in log.columns.items()})
            for log in (self, other)
        )
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # it contains arrays

    def with_header(self, lines: Sequence[str]) -> Self:
        """Return the log with these lines before its first record."""
        body = (comment for comment in self.comments if comment.record)
        return replace(self, comments=(*(Comment(0, line) for line in lines), *body))

    @property
    def further_columns(self) -> tuple[str, ...]:
        """Return the names of the fields beyond the 18th, and of the columns derived from them."""
        return tuple(dict.fromkeys([*self.further, *super().further_columns]))

    @property
    def fields(self) -> list[str]:
        """Return sentences on the fields beyond the 18th, and on the source of their names."""
        notes = []
        declared = further_fields(FIELDS + len(self.further), self.header_lines)
        for number, (name, in_header) in enumerate(zip(self.further, declared, strict=True), FIELDS + 1):
            example = f", such as {printable(self.names[name][0])}" if self.names.get(name) else ""
            how = (
                "unknown meaning" if name == field_column(number).name else "named in the header" if name == in_header else "by its values"
            )
            how += "" if name in self.columns else ", always unknown"
            notes.append(f"field {number} is {name} ({how}{example})")
        if self.layout:
            note = f"{int((self.column('nodes') >= 0).sum()):,} node descriptors give nodes and processors per node"
            if "exclusive" in self.columns:
                exclusive, shared = (int((self.columns["exclusive"] == k).sum()) for k in (1, 0))
                note += f"; {exclusive:,} exclusive, {shared:,} shared"
            notes.append(note)
        return notes

    def may_have(self, name: str) -> bool:
        """Return whether a column may have this name."""
        further = name in self.further or (bool(self.layout) and name in swf_text.DERIVED)
        return name in SWF_BY_NAME or (further and super().may_have(name))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all comments and fields; gzip is used if the name ends in `.gz`. Reading the file gives an equal log.

        The file appears only when it is complete, and the same log always gives the same bytes. Raises OutputError.
        """
        done = 0
        with whole_file(path) as file:
            for comment in (*self.comments, Comment(self.records, "")):
                for start in range(done, comment.record, _ROWS_AT_ONCE):
                    stop = min(start + _ROWS_AT_ONCE, comment.record)
                    fields = [_tokens(self.columns.get(name), start, stop, self.names.get(name)) for name in (*SWF_BY_NAME, *self.further)]
                    file.write(("\n".join(map(" ".join, zip(*fields, strict=True))) + "\n").encode())
                done = comment.record
                file.write(f"{comment.text}\n".encode() if comment.text else b"")


def read_swf(path: str | os.PathLike[str], *, skip_bad_lines: bool = False) -> SwfLog:
    r"""Read a log in the Standard Workload Format, plain or gzip, with any file name.

    `skip_bad_lines` skips invalid lines and lists them in `bad_lines`.

    Fields beyond the 18th, as in newer logs, are columns named in the header (`; Field 19: nodes`, or `; Fields:` with all
    names), or else `field19`, `field20`, ...; a line without them has -1 there. They may be texts. The known layouts
    (`walltime.logs.swf_text`) also give the number of nodes of a job and of processors on each.

    Raises LogError, one line that starts with `FILE:LINE:`, if a line has fewer than 18 fields, or a field is not a finite number (or not
    whole, if the field is a count). A submit time, runtime or requested time that is negative but not -1 is an error, too. Also raises
    LogError if the file is missing, unreadable, empty, without job records, not text or a damaged gzip file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tiny.swf")
    ...     _ = file.write_text("; MaxProcs: 8\n1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1\n")
    ...     log = read_swf(file)
    >>> log, log.header["MaxProcs"], log.column("requested").tolist()
    (<SwfLog tiny: 1 record>, ('8',), [90])
    """
    return _read(ReaderState(LogFile(path), ReadOptions(skip_bad_lines)))


def _read(state: ReaderState) -> SwfLog:
    text = parse_swf(state)
    columns, names = text.columns()
    further = further_fields(text.fields, (comment.text for comment in text.comments if comment.record == 0))
    numbered = {field_column(number).name: name for number, name in enumerate(further, FIELDS + 1)}
    layout, derived = swf_text.layout_of(names), dict[str, Array]()
    if layout is not None:
        unknown = np.full(text.records, MISSING)
        requested, allocated, limits = (columns.get(one, unknown) for one in ("requested_procs", "allocated_procs", "requested"))
        derived = layout[0].columns_of(columns[layout[1]], names[layout[1]])
        found = {one: "descriptor" if one == layout[1] else swf_text.name_by_content(texts) for one, texts in names.items()}
        for one in numbered if layout[0].numbers else ():
            if one in columns and one not in names:
                found[one] = swf_text.name_by_values(columns[one], derived["nodes"], limits)
        for one, name in found.items():
            if name is not None and numbered[one] == one and name not in numbered.values():
                numbered[one] = name
        procs = np.where(requested > 0, requested, allocated)
        of_descriptors = derived["nodes"] * derived["procs_per_node"]
        state.count(swf_text.DESCRIPTOR_DIFFERS, (procs > 0) & (of_descriptors > 0) & (procs != of_descriptors))
    columns = {numbered.get(one, one): values for one, values in columns.items()}
    names = {numbered[one]: texts for one, texts in names.items()}
    if derived and "node_list" in names:
        listed = swf_text.nodes_listed(columns["node_list"], names["node_list"])
        state.count(swf_text.NODE_LIST_DIFFERS, (listed >= 0) & (derived["nodes"] >= 0) & (listed != derived["nodes"]))
    return SwfLog(
        text.records,
        columns | {name: values for name, values in derived.items() if name not in columns},
        tuple(text.comments),
        tuple(numbered.values()),
        "" if layout is None else layout[0].name,
        names=names,
        bad_lines=tuple(state.bad_lines),
        path=state.file.path,
        sha256=state.file.sha256,
        noticed=state.noticed,
    )


def further_fields(fields: int, header: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the fields from 19 to `fields`: as declared in the header, if they are valid names of columns."""
    declared = declared_fields(header)
    names: list[str] = []
    for number in range(FIELDS + 1, fields + 1):
        name = declared.get(number, "")
        fits = is_further_name(name) and name not in names and not _NUMBERED.fullmatch(name)
        names.append(name if fits else field_column(number).name)
    return tuple(names)


def _may_be(head: bytes) -> bool:
    """Return whether the first records have about as many fields as this format; other files may start with a semicolon, too."""
    lines = (line.strip() for line in head.split(b"\n")[:_TESTED_LINES])
    records = [line for line in lines if line and not line.startswith(b";")]
    return len(records) < 2 or any(len(record.split()) >= FIELDS - 3 for record in records)


SWF = LogFormat(
    "swf",
    "Standard Workload Format",
    ENDINGS,
    HEAD,
    _read,
    (MORE_FIELDS, swf_text.DESCRIPTOR_DIFFERS, swf_text.NODE_LIST_DIFFERS),
    is_one=_may_be,
)
"""The format of the Parallel Workloads Archive."""


def write_swf(
    path: str | os.PathLike[str],
    workload: Workload,
    *,
    wait: Array | None = None,
    submit: Array | None = None,
    runtime: Array | None = None,
    extra_header: Sequence[str] = (),
) -> None:
    """Write a workload as a log; reading it with default options gives the same jobs on the same machine.

    `wait, submit, runtime`: int64 s, one per job, replace fields 3, 2 and 4 with the times of a simulated schedule; the records are then in
    the order of that submission. The header comes from the original log, with MaxProcs of the workload's machine, or is minimal;
    `extra_header` lines follow it.

    Fields that would be read differently are adapted to the job. Allocated processors become the processors of the job if the log's numbers
    differ. The status becomes -1 if it means a part of a job, or a cancelled job with runtime 0.

    Raises WorkloadError if an array does not fit the jobs, LogError if a header line is not a line of text, OutputError if the
    file cannot be written.
    """
    swf_of(workload, wait=wait, submit=submit, runtime=runtime, extra_header=extra_header).write(path)


def swf_of(
    workload: Workload,
    *,
    wait: Array | None = None,
    submit: Array | None = None,
    runtime: Array | None = None,
    extra_header: Sequence[str] = (),
    others: Sequence[str] = swf_text.BY_VALUES,
) -> SwfLog:
    """Return the log that `write_swf` writes; `others`: additional columns of the workload that become fields, named in the header."""
    columns = dict(workload.columns)
    columns |= {"job_id": workload.job_id, "submit": workload.submit, "runtime": workload.runtime, "requested": workload.requested}
    times = {"wait": wait, "submit": submit, "runtime": runtime}
    for name, values in ((name, np.asarray(one)) for name, one in times.items() if one is not None):
        if values.shape != (len(workload),):
            raise WorkloadError(f"{name} must have one entry per job ({len(workload)}), not the shape {values.shape}", "wrong_length")
        columns[name] = values
    allocated, requested = (columns.get(name, workload.procs) for name in ("allocated_procs", "requested_procs"))
    procs = np.where(allocated > 0, allocated, requested)
    columns["allocated_procs"] = np.where(procs == workload.procs, allocated, workload.procs)
    columns["requested_procs"] = requested
    status = columns.get("status", np.full(len(workload), MISSING, np.int64))
    columns["status"] = np.where(np.isin(status, (2, 3, 4)) | ((status == 5) & (columns["runtime"] == 0)), MISSING, status)
    header = [*_header(workload), *extra_header]
    comments = tuple(Comment(0, line if line.lstrip(BLANKS).startswith(";") else f"; {line}") for line in header)
    order = np.lexsort((columns["job_id"], columns["submit"]))
    further = _further_fields_of(workload, [comment.text for comment in comments])
    added = [name for name in others if name in workload.columns and name not in further][: MOST_FIELDS - FIELDS - len(further)]
    named = [Comment(0, f"; Field {number}: {name}") for number, name in enumerate(added, FIELDS + 1 + len(further))]
    comments, further = (*comments, *named), (*further, *added)
    swf_columns = {name: np.asarray(values)[order] for name, values in columns.items() if name in SWF_BY_NAME or name in further}
    return SwfLog(len(workload), swf_columns, comments, further)


def _further_fields_of(workload: Workload, header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the fields beyond the 18th of the original log, up to the last one that is known."""
    most = max([FIELDS, *declared_fields(header), *(int(name[5:]) for name in workload.columns if _NUMBERED.fullmatch(name))])
    names = further_fields(min(most, MOST_FIELDS), header)
    known = [place for place, name in enumerate(names, 1) if name in workload.columns]
    return names[: max(known, default=0)]


def _header(workload: Workload) -> list[str]:
    """Return the header lines of the workload's origin, or a minimal header; both have the size of the machine."""
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
        offset = origin.time_zone.lstrip("+-").isdecimal()
        lines.append(f"; {'TimeZone' if offset else 'TimeZoneString'}: {origin.time_zone}")
        return [*lines, f"; MaxNodes: {size}", f"; MaxProcs: {size}"]
    return list(origin.header) if Header.parse(origin.header).machine_procs == size else with_max_procs(origin.header, size)


def _check_comment(comment: Comment, records: int) -> None:
    if not 0 <= comment.record <= records:
        raise LogError(f"a comment comes after {comment.record} records, but the log has {records}", "wrong_comment")
    text = comment.text
    if not text.lstrip(BLANKS).startswith(";") or "\n" in text or "\0" in text or text.endswith("\r"):
        raise LogError(f"a comment must be one line of text that starts with a semicolon, not {text!r}", "wrong_comment")


def _tokens(values: Array | None, start: int, stop: int, texts: Sequence[str] | None) -> list[str]:
    """Return the fields of some rows, each as the shortest text that restores the value. `texts`: the names for the numbers 1, 2, ..."""
    if values is None:
        return [str(MISSING)] * (stop - start)
    numbers = values[start:stop].tolist()
    if texts is not None:
        return [texts[number - 1] if number > 0 else str(MISSING) for number in numbers]
    if values.dtype == np.int64:
        return list(map(str, numbers))
    return [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
