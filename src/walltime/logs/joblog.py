"""What a site's job log is, whatever its format: the seam between the readers and everything else.

A format is one file beside this one. It says how its files are recognised and read (`LogFormat`), and what it reads has the shape of a
`JobLog`; most formats need no more than a `walltime.logs.table.TableLog`. The table of formats is `walltime.logs.formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from walltime.logs.header import Header
from walltime.logs.input import LogFile
from walltime.workload import Workload

Array = np.ndarray
Partial = Literal["summary", "parts"]
TooWide = Literal["drop", "clip", "error"]


@dataclass(frozen=True)
class Rule:
    """What happens to some records on their way into a workload.

    `effect`: `drop` (the record is no job of the workload), `change` (the job differs from its record) or `notice` (the
    job is odd, and is left as it is).
    """

    name: str
    effect: Literal["drop", "change", "notice"]
    meaning: str


@dataclass(frozen=True)
class BadLine:
    """A line that was skipped: its number counted from 1, what is wrong with it, and what it says."""

    line: int
    reason: str
    text: str


class JobLog(Protocol):
    """A log as it stands in its file: its records as columns, what it says of itself, and what reading did to it."""

    @property
    def format(self) -> str:
        """Name of the format, as in `LogFormat.name`."""

    @property
    def name(self) -> str:
        """What the log is called: its file name without folder and endings."""

    @property
    def path(self) -> str:
        """The file, as it was named."""

    @property
    def sha256(self) -> str:
        """Checksum of the file as it is stored, compressed or not (64 hexadecimal digits)."""

    @property
    def header(self) -> Header:
        """What the log says of itself, under the keys of the Standard Workload Format: the machine, the start, the time zone."""

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The header as lines of a Standard Workload Format file; each starts with `;`."""

    @property
    def records(self) -> int:
        """How many records there are."""

    @property
    def columns(self) -> Mapping[str, Array]:
        """The columns with a known value, one entry per record in the order of the file: int64, or float64; -1 is unknown.

        What `walltime.workload.SWF_COLUMNS` has goes by its name and has its unit; submit counts from the start of the log. What the
        format has besides goes by names of its own.
        """

    @property
    def bad_lines(self) -> tuple[BadLine, ...]:
        """What was skipped because it is no record."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """What the reader left out, besides bad lines: counts by the names of the format's rules."""

    @property
    def changed(self) -> Mapping[str, int]:
        """Records that the reader changed: counts by rule."""

    @property
    def noticed(self) -> Mapping[str, int]:
        """Records that are odd, and as they are in the file: counts by rule."""

    def column(self, name: str) -> Array:
        """One column, an entry per record; all -1 where nothing is known. Raises KeyError for a name that the log cannot have."""

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """The jobs that can be simulated, in order of arrival; see `walltime.logs.SwfLog.to_workload`."""


@dataclass(frozen=True)
class LogFormat:
    """A format of job logs: its name, how a file is recognised, and how it is read.

    `title`: as it is called in messages. `endings`: of file names, in lower case and without `.gz`, such as `.swf`; they decide
    where no format recognises the content. `recognises`: whether the first bytes of a file (up to 512 KiB, unpacked) are of
    this format. `read`: reads a file; the second argument says whether lines that are no record are skipped rather than an error
    (LogError, naming the line). `rules`: those that the reader itself counts.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[LogFile, bool], JobLog]
    rules: tuple[Rule, ...] = ()
