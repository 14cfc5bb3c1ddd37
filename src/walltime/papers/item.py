"""An item: one table or figure of a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from walltime.papers.names import PAPERS
from walltime.papers.results import Part
from walltime.papers.study import Study


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, and the function that makes it from a study."""

    paper: str
    """its name, as mualem01"""
    name: str
    """as printed: F4 for Fig. 4, T1 for Table 1; a word for items without a number"""
    title: str
    run: Callable[[Study], Sequence[Part]]
    where: str = ""
    """its input, if not logs: worked examples, a formula, workload models"""

    @property
    def needs_log(self) -> bool:
        """Whether its input is logs."""
        return not self.where

    def place(self) -> tuple[int, int, int, str]:
        """Sorts by the papers' years; tables first, then figures, then the rest, each by number."""
        paper = PAPERS.index(self.paper)
        match = re.fullmatch(r"([TF])(\d+)(\w*)", self.name)
        if match is None:
            return paper, 3, 0, self.name
        return paper, 1 if match[1] == "T" else 2, int(match[2]), match[3]
