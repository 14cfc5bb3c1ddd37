"""What the columns of a table mean: a mapping, from TOML or of a known format."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from walltime.errors import LogError, PolicyError, shown
from walltime.files import printable
from walltime.logs.clock import parse_zone
from walltime.logs.joblog import is_further_name
from walltime.workload import SWF_BY_NAME

TIMES = ("submit", "eligible", "start", "end")
"""Columns that are times of day."""
SPANS = ("wait", "runtime", "requested", "cpu_time", "think_time")
"""Columns that are lengths of time."""
TEXTS = ("user", "group", "executable", "queue", "partition")
"""Columns that are names."""
UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
STATUS = {"completed": 1, "failed": 0, "cancelled": 5, "pending": -10, "running": -11}
"""Kinds of status: the numbers of the Standard Workload Format, and those of jobs that have not ended."""
KEYS = ("columns", "status", "time_zone", "relative_times", "procs", "computer", "delimiter")


@dataclass(frozen=True)
class Source:
    """Where the values of a column come from.

    `column`: its title in the table; None for a `constant`. `unit`: of a length of time or a time in numbers. `format`: of a time, as
    Python spells it. `factor`: numbers are multiplied by it. `pattern`: the first group of this expression is the value. `text`: the
    values are names.
    """

    column: str | None
    unit: str = "s"
    format: str | None = None
    factor: float = 1.0
    pattern: str | None = None
    text: bool = False
    constant: Any = None


@dataclass(frozen=True)
class TableMapping:
    """What the columns of a table mean; `status`: the kind of each word in `status_column`, `other`: that of all others."""

    columns: Mapping[str, Source]
    status_column: str | None = None
    status: Mapping[str, int] = field(default_factory=dict)
    other: int | None = None
    time_zone: str | None = None
    relative_times: bool = False
    header: Mapping[str, str] = field(default_factory=dict)
    delimiter: str = ","


def read_mapping(path: str) -> TableMapping:
    """The mapping in a TOML file; raises LogError, one line that names the key that is wrong."""
    where = printable(path)
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "it is no text").lower()
        raise LogError(f"{where}: the mapping cannot be read ({reason}); name a TOML file") from error
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists thousands deep
        raise LogError(f"{where}: the mapping is no TOML ({' '.join(str(error).split())}); see the guide on logs of clusters") from error
    return _Parser(where).mapping(content)


class _Parser:
    def __init__(self, where: str) -> None:
        self.where = where

    def wrong(self, key: str, why: str) -> LogError:
        return LogError(f"{self.where}: {printable(key)}: {why}")

    def mapping(self, content: Mapping[str, Any]) -> TableMapping:
        for key in content:
            if key not in KEYS:
                raise self.wrong(key, f"is unknown; the keys are {', '.join(KEYS)}")
        columns = self.table(content.get("columns"), "columns")
        sources = {name: self.source(name, value) for name, value in columns.items()}
        missing = [name for name in ("submit",) if name not in sources and not {"start", "wait"} <= set(sources)]
        if missing:
            raise self.wrong("columns", "there is no submit (nor start and wait); a log needs the times of submission")
        if "runtime" not in sources and not {"start", "end"} <= set(sources):
            raise self.wrong("columns", "there is no runtime (nor start and end)")
        if not {"allocated_procs", "requested_procs"} & set(sources):
            raise self.wrong("columns", "there is neither allocated_procs nor requested_procs")
        status_column, words, other = self.status(content.get("status"))
        zone = self.text(content, "time_zone", "time_zone")
        if zone is not None:
            try:
                zone = parse_zone(zone)
            except PolicyError as error:
                raise self.wrong("time_zone", str(error)) from None
        header = {}
        if "procs" in content:
            size = content["procs"]
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise self.wrong("procs", f"is {shown(size)}, it must be a whole number of at least 1")
            header["MaxProcs"] = str(size)
        if computer := self.text(content, "computer", "computer"):
            header["Computer"] = " ".join(computer.split())
        relative = content.get("relative_times", False)
        if not isinstance(relative, bool):
            raise self.wrong("relative_times", "must be true or false")
        delimiter = self.text(content, "delimiter", "delimiter") or ","
        if len(delimiter) != 1:
            raise self.wrong("delimiter", f"is {shown(delimiter)}, it must be one character")
        return TableMapping(sources, status_column, words, other, zone, relative, header, delimiter)

    def source(self, name: str, value: Any) -> Source:
        key = f"columns.{name}"
        if name == "status":
            raise self.wrong(key, "goes into a table [status]")
        if not (name in SWF_BY_NAME or name in TIMES or is_further_name(name)):
            raise self.wrong(key, "is no name for a column; use lower case letters, digits and underscores")
        if isinstance(value, str):
            return Source(value, text=name in TEXTS)
        table = self.table(value, key)
        known = {"column", "constant", "unit", "format", "times", "pattern", "text"}
        for word in table:
            if word not in known:
                raise self.wrong(f"{key}.{word}", f"is unknown; the keys are {', '.join(sorted(known))}")
        if ("column" in table) == ("constant" in table):
            raise self.wrong(key, "needs either a column or a constant")
        unit = self.text(table, "unit", key) or "s"
        if unit not in UNITS:
            raise self.wrong(f"{key}.unit", f"is {shown(unit)}; units are {', '.join(UNITS)}")
        factor = table.get("times", 1)
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 2**40:
            raise self.wrong(f"{key}.times", f"is {shown(factor)}, it must be a positive number")
        pattern = self.text(table, "pattern", key)
        if pattern is not None:
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise self.wrong(f"{key}.pattern", f"is no regular expression ({error})") from None
            if groups != 1:
                raise self.wrong(f"{key}.pattern", "must have one group, in parentheses")
        constant = table.get("constant")
        if constant is not None and (isinstance(constant, bool) or not isinstance(constant, int | float | str)):
            raise self.wrong(f"{key}.constant", f"is {shown(constant)}, it must be a number or a text")
        text = table.get("text", name in TEXTS)
        if not isinstance(text, bool) or (text and name in (*TIMES, *SPANS)):
            raise self.wrong(f"{key}.text", "must be true or false, and not for times")
        return Source(self.text(table, "column", key), unit, self.text(table, "format", key), float(factor), pattern, text, constant)

    def status(self, value: Any) -> tuple[str | None, dict[str, int], int | None]:
        if value is None:
            return None, {}, None
        table = self.table(value, "status")
        words: dict[str, int] = {}
        for kind, listed in table.items():
            if kind in ("column", "other"):
                continue
            if kind not in STATUS:
                raise self.wrong(f"status.{kind}", f"is unknown; the keys are column, other, {', '.join(STATUS)}")
            if not isinstance(listed, list) or not all(isinstance(word, str | int) for word in listed):
                raise self.wrong(f"status.{kind}", "must be a list of words")
            words |= {str(word): STATUS[kind] for word in listed}
        other = self.text(table, "other", "status")
        if other is not None and other not in STATUS:
            raise self.wrong("status.other", f"is {shown(other)}; it must be one of {', '.join(STATUS)}")
        column = self.text(table, "column", "status")
        if column is None:
            raise self.wrong("status.column", "is missing")
        return column, words, None if other is None else STATUS[other]

    def table(self, value: Any, key: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(key, "is missing" if value is None else "must be a table")
        return value

    def text(self, table: Mapping[str, Any], name: str, key: str) -> str | None:
        value = table.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key if key == name else f"{key}.{name}", f"is {shown(value)}, it must be a text")
        return value
