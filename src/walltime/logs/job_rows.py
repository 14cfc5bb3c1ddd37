"""Jobs collected one by one, for logs whose lines are too irregular to be read as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from walltime.errors import LogError
from walltime.logs.accounting import BadLines, Counts, make_log, nothing_left
from walltime.logs.input import LogFile
from walltime.logs.joblog import ReadOptions
from walltime.logs.names import Names
from walltime.logs.table import TableLog
from walltime.workload import MISSING

Log = TypeVar("Log", bound=TableLog)


class Odd(Exception):  # noqa: N818 (it never leaves the reader)
    """A line that is no record; the message says why."""


class JobRows:
    """The jobs of a log so far."""

    def __init__(self) -> None:
        self._columns: dict[str, list[float]] = {}
        self._texts: dict[str, list[str]] = {}
        self._rows = 0

    def add(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """One more job; its Unix times are `submit, eligible, start`, and -1 is unknown. All jobs have the same columns."""
        for name, number in numbers.items():
            self._columns.setdefault(name, []).append(number)
        for name, text in texts.items():
            self._texts.setdefault(name, []).append(text)
        self._rows += 1

    def log(self, kind: type[Log], file: LogFile, options: ReadOptions, counts: Counts, bad: BadLines) -> Log:
        """The log of these jobs. Raises LogError if there are none."""
        if not self._rows:
            raise LogError(nothing_left(file, counts, bad.lines))
        columns = {name: np.array(values) for name, values in self._columns.items()}
        names = {}
        for name, texts in self._texts.items():
            numbers = Names()
            columns[name], names[name] = numbers.numbers(texts), numbers.texts
        return make_log(
            kind,
            file,
            options,
            submit=columns.pop("submit"),
            eligible=columns.pop("eligible"),
            start=columns.pop("start"),
            runtime=columns.pop("runtime"),
            requested=columns.pop("requested"),
            columns=columns,
            names=names,
            counts=counts,
            bad_lines=bad.lines,
        )


def whole(text: str | None, name: str) -> int:
    """A whole number; -1 if missing. Raises Odd for anything else."""
    if text is None or text == "":
        return MISSING
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise Odd(f"{name} is {text[:30]!r}, it must be a whole number")
    return int(text)
