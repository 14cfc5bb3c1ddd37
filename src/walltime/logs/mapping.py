"""Mappings: the meaning of a table's columns, from a TOML file or shipped for a known format."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from walltime.declared import Field
from walltime.errors import LogError
from walltime.logs.cells import CLOCKS
from walltime.logs.clock import parse_zone
from walltime.logs.joblog import is_further_name
from walltime.toml_file import TomlFile, to_toml
from walltime.workload import SWF_BY_NAME

TIMES = ("submit", "eligible", "start", "end")
"""Columns of times."""
SPANS = ("wait", "runtime", "requested", "cpu_time", "think_time", "soft_walltime", "time_min", "predicted")
"""Columns of durations."""
TEXTS = ("user", "group", "executable", "queue", "partition")
"""Columns of names."""
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
WORDS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
STATUS = {"completed": 1, "failed": 0, "cancelled": 5, "pending": -10, "running": -11}
"""Kinds of status, and their numbers as in the Standard Workload Format, with two more for jobs that have not ended."""
Words = tuple[str | int, ...]


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError) as error:
        raise LogError(f"is not a regular expression ({error})") from None
    return text


def _pattern(text: str) -> str:
    if re.compile(_expression(text)).groups != 1:
        raise LogError("must have one group, in parentheses")
    return text


@dataclass(frozen=True)
class Source:
    """The column, or the constant, from which a value of each job comes."""

    column: str | None = None
    """title of the column in the table"""
    unit: Annotated[str, Field(known=tuple(UNITS))] = "s"
    """unit of a duration, or of a time in numbers"""
    clock: Annotated[str | None, Field(known=CLOCKS)] = None
    """meaning of a duration with one colon, such as 24:00; by default, the values decide"""
    format: str | None = None
    """format of a time, as in Python; by default as in 2026-11-20 21:33:45, or seconds since 1970"""
    factor: Annotated[float, Field("times", above=0, below=2**40)] = 1.0
    """factor by which numbers are multiplied"""
    by: str | None = None
    """title of another column by which numbers are multiplied, such as processors per node by nodes"""
    otherwise: str | None = None
    """title of the column that is used where the first one is unknown"""
    pattern: Annotated[str | None, Field(read=_pattern)] = None
    """regular expression whose first group is the value"""
    text: bool | None = None
    """whether the values are names; by default for user, group, executable, queue and partition"""
    constant: int | float | str | None = None
    """value for all jobs, instead of a column"""

    def __post_init__(self) -> None:
        if (self.column is None) == (self.constant is None):
            raise LogError("needs either a column or a constant")


REPLACEMENTS = {
    "procs": "allocated_procs or requested_procs (the size of the machine is a key procs above [columns])",
    "planned": "requested",
    "job": "job_id",
}
"""The correct names of columns, by wrong names that mean something else in workloads and filters."""
KNOWN = (*SWF_BY_NAME, *TIMES)


def _hint_for_name(name: str) -> str:
    lower = re.sub(r"\W+", "_", name).strip("_").lower()
    if lower in REPLACEMENTS:
        return f". Did you mean {REPLACEMENTS[lower]}?"
    near = [lower] if is_further_name(lower) or lower in KNOWN else difflib.get_close_matches(lower, KNOWN, n=1)
    return f". Did you mean {near[0]!r}?" if near else "; use lower case letters, digits and underscores"


def _hint_for_missing(columns: Collection[str], *missing: str) -> str:
    """Return a question if another column has a name similar to a missing one; empty otherwise.

    >>> _hint_for_missing(["submit", "allocated_proc"], "allocated_procs", "requested_procs")
    ". Did you mean 'allocated_procs' instead of 'allocated_proc'?"
    """
    near = ((name, difflib.get_close_matches(name, missing, n=1, cutoff=0.7)) for name in sorted(set(columns) - set(KNOWN)))
    return next((f". Did you mean {match[0]!r} instead of {name!r}?" for name, match in near if match), "")


def _sources(given: Mapping[str, str | Source]) -> dict[str, Source]:
    """Return the source of each column, and check its name; a title alone is a source, too."""
    sources = {}
    for name, one in given.items():
        if name == "status":
            raise LogError("status must be a table [status]")
        if not (name in KNOWN or is_further_name(name)):
            raise LogError(f"{name!r} is not a valid name for a column{_hint_for_name(name)}", "unknown_column")
        source = Source(one) if isinstance(one, str) else one
        sources[name] = replace(source, text=name in TEXTS if source.text is None else source.text)
        if sources[name].text and name in (*TIMES, *SPANS):
            raise LogError(f"{name} is a time; it cannot have text = true")
    return sources


@dataclass(frozen=True)
class Status:
    """The words for each final job state in a column."""

    column: str
    """title of the column in the table"""
    otherwise: str | None = None
    """title of the column that is used if the table lacks the first one"""
    exit_code: str | None = None
    """title of a column of exit codes: a completed job with an exit code other than 0 has failed"""
    completed: Words = ()
    failed: Words = ()
    cancelled: Words = ()
    pending: Words = ()
    """for records that are not jobs yet"""
    running: Words = ()
    other: Literal["completed", "failed", "cancelled", "pending", "running"] | None = None
    """meaning of all other words; without it, their records are bad lines"""

    def kind_of(self, text: str) -> int | None:
        """Return the number (in `STATUS`) of a word: as written, ignoring case, or by its first part, as in CANCELLED by 1000.

        >>> status = Status("state", completed=("COMPLETED",), cancelled=("CANCELLED",))
        >>> status.kind_of("Completed"), status.kind_of("CANCELLED by 1000"), status.kind_of("lost")
        (1, 5, None)
        """
        words = {str(word): number for kind, number in STATUS.items() for word in getattr(self, kind)}
        loose = {word.lower(): number for word, number in words.items()}
        first = re.split(r"[ +]", text.lower(), maxsplit=1)[0]
        return words.get(text, loose.get(text.lower(), loose.get(first)))


@dataclass(frozen=True)
class About:
    """The published data set for which a mapping is made, and how its files are recognised."""

    title: str
    page: str
    """address of the data set"""
    source: str
    """address of a description of its columns"""
    note: str = ""
    """assumptions and missing data"""
    power: str = ""
    """title of the column of power"""
    size: str = ""
    """size of the files, according to the source"""
    licence: str = ""
    """licence, or conditions set by the source"""
    zenodo: int | None = None
    """number of its record at Zenodo, which lists the files and the licence"""
    files: tuple[str, ...] = ()
    """addresses of its files, if it is not at Zenodo"""
    marks: tuple[str, ...] = ()
    """titles by which a table of this data set is recognised"""
    line: Annotated[str | None, Field(read=_expression)] = None
    """for files without a heading, in place of marks: a regular expression that matches all lines"""


@dataclass(frozen=True)
class Join:
    """Another table in a folder, with several rows for each job."""

    name: str
    """name of the join; with the name nodes, its column energy becomes `nodes.energy`"""
    file: str
    """file in the folder; `*` matches any text"""
    key: str
    """title, in both tables, of the column by which rows are matched to jobs"""
    sums: Annotated[tuple[str, ...], Field("sum")] = ()
    """columns whose known values are summed for each job"""
    most: tuple[str, ...] = ()
    """columns whose largest value becomes the job's"""


@dataclass(frozen=True)
class TableMapping:
    """The meaning of a table's columns; raises LogError if they are not enough for a log."""

    columns: Annotated[Mapping[str, Source], Field(accepts=Mapping[str, str | Source], read=_sources)]
    """the source of each column of a log: a title, or a table"""
    status: Status | None = None
    time_zone: Annotated[str | None, Field(read=parse_zone)] = None
    """time zone of times that do not give one, such as Europe/Stockholm"""
    relative_times: bool = False
    """whether times count from an unknown start"""
    procs: Annotated[int | None, Field(least=1)] = None
    """processors of the machine"""
    computer: str | None = None
    """name of the machine"""
    delimiter: Annotated[str, Field(least=1, most=1)] = ","
    """separator of the columns of CSV; a blank means any number of blanks"""
    titles: tuple[str, ...] = ()
    """titles of the columns, if the file has no line of titles"""
    comment: str | None = None
    """characters at the beginning of lines to ignore"""
    table: str | None = None
    """in a folder of several tables, the file with a row for each job; `*` matches any text"""
    joins: Annotated[tuple[Join, ...], Field("join")] = ()
    """other tables in that folder"""
    about: About | None = None

    def __post_init__(self) -> None:
        needs = (
            (("submit",), ("start", "wait"), "submit (or start and wait)"),
            (("runtime",), ("start", "end"), "runtime (or start and end)"),
            (("allocated_procs",), ("requested_procs",), "allocated_procs (or requested_procs)"),
        )
        for one, other, names in needs:
            if not (set(one) <= self.columns.keys() or set(other) <= self.columns.keys()):
                raise LogError(f"columns: a log needs {names}{_hint_for_missing(self.columns, *one, *other)}")

    def restricted(self, titles: Collection[str]) -> TableMapping:
        """Return the mapping without the columns that a table with these titles lacks.

        Case and punctuation of titles are ignored. Raises LogError if the remaining columns are not enough.
        """
        by_plain = {plain_title(title): title for title in reversed(list(titles))} | {title: title for title in titles}

        def title_of(column: str) -> str | None:
            return by_plain.get(column, by_plain.get(plain_title(column)))

        kept = {}
        for name, one in self.columns.items():
            titles = [found for title in (one.column, one.otherwise) if title is not None and (found := title_of(title)) is not None]
            if titles or one.column is None:
                kept[name] = replace(one, column=titles[0] if titles else None, otherwise=titles[1] if len(titles) > 1 else None)
        status = self.status
        if status is not None:
            title = title_of(status.column) or title_of(status.otherwise or "")
            code = status.exit_code and title_of(status.exit_code)
            status = None if title is None else replace(status, column=title, otherwise=None, exit_code=code)
        return replace(self, columns=kept, status=status)

    @property
    def wanted(self) -> list[str]:
        """Return the titles of all columns that must be read."""
        titles = [title for source in self.columns.values() for title in (source.column, source.by, source.otherwise)]
        titles += [] if self.status is None else [self.status.column, self.status.exit_code]
        return list(dict.fromkeys(title for title in titles if title is not None))

    @property
    def header(self) -> dict[str, str]:
        """Return the size and name of the machine, by the keys of a header."""
        facts = {"MaxProcs": self.procs, "Computer": self.computer and " ".join(self.computer.split())}
        return {key: str(value) for key, value in facts.items() if value}


def plain_title(title: str) -> str:
    """Return the letters and digits of a title, in lower case.

    >>> plain_title("Job ID")
    'jobid'
    """
    return re.sub(r"[^a-z0-9]", "", title.lower())


def as_text(mapping: TableMapping) -> str:
    """Return the mapping as the text of a TOML file."""
    plain = {
        name: replace(source, text=None if source.text == (name in TEXTS) else source.text) for name, source in mapping.columns.items()
    }
    zone = mapping.time_zone
    if zone is not None and zone.lstrip("+-").isdecimal():  # an offset, s
        zone = f"{'-' if int(zone) < 0 else '+'}{abs(int(zone)) // 3600:02d}:{abs(int(zone)) // 60 % 60:02d}"
    return to_toml(replace(mapping, columns=plain, time_zone=zone), {})


MAPPING_FILE = TomlFile(TableMapping, "a mapping, a TOML file", "docs/guides/mappings.md", LogError)
