"""Read the numbers that the papers print from `printed.toml` in each paper's folder; the code contains none of them."""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from walltime.errors import PolicyError

Row = Mapping[str, Any]


PAPERS = tuple(
    sorted(
        (folder.name for folder in files("walltime.papers").iterdir() if folder.joinpath("printed.toml").is_file()),
        key=lambda paper: (int(paper[-2:]) - 70) % 100,  # two digits are a year from 1970 on
    )
)
"""The papers' names, first author and year: the folders here that have printed numbers, by year."""


def paper_name(text: str) -> str:
    """Return the name of a paper as it is spelled here; raises PolicyError for an unknown one.

    >>> paper_name("Mualem01 ")
    'mualem01'
    """
    name = text.strip().lower()
    if name not in PAPERS:
        raise PolicyError(f"unknown paper {text!r}. Valid papers: {', '.join(PAPERS)}", "unknown_paper")
    return name


def complete_paper(incomplete: str) -> list[str]:
    """Return the names of papers that begin with this text."""
    return [name for name in PAPERS if name.startswith(incomplete)]


@dataclass(frozen=True)
class PrintedTable:
    """A table of a paper: one mapping from column to value for each row."""

    title: str
    source: str
    rows: Sequence[Row]
    note: str = ""

    def find(self, **where: Any) -> Row | None:
        """Return the first row with these values; None if there is none."""
        return next((row for row in self.rows if all(row.get(name) == value for name, value in where.items())), None)

    def value(self, column: str, **where: Any) -> float | None:
        """Return the number in this column of the row with these values; None if none is printed."""
        row = self.find(**where)
        number = None if row is None else row.get(column)
        return float(number) if isinstance(number, int | float) else None


@dataclass(frozen=True)
class Printed:
    """The printed numbers of one paper."""

    paper: str
    """its name, such as mualem01"""
    title: str
    source: str
    """authors, venue and year"""
    logs: Mapping[str, Mapping[str, Any]]
    """each log: its file names, machine, jobs, load, and other details in the paper"""
    tables: Mapping[str, PrintedTable]
    criteria: Mapping[str, float]
    """relative deviations within which a number counts as reproduced"""
    notes: Mapping[str, Sequence[str]]
    """for each item, the known causes of deviations"""


@functools.cache
def printed(paper: str) -> Printed:
    """Return the printed numbers of a paper, by name; raises PolicyError for an unknown one.

    >>> printed("mualem01").tables["T3"].value("value", log="KTH", policy="easy", estimates="user", metric="slowdown")
    84.0
    """
    name = paper_name(paper)
    given = tomllib.loads(files("walltime.papers").joinpath(name, "printed.toml").read_text(encoding="utf-8"))
    tables = {}
    for number, table in given.get("tables", {}).items():
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        tables[number] = PrintedTable(table["title"], table["source"], rows, table.get("note", ""))
    head = given["paper"]
    criteria = {"response": 0.02, "slowdown": 0.12} | given.get("criteria", {})
    return Printed(name, head["title"], head["source"], given.get("logs", {}), tables, criteria, given.get("notes", {}))
