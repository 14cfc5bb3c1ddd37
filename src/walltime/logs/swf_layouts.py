"""Fields beyond the 18th of the Standard Workload Format in the layouts that are in use: which one it is, and what its texts say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.logs.rules import Rule
from walltime.workload import MISSING

__all__ = ["DERIVED", "DESCRIPTOR_DIFFERS", "EXCLUSIVE", "LAYOUTS", "Layout", "layout_of", "name_by_content"]

Array = np.ndarray

DESCRIPTOR_DIFFERS = Rule(
    "descriptor_differs",
    "notice",
    "The nodes times processors of the job's descriptor are not the processors that its field says; the field is taken.",
)
DERIVED = ("nodes", "procs_per_node", "exclusive")
"""Columns that descriptors are read into."""
EXCLUSIVE = {"excl": 1, "exclusive": 1, "shared": 0, "share": 0}
_META = re.compile(r"(?P<nodes>\d{1,9}):ppn=(?P<procs>\d{1,9})(?::.*)?")
_FRONTIER = re.compile(r"(?P<machine>[\w.-]+):(?P<mode>excl|exclusive|share|shared):(?P<nodes>\d{1,9})x(?P<procs>\d{1,9})")
_NODE_LIST = re.compile(r"\{[\w.-]+(?:,[\w.-]+)*,?\}|\{\}")
_SAMPLE = 1000
_MOSTLY = 0.9


@dataclass(frozen=True)
class Layout:
    """A layout of further fields: its name, and what the descriptor of a job looks like, with groups `nodes` and `procs` (and `mode`)."""

    name: str
    descriptor: re.Pattern[str]

    def columns_of(self, numbers: Array, texts: Sequence[str]) -> dict[str, Array]:
        """What the descriptors say: `nodes`, `procs_per_node`, and `exclusive` (1 or 0) if they say it; -1 where there is none."""
        said = [self.descriptor.fullmatch(text) for text in texts]
        tables = {
            "nodes": [int(match["nodes"]) if match else MISSING for match in said],
            "procs_per_node": [int(match["procs"]) if match else MISSING for match in said],
        }
        if "mode" in self.descriptor.groupindex:
            tables["exclusive"] = [EXCLUSIVE[match["mode"]] if match else MISSING for match in said]
        place = np.maximum(numbers, 0)
        return {name: np.array([MISSING, *values], np.int64)[place] for name, values in tables.items()}


LAYOUTS = (Layout("MetaCentrum/CERIT", _META), Layout("Frontier", _FRONTIER))
"""The layouts that are known, by their descriptors."""


def layout_of(names: Mapping[str, tuple[str, ...]]) -> tuple[Layout, str] | None:
    """The layout of a log with these columns of texts, and the column of its descriptors; None if it is none of the known."""
    for layout in LAYOUTS:
        for column, texts in names.items():
            if _most_are(layout.descriptor, texts):
                return layout, column
    return None


def name_by_content(texts: Sequence[str]) -> str | None:
    """What a column of texts without a name in the header is called, if its texts tell."""
    if _most_are(_NODE_LIST, texts):
        return "node_list"
    return "queue_name" if len(texts) <= _SAMPLE and _most_are(re.compile(r"[A-Za-z][\w.@-]*"), texts) else None


def _most_are(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    some = texts[:_SAMPLE]
    return bool(some) and sum(pattern.fullmatch(text) is not None for text in some) >= _MOSTLY * len(some)
