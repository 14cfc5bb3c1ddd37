"""Job logs independent of their format: the interface between the readers and everything else.

Each format is a module beside this one that defines how files are recognized and read (`LogFormat`) and returns a `JobLog`; for
most formats a `walltime.logs.table.TableLog` suffices. The formats are listed in `walltime.logs.formats.FORMATS`.
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
    """What is done with certain records when a workload is built.

    `effect`: `drop` (the record does not become a job), `change` (the job differs from its record) or `notice` (the job is
    unusual, and left unchanged).
    """

    name: str
    effect: Literal["drop", "change", "notice"]
    meaning: str


@dataclass(frozen=True)
class ReadOptions:
    """What a reader is told besides the file.

    `skip_bad_lines`: skip and list invalid lines, instead of raising LogError. `time_zone`: zone of the local times in a log that
    does not say it, such as Europe/Stockholm, or an offset in seconds; None if unknown. `mapping`: the TOML file that says what the
    columns of a table mean.
    """

    skip_bad_lines: bool = False
    time_zone: str | None = None
    mapping: str | None = None


@dataclass(frozen=True)
class BadLine:
    """A skipped line: its number from 1, the reason, and its text."""

    line: int
    reason: str
    text: str


class JobLog(Protocol):
    """A log as in its file: its records as columns, its header, and what was done while reading."""

    @property
    def format(self) -> str:
        """Name of the format, as in `LogFormat.name`."""

    @property
    def name(self) -> str:
        """The name of the log: its file name without folder and extensions."""

    @property
    def path(self) -> str:
        """The file, as given."""

    @property
    def sha256(self) -> str:
        """Checksum of the file as stored, compressed or not (64 hexadecimal digits)."""

    @property
    def header(self) -> Header:
        """The log's description of itself, under the keys of the Standard Workload Format: the machine, the start, the time zone."""

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The header as lines of a Standard Workload Format file; each starts with `;`."""

    @property
    def records(self) -> int:
        """The number of records."""

    @property
    def columns(self) -> Mapping[str, Array]:
        """The columns with a known value, one entry per record in the order of the file: int64, or float64; -1 is unknown.

        Columns of `walltime.workload.SWF_COLUMNS` have those names and units; submit counts from the start of the log. Other
        columns have names of the format's own.
        """

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """What the numbers of a column stand for, by column: number k is `names[column][k - 1]`; empty if the log has numbers only."""

    @property
    def bad_lines(self) -> tuple[BadLine, ...]:
        """Lines that were skipped because they are invalid."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Records that the reader dropped, besides bad lines: counts by the names of the format's rules."""

    @property
    def changed(self) -> Mapping[str, int]:
        """Records that the reader changed: counts by rule."""

    @property
    def noticed(self) -> Mapping[str, int]:
        """Records that are unusual but unchanged: counts by rule."""

    def column(self, name: str) -> Array:
        """One column, an entry per record; all -1 if nothing is known. Raises KeyError for a name that the log cannot have."""

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """The jobs that can be simulated, in order of arrival; see `walltime.logs.SwfLog.to_workload`."""


@dataclass(frozen=True)
class LogFormat:
    """A format of job logs: its name, and how files are recognized and read.

    `title`: its name in messages. `endings`: file extensions, in lower case and without `.gz`, such as `.swf`; they decide if
    no format recognizes the content. `recognises`: whether the first bytes of a file (up to 512 KiB, decompressed) are in this
    format. `read`: reads a file, with `ReadOptions`; an invalid line is a LogError that names it, unless bad lines are skipped.
    `rules`: those that the reader itself counts.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[LogFile, ReadOptions], JobLog]
    rules: tuple[Rule, ...] = ()
