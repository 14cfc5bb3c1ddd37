"""What the columns of a table mean: a mapping, from TOML or of a known format."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from walltime.declared import Key
from walltime.errors import LogError
from walltime.logs.clock import parse_zone
from walltime.logs.joblog import is_further_name
from walltime.toml_file import TomlFile, to_toml
from walltime.workload import SWF_BY_NAME

TIMES = ("submit", "eligible", "start", "end")
"""Columns that are times of day."""
SPANS = ("wait", "runtime", "requested", "cpu_time", "think_time", "soft_walltime", "time_min", "predicted")
"""Columns that are lengths of time."""
TEXTS = ("user", "group", "executable", "queue", "partition")
"""Columns that are names."""
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
STATUS = {"completed": 1, "failed": 0, "cancelled": 5, "pending": -10, "running": -11}
"""Kinds of status: the numbers of the Standard Workload Format, and those of jobs that have not ended."""
Words = tuple[str | int, ...]


def _pattern(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise LogError(f"is no regular expression ({error})") from None
    if groups != 1:
        raise LogError("must have one group, in parentheses")
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError) as error:
        raise LogError(f"is no regular expression ({error})") from None
    return text


def _factor(number: float) -> float:
    if not 0 < number < 2**40:
        raise LogError(f"must be a number above 0, not {number:g}")
    return number


@dataclass(frozen=True)
class Source:
    """Where the values of a column come from."""

    column: str | None = None
    """its title in the table"""
    unit: Annotated[str, Key(known=tuple(UNITS))] = "s"
    """of a length of time, or of a time in numbers"""
    format: str | None = None
    """of a time, as Python spells it; without it such as 2026-11-20 21:33:45, or seconds since 1970"""
    factor: Annotated[float, Key("times", read=_factor)] = 1.0
    """numbers are multiplied by it"""
    pattern: Annotated[str | None, Key(read=_pattern)] = None
    """the first group of this regular expression is the value"""
    text: bool | None = None
    """whether the values are names, as those of user, group, executable, queue and partition are without it"""
    constant: int | float | str | None = None
    """in place of a column: the value of all jobs"""

    def __post_init__(self) -> None:
        if (self.column is None) == (self.constant is None):
            raise LogError("needs either a column or a constant")


INSTEAD = {
    "procs": "allocated_procs or requested_procs (the size of the machine is a key procs above [columns])",
    "believed": "requested",
    "job": "job_id",
}
"""Of names that mean something else in workloads and filters, what is meant."""


def _right_name(name: str) -> str:
    lower = re.sub(r"\W+", "_", name).strip("_").lower()
    if lower in INSTEAD:
        return f", did you mean {INSTEAD[lower]}?"
    known = [*SWF_BY_NAME, *TIMES]
    near = [lower] if is_further_name(lower) or lower in known else difflib.get_close_matches(lower, known, n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else ""


def _meant(there: Collection[str], *lacking: str) -> str:
    """The question whether a further column was to be one of those that are lacking; empty if none is called alike.

    >>> _meant(["submit", "allocated_proc"], "allocated_procs", "requested_procs")
    "; did you mean allocated_procs by 'allocated_proc'?"
    """
    for name in sorted(there):
        near = difflib.get_close_matches(name, lacking, n=1, cutoff=0.7) if name not in SWF_BY_NAME and name not in TIMES else []
        if near:
            return f"; did you mean {near[0]} by {name!r}?"
    return ""


def _sources(given: Mapping[str, str | Source]) -> dict[str, Source]:
    """The source of each column, of which a title alone is one."""
    sources = {}
    for name, one in given.items():
        if name == "status":
            raise LogError("status goes into a table [status]")
        if not (name in SWF_BY_NAME or name in TIMES or is_further_name(name)):
            right = _right_name(name) or "; use lower case letters, digits and underscores"
            raise LogError(f"{name!r} is no name for a column{right}", "unknown_column")
        source = Source(one) if isinstance(one, str) else one
        sources[name] = replace(source, text=name in TEXTS if source.text is None else source.text)
        if sources[name].text and name in (*TIMES, *SPANS):
            raise LogError(f"{name} is a time, so it has no text = true")
    return sources


@dataclass(frozen=True)
class Status:
    """How jobs ended: which words of a column mean what."""

    column: str
    """its title in the table"""
    completed: Words = ()
    failed: Words = ()
    cancelled: Words = ()
    pending: Words = ()
    """not jobs yet"""
    running: Words = ()
    other: Literal["completed", "failed", "cancelled", "pending", "running"] | None = None
    """what all other words mean; without it they are bad lines"""

    @property
    def kinds(self) -> dict[str, int]:
        """The number of each word, as in `STATUS`."""
        return {str(word): number for kind, number in STATUS.items() for word in getattr(self, kind)}

    def kind_of(self, text: str) -> int | None:
        """The number of a text: by the word, else without regard to capitals, else by its first word, as in CANCELLED by 1000, CANCELLED+.

        >>> status = Status("state", completed=("COMPLETED",), cancelled=("CANCELLED",))
        >>> status.kind_of("Completed"), status.kind_of("CANCELLED by 1000"), status.kind_of("lost")
        (1, 5, None)
        """
        words = self.kinds
        loose = {word.lower(): number for word, number in words.items()}
        first = re.split(r"[ +]", text.lower(), maxsplit=1)[0]
        return words.get(text, loose.get(text.lower(), loose.get(first)))


@dataclass(frozen=True)
class About:
    """Which published data set a mapping is for, and how a file of it is known."""

    title: str
    page: str
    """where the data set is"""
    source: str
    """where its columns are described"""
    note: str = ""
    """what was assumed, and what is missing"""
    power: str = ""
    """the column that has power"""
    size: str = ""
    """of the files, as the source says"""
    licence: str = ""
    """or what the source asks of those who use it"""
    zenodo: int | None = None
    """the number of its record at Zenodo, which says what its files and its licence are"""
    files: tuple[str, ...] = ()
    """where its files are, if it is nowhere at Zenodo"""
    marks: tuple[str, ...] = ()
    """columns by which a table is known to be of this data set"""
    line: Annotated[str | None, Key(read=_expression)] = None
    """in place of marks, for files without a heading: what all lines look like, a regular expression"""


@dataclass(frozen=True)
class Join:
    """Another table of a folder that says more of the jobs, in several rows for each."""

    name: str
    """what its columns are called: `nodes.energy` is the column energy of the join nodes"""
    file: str
    """of the folder; `*` stands for anything"""
    key: str
    """the column by which the rows of a job are found, in both tables"""
    sums: Annotated[tuple[str, ...], Key("sum")] = ()
    """columns of which a job gets the sum of what is known"""
    most: tuple[str, ...] = ()
    """columns of which a job gets the largest value"""


@dataclass(frozen=True)
class TableMapping:
    """What the columns of a table mean; raises LogError where they do not suffice for a log."""

    columns: Annotated[Mapping[str, Source], Key(takes=Mapping[str, str | Source], read=_sources)]
    """of each column of a log where it comes from: a title, or a table"""
    status: Status | None = None
    time_zone: Annotated[str | None, Key(read=parse_zone)] = None
    """of times without one, such as Europe/Stockholm"""
    relative_times: bool = False
    """whether times count from an unknown beginning"""
    procs: Annotated[int | None, Key(least=1)] = None
    """processors of the machine"""
    computer: str | None = None
    """its name"""
    delimiter: Annotated[str, Key(least=1, most=1)] = ","
    """between the columns of CSV; a blank stands for any number of blanks"""
    titles: tuple[str, ...] = ()
    """of the columns, if the file has no line with them"""
    comment: str | None = None
    """lines that begin with it are left out"""
    table: str | None = None
    """of a folder of several tables: the file with a row for each job; `*` stands for anything"""
    joins: Annotated[tuple[Join, ...], Key("join")] = ()
    """further tables of that folder"""
    about: About | None = None

    def __post_init__(self) -> None:
        there = set(self.columns)
        if "submit" not in there and not {"start", "wait"} <= there:
            lacks = (
                f"there is no submit (nor start and wait); a log needs the times of submission{_meant(there, 'submit', 'start', 'wait')}"
            )
            raise LogError(f"columns: {lacks}")
        if "runtime" not in there and not {"start", "end"} <= there:
            raise LogError(f"columns: there is no runtime (nor start and end){_meant(there, 'runtime', 'start', 'end')}")
        if not {"allocated_procs", "requested_procs"} & there:
            size = "allocated_procs", "requested_procs"
            raise LogError(f"columns: there is neither {' nor '.join(size)}{_meant(there, *size)}")

    def restricted(self, titles: Collection[str]) -> TableMapping:
        """The mapping without the columns that a table with these titles does not have; raises LogError if it does not suffice.

        A title may have other capital letters and signs than the mapping's.
        """
        by_plain = {plain_title(title): title for title in reversed(list(titles))} | {title: title for title in titles}

        def title_of(column: str) -> str | None:
            return by_plain.get(column, by_plain.get(plain_title(column)))

        kept = {
            name: replace(one, column=one.column and title_of(one.column))
            for name, one in self.columns.items()
            if one.column is None or title_of(one.column) is not None
        }
        status = None if self.status is None else title_of(self.status.column)
        return replace(self, columns=kept, status=None if status is None or self.status is None else replace(self.status, column=status))

    @property
    def header(self) -> dict[str, str]:
        """What it says of the machine, under the keys of a header."""
        said = {"MaxProcs": self.procs, "Computer": self.computer and " ".join(self.computer.split())}
        return {key: str(value) for key, value in said.items() if value}


def plain_title(title: str) -> str:
    """A title without capital letters and signs.

    >>> plain_title("Job ID")
    'jobid'
    """
    return re.sub(r"[^a-z0-9]", "", title.lower())


def as_text(mapping: TableMapping) -> str:
    """The mapping as a TOML file."""
    plain = {
        name: replace(source, text=None if source.text == (name in TEXTS) else source.text) for name, source in mapping.columns.items()
    }
    zone = mapping.time_zone
    if zone is not None and zone.lstrip("+-").isdecimal():  # an offset, s
        zone = f"{'-' if int(zone) < 0 else '+'}{abs(int(zone)) // 3600:02d}:{abs(int(zone)) // 60 % 60:02d}"
    return to_toml(replace(mapping, columns=plain, time_zone=zone), {})


MAPPING_FILE = TomlFile(TableMapping, "a mapping, a TOML file", "the guide on logs of clusters", LogError)
