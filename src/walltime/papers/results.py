"""The parts of an item of a paper: tables of numbers with the printed ones, figures, claims, notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Value:
    """One of our numbers, with the printed one, if any.

    `within`: the relative deviation up to which it counts as reproduced. `band`: the 5th and the 95th percentile of our number when the
    submit times are shaken; if the printed number lies inside, the deviation is run-to-run variation, not error.
    """

    ours: float
    printed: float | None = None
    within: float | None = None
    digits: int = 0
    band: tuple[float, float] | None = None

    @property
    def deviation(self) -> float | None:
        """Return our number divided by the printed number, minus 1; None if no number is printed."""
        if self.printed is None or self.printed == 0 or not math.isfinite(self.ours):
            return None
        return self.ours / self.printed - 1

    @property
    def verdict(self) -> str:
        """Return `reproduced`, `chaos` (the printed number lies within our band), `off`, or empty if undecided.

        >>> Value(15_745, printed=15_568, within=0.02).verdict, Value(92.9, 81, 0.12, band=(80, 100)).verdict
        ('reproduced', 'chaos')
        """
        if self.deviation is None or self.within is None or self.printed is None:
            return ""
        if abs(self.deviation) <= self.within:
            return "reproduced"
        return "chaos" if self.band is not None and self.band[0] <= self.printed <= self.band[1] else "off"


Entry = str | int | float | Value | None
Rows = list[list[Entry]]


@dataclass(frozen=True)
class Table:
    """A table of texts and numbers; the CSV file has the same name."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    note: str = ""
    digits: int = 0
    """decimal places of floats that are not a `Value`"""
    words: bool = False
    """whether all cells are texts, which are left-aligned"""

    def values(self) -> list[Value]:
        """Return all numbers that have a printed counterpart."""
        return [entry for row in self.rows for entry in row if isinstance(entry, Value) and entry.printed is not None]


Data = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Chart:
    """A figure, and the numbers behind it: columns of equal length."""

    name: str
    figure: Figure
    caption: str
    data: Data


def by_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the columns of rows, by name, as the data of a chart.

    >>> by_column(["log", "jobs"], [("KTH", 1), ("CTC", 2)])
    {'log': ['KTH', 'CTC'], 'jobs': [1, 2]}
    """
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


class Claim(NamedTuple):
    """A claim of a paper, whether it holds here (None: undecided), and the supporting numbers."""

    claim: str
    holds: bool | None
    evidence: str


Part = Table | Chart | Claim | str
"""A part of an item's output; a text is a note on the others."""
Parts = Iterator[Part]
"""The output of an item, in any order: a result shows tables and charts first, then the claims, then the notes."""


@dataclass(frozen=True)
class Result:
    """A completed item: its input and its output."""

    item: str
    title: str
    where: str
    """its input, in words: the paper's log, another, or a generated workload"""
    parts: Sequence[Part]

    @property
    def shown(self) -> list[Table | Chart]:
        """Return the tables and charts among the parts."""
        return [part for part in self.parts if isinstance(part, Table | Chart)]

    @property
    def tables(self) -> list[Table]:
        """Return the tables among the parts."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def claims(self) -> list[Claim]:
        """Return the claims among the parts; numpy's truth values become Python's."""
        return [one._replace(holds=None if one.holds is None else bool(one.holds)) for one in self.parts if isinstance(one, Claim)]

    @property
    def notes(self) -> list[str]:
        """Return the notes among the parts."""
        return [part for part in self.parts if isinstance(part, str)]

    def values(self) -> list[Value]:
        """Return all numbers that have a printed counterpart."""
        return [value for table in self.tables for value in table.values()]


@dataclass(frozen=True)
class Tally:
    """Counts of judged numbers and of decided claims, of one result or of several."""

    verdicts: Counter[str]
    holding: int
    decided: int

    @classmethod
    def of(cls, *results: Result) -> Tally:
        """Count the verdicts and the claims of these results."""
        verdicts = Counter(value.verdict for result in results for value in result.values() if value.verdict)
        decided = [holds for result in results for _, holds, _ in result.claims if holds is not None]
        return cls(verdicts, sum(decided), len(decided))

    @property
    def numbers(self) -> str:
        """Return how many of the judged numbers are reproduced, as text; empty if there are none."""
        return f"{self.verdicts['reproduced']} of {self.verdicts.total()}" if self.verdicts else ""

    @property
    def claims(self) -> str:
        """Return how many of the decided claims hold, as text; empty if there are none."""
        return f"{self.holding} of {self.decided}" if self.decided else ""
