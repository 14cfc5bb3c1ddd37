"""Logs in the Standard Workload Format 2.2: read with all fields and comments, converted to a workload, written back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from walltime.errors import LogError, WorkloadError
from walltime.files import whole_file
from walltime.logs.header import Header, declared_fields
from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, LogFormat, ReadOptions, is_further_name
from walltime.logs.rules import Rule
from walltime.logs.swf_text import (
    BY_VALUES,
    DERIVED,
    DESCRIPTOR_DIFFERS,
    FIELDS,
    HEAD,
    MOST_FIELDS,
    NODE_LIST_DIFFERS,
    Comment,
    field_column,
    layout_of,
    name_by_content,
    name_by_values,
    nodes_listed,
    parse_swf,
)
from walltime.wording import printable
from walltime.workload import MISSING, SWF_BY_NAME, Workload

Array = np.ndarray
ENDINGS = (".swf",)
_ROWS_AT_ONCE = 8192
_LOOKED_AT = 200
"""Lines at the beginning of a file by which it is known not to be in this format."""
_NUMBERED = re.compile(r"field[0-9]{1,3}")
_BLANKS = " \t\r\x0b\x0c"

MORE_FIELDS = Rule(
    "more_fields", "notice", "The line has known values beyond the 18 fields of the Standard Workload Format, kept as additional columns."
)


@dataclass(frozen=True, eq=False, repr=False)
class SwfLog(JobLog):
    """A log as in its file; two logs are equal if their comments and all fields are.

    `columns`: the fields by name (see `walltime.workload.SWF_COLUMNS`), one entry per record in the order of the file,
    read-only; int64, or float64 if a value is fractional. A field that is -1 (unknown) everywhere is not stored, but `column`
    returns it. `comments`: every line that starts with `;`, including the header. `further`: the names of the fields beyond the
    18th, in order, if the lines have more; a field that has texts is a column of names. `layout`: the known layout of these fields, such
    as `MetaCentrum/CERIT`, or nothing. `fields`: what each of these fields is, and how that is known. `bad_lines`: the skipped lines.
    `sha256`: checksum of the file as stored, compressed or not.

    Raises LogError if the columns differ in length or contain invalid values.
    Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

    >>> log = SwfLog(records=2, columns={"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2]})
    >>> log.column("user").tolist(), log.to_workload(procs=4)
    ([-1, -1], <Workload log: 2 jobs on 4 processors>)
    """

    format: ClassVar[str] = "swf"
    endings: ClassVar[tuple[str, ...]] = ENDINGS

    comments: tuple[Comment, ...] = ()
    further: tuple[str, ...] = ()
    layout: str = ""
    fields: tuple[str, ...] = ()
    header: Header = field(init=False)
    """The standard keys of the header with their values; the case of a key does not matter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "comments", tuple(sorted(self.comments, key=lambda comment: comment.record)))
        for comment in self.comments:
            _check_comment(comment, self.records)
        super().__post_init__()
        object.__setattr__(self, "header", Header.parse(self.header_lines))
        further = [self.columns[name] != MISSING for name in self.further if name in self.columns]
        if further:
            object.__setattr__(self, "noticed", dict(self.noticed) | {MORE_FIELDS.name: int(np.logical_or.reduce(further).sum())})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwfLog):
            return NotImplemented
        return (
            self.records == other.records
            and self.comments == other.comments
            and self.further == other.further
            and self.names == other.names
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(values, other.columns[name]) for name, values in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]  # it contains arrays

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The comment lines before the first record, as in the file."""
        return tuple(comment.text for comment in self.comments if comment.record == 0)

    @property
    def further_columns(self) -> tuple[str, ...]:
        """Names of the fields beyond the 18th, and of what their texts say."""
        return tuple(dict.fromkeys([*self.further, *super().further_columns]))

    def may_have(self, name: str) -> bool:
        """Whether a column may have this name."""
        further = name in self.further or (bool(self.layout) and name in DERIVED)
        return name in SWF_BY_NAME or (further and super().may_have(name))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write all comments and all fields, as gzip if the name ends in `.gz`; reading the file gives an equal log.

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
            fields = [_tokens(self.columns.get(name), start, stop, self.names.get(name)) for name in (*SWF_BY_NAME, *self.further)]
            yield "\n".join(map(" ".join, zip(*fields, strict=True))) + "\n"


def read_swf(path: str | os.PathLike[str], *, skip_bad_lines: bool = False) -> SwfLog:
    r"""Read a log in the Standard Workload Format, plain or gzip, whatever its name.

    `skip_bad_lines` skips invalid lines and lists them in `bad_lines`.

    Fields beyond the 18th, as in newer logs, are columns named in the header (`; Field 19: nodes`, or `; Fields:` with all
    names), or else `field19`, `field20`, ...; a line without them has -1 there. They may be texts; those of the known layouts
    (`walltime.logs.swf_text`) are also read: how many nodes a job has, and how many processors on each.

    Raises LogError, one line that starts with `FILE:LINE:`, if a line has fewer than 18 fields, a field is not a finite number
    (or not whole, if the field is a count), or a submit time, runtime or requested time is negative but not -1; and if the file
    is missing, unreadable, empty, without job records, not text or a damaged gzip file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "tiny.swf")
    ...     _ = file.write_text("; MaxProcs: 8\n1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1\n")
    ...     log = read_swf(file)
    >>> log, log.header["MaxProcs"], log.column("requested").tolist()
    (<SwfLog tiny: 1 records>, ('8',), [90])
    """
    return _read(LogFile(path), ReadOptions(skip_bad_lines))


def _read(file: LogFile, options: ReadOptions) -> SwfLog:
    text = parse_swf(file, options)
    header = [comment.text for comment in text.comments if comment.record == 0]
    further = further_fields(text.fields, header)
    numbered = {field_column(number).name: name for number, name in enumerate(further, FIELDS + 1)}
    layout = layout_of(text.names)
    for field_name, texts in text.names.items():
        own = None
        if layout is not None:
            own = "descriptor" if field_name == layout[1] else name_by_content(texts)
        if numbered[field_name] == field_name and own is not None and own not in numbered.values():
            numbered[field_name] = own
    columns = {numbered.get(name, name): values for name, values in text.columns.items()}
    names = {numbered[name]: texts for name, texts in text.names.items()}
    declared = set(further)
    noticed: dict[str, int] = {}
    said: dict[str, Array] = {}
    if layout is not None:
        said = layout[0].columns_of(text.columns[layout[1]], text.names[layout[1]])
        if layout[0].numbers:
            columns, numbered = _named_by_values(columns, numbered, said["nodes"])
        counts = {DESCRIPTOR_DIFFERS.name: _differ(columns, said["nodes"] * said["procs_per_node"])}
        if "node_list" in names:
            listed = nodes_listed(columns["node_list"], names["node_list"])
            counts[NODE_LIST_DIFFERS.name] = int(np.count_nonzero((listed >= 0) & (said["nodes"] >= 0) & (listed != said["nodes"])))
        noticed = {name: count for name, count in counts.items() if count}
        columns |= {name: values for name, values in said.items() if name not in columns}
    return SwfLog(
        text.records,
        columns,
        tuple(text.comments),
        tuple(numbered.values()),
        "" if layout is None else layout[0].name,
        tuple(_fields_said(numbered, declared, columns, names, said)),
        names=names,
        bad_lines=tuple(text.bad_lines),
        path=file.path,
        sha256=file.sha256,
        noticed=noticed,
    )


def _named_by_values(columns: dict[str, Array], numbered: dict[str, str], nodes: Array) -> tuple[dict[str, Array], dict[str, str]]:
    """The columns, and the names of the further fields, after those of numbers without a name got one, if their values tell it."""
    requested = columns.get("requested", np.full(len(nodes), MISSING))
    own: dict[str, str] = {}
    for field_name, name in numbered.items():
        meaning = name_by_values(columns[name], nodes, requested) if field_name == name and name in columns else None
        if meaning is not None and meaning not in (*numbered.values(), *own.values()):
            own[name] = meaning
    return {own.get(name, name): values for name, values in columns.items()}, {at: own.get(name, name) for at, name in numbered.items()}


def _fields_said(
    numbered: Mapping[str, str],
    declared: set[str],
    columns: Mapping[str, Array],
    names: Mapping[str, Sequence[str]],
    said: Mapping[str, Array],
) -> Iterator[str]:
    """What each further field is, and how that is known."""
    for field_name, name in numbered.items():
        example = f", such as {printable(names[name][0])}" if names.get(name) else ""
        if name in declared and name != field_name:
            how = "named in the header"
        else:
            how = "nothing says what it is" if name == field_name else "by its values"
        if name not in columns:
            how += ", always unknown"
        yield f"{field_name.replace('field', 'field ')} is {name} ({how}{example})"
    if said:
        modes = (
            [f"{int((said['exclusive'] == 1).sum()):,} exclusive, {int((said['exclusive'] == 0).sum()):,} shared"]
            if "exclusive" in said
            else []
        )
        yield "; ".join([f"descriptors are read as nodes and processors on each, {int((said['nodes'] >= 0).sum()):,} of them", *modes])


def _differ(columns: Mapping[str, Array], said: Array) -> int:
    """How many jobs have another number of processors in their field than in their descriptor; where both are known."""
    unknown = np.full(len(said), MISSING)
    asked, allocated = columns.get("requested_procs", unknown), columns.get("allocated_procs", unknown)
    field_says = np.where(asked > 0, asked, allocated)
    return int(np.count_nonzero((field_says > 0) & (said > 0) & (field_says != said)))


def further_fields(fields: int, header: Iterable[str]) -> tuple[str, ...]:
    """Names of the fields 19, 20, ... up to this one: those declared in the header, if they are valid column names."""
    declared = declared_fields(header)
    names: list[str] = []
    for number in range(FIELDS + 1, fields + 1):
        name = declared.get(number, "")
        fits = is_further_name(name) and name not in names and not _NUMBERED.fullmatch(name)
        names.append(name if fits else field_column(number).name)
    return tuple(names)


def _may_be(head: bytes) -> bool:
    """Whether the first records have about as many fields as this format; other files may begin with a semicolon, too."""
    lines = (line.strip() for line in head.split(b"\n")[:_LOOKED_AT])
    records = [line for line in lines if line and not line.startswith(b";")]
    return len(records) < 2 or any(len(record.split()) >= FIELDS - 3 for record in records)


SWF = LogFormat(
    "swf", "Standard Workload Format", ENDINGS, HEAD, _read, (MORE_FIELDS, DESCRIPTOR_DIFFERS, NODE_LIST_DIFFERS), is_one=_may_be
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

    `wait, submit, runtime`: int64 seconds, one per job, replace fields 3, 2 and 4 by those of a simulated schedule; the records
    are then in order of that submission. The header is that of the original log, with MaxProcs of the workload's machine, or a
    minimal one; `extra_header` lines follow it.

    Fields that would be read differently are adapted to the job: allocated processors are those of the job if the log's numbers
    differ, and the status is -1 if it says part of a job, or cancelled with runtime 0.

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
    others: Sequence[str] = BY_VALUES,
) -> SwfLog:
    """The log that `write_swf` writes; `others`: further columns of the workload that become fields, named in the header."""
    columns = dict(workload.columns)
    columns |= {"job_id": workload.job_id, "submit": workload.submit, "runtime": workload.runtime, "requested": workload.requested}
    for name, values in (("wait", wait), ("submit", submit), ("runtime", runtime)):
        if values is None:
            continue
        columns[name] = np.asarray(values)
        if columns[name].shape != (len(workload),):
            raise WorkloadError(
                f"{name} has shape {columns[name].shape}; it must have one entry for each of the {len(workload)} jobs", "wrong_length"
            )
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
    further = _further_fields_of(workload, [comment.text for comment in comments])
    told = [name for name in others if name in workload.columns and name not in further][: MOST_FIELDS - FIELDS - len(further)]
    named = [Comment(0, f"; Field {number}: {name}") for number, name in enumerate(told, FIELDS + 1 + len(further))]
    comments, further = (*comments, *named), (*further, *told)
    swf_columns = {name: np.asarray(values)[order] for name, values in columns.items() if name in SWF_BY_NAME or name in further}
    return SwfLog(len(workload), swf_columns, comments, further)


def _further_fields_of(workload: Workload, header: Sequence[str]) -> tuple[str, ...]:
    """The fields beyond the 18th of the original log, up to the last known one; columns of other origin are excluded."""
    most = max([FIELDS, *declared_fields(header), *(int(name[5:]) for name in workload.columns if _NUMBERED.fullmatch(name))])
    names = further_fields(min(most, MOST_FIELDS), header)
    known = [place for place, name in enumerate(names, 1) if name in workload.columns]
    return names[: max(known, default=0)]


def _header(workload: Workload) -> list[str]:
    """Header lines for a workload: those of its origin, or a minimal header; both with the size of the machine."""
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
    if Header.parse(origin.header).machine_procs == size:
        return list(origin.header)
    lines = [f"; Note: the log had {line.strip(_BLANKS + ';')}" if "MaxProcs" in Header.parse([line]) else line for line in origin.header]
    return [*lines, f"; MaxProcs: {size}"]


def _check_comment(comment: Comment, records: int) -> None:
    if not 0 <= comment.record <= records:
        raise LogError(f"a comment stands after {comment.record} records, the log has {records}", "wrong_comment")
    text = comment.text
    if not text.lstrip(_BLANKS).startswith(";") or "\n" in text or "\0" in text or text.endswith("\r"):
        raise LogError(f"{text!r} is no comment; it must be one line of text that starts with a semicolon", "wrong_comment")


def _tokens(values: Array | None, start: int, stop: int, texts: Sequence[str] | None) -> list[str]:
    """The fields of some rows as text: the shortest that restores the same value. `texts`: what the numbers stand for."""
    if values is None:
        return [str(MISSING)] * (stop - start)
    numbers = values[start:stop].tolist()
    if texts is not None:
        return [texts[number - 1] if number > 0 else str(MISSING) for number in numbers]
    if values.dtype == np.int64:
        return list(map(str, numbers))
    return [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
