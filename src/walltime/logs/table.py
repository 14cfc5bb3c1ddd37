"""A log as a table: columns, a header, and the reader's counts; sufficient for most formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from walltime.errors import LogError
from walltime.logs.header import Header
from walltime.logs.joblog import BadLine, Partial, TooWide
from walltime.logs.rules import apply_rules
from walltime.logs.values import faults, narrowed
from walltime.workload import BELIEVED, MISSING, PROCS, SWF_BY_NAME, Column, Workload

Array = np.ndarray
OWN_NAMES = frozenset({*SWF_BY_NAME, PROCS.name, BELIEVED.name, "job", "and", "or", "not"})
"""Names that additional columns may not have: they have other meanings in workloads and filters."""


@dataclass(frozen=True, eq=False, repr=False)
class TableLog:
    """A log whose columns have been read and mapped to the common names by a reader.

    `columns`: by name, one entry per record in the order of the file; those of `walltime.workload.SWF_COLUMNS`, in their units,
    and others under the format's own names (int64 or float64, -1 is unknown). They become read-only int64, or float64 if a
    value is fractional; columns that are -1 everywhere are not stored. `header`: the log's description of itself. `names`: what
    the numbers 1, 2, ... of a column stand for, where the log has names. `dropped, changed, noticed`: the reader's counts, by rule.

    Raises LogError if the columns differ in length or contain invalid values.

    >>> log = TableLog(2, {"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2], "nodes": [1, 1]})
    >>> log.column("user").tolist(), log.to_workload(procs=4).columns["nodes"].tolist()
    ([-1, -1], [1, 1])
    """

    format: ClassVar[str] = "table"
    endings: ClassVar[tuple[str, ...]] = ()
    """file extensions to remove from the name of the log, besides `.gz`"""

    records: int
    columns: Mapping[str, Array]
    header: Header = field(default_factory=lambda: Header({}), kw_only=True)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    bad_lines: tuple[BadLine, ...] = field(default=(), kw_only=True)
    path: str = field(default="log", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    dropped: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    changed: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    noticed: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        given = {name: self._checked(name, values) for name, values in self.columns.items()}
        names = [*(name for name in SWF_BY_NAME if name in given), *(name for name in given if name not in SWF_BY_NAME)]
        object.__setattr__(self, "columns", MappingProxyType({n: given[n] for n in names if (given[n] != MISSING).any()}))
        for name, texts in self.names.items():
            if name in self.columns and self.columns[name].max() > len(texts):
                raise LogError(f"{name} has the number {self.columns[name].max()}, and {len(texts)} names")

    def __len__(self) -> int:
        return self.records

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.records:,} records>"

    @property
    def name(self) -> str:
        """File name without directory, `.gz` and the extension of the format."""
        file = Path(self.path).name
        short = file
        for ending in (".gz", *self.endings):
            if short.lower().endswith(ending):
                short = short[: -len(ending)]
        return short or file

    @property
    def header_lines(self) -> tuple[str, ...]:
        """The header as lines of the Standard Workload Format."""
        return tuple(f"; {key}: {line}" for key, values in self.header.items() for value in values for line in value.splitlines())

    @property
    def further_columns(self) -> tuple[str, ...]:
        """Names of the columns that the Standard Workload Format does not have."""
        return tuple(name for name in self.columns if name not in SWF_BY_NAME)

    def column(self, name: str) -> Array:
        """One column, an entry per record; all -1 if nothing is known. Raises KeyError for an unknown name."""
        if name in self.columns:
            return self.columns[name]
        known = dict.fromkeys([*SWF_BY_NAME, *self.further_columns])
        if name not in known:
            raise KeyError(f"{name} is no field of a log; the fields are {', '.join(known)}")
        return np.broadcast_to(np.int64(MISSING), self.records)

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """The jobs of the log that can be simulated, in order of arrival, with all changes counted in `origin`.

        `procs`: processors of the machine, else MaxProcs or MaxNodes of the header. `partial`: of an interrupted job, keep the
        `summary` or the `parts`. `too_wide`: `drop` jobs wider than the machine, `clip` them to it, or raise an `error`. A job
        has the number of processors allocated or, if unknown, requested; `requested_first` reverses this, which is open in the
        papers. The rules are listed in `walltime.logs.RULES`; if none dropped or moved a record, the workload shares its arrays
        with the log.

        Raises WorkloadError if the size of the machine is unknown, or no job is left.
        """
        return apply_rules(self, procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)

    def may_have(self, name: str) -> bool:
        """Whether a column may have this name."""
        return name in SWF_BY_NAME or is_further_name(name)

    def _checked(self, name: str, values: Array) -> Array:
        if not self.may_have(name):
            raise LogError(f"{name} is no field of a log; the fields are {', '.join(SWF_BY_NAME)}")
        array = np.asarray(values)
        if array.shape != (self.records,):
            raise LogError(f"{name} has shape {array.shape}; it must have one entry for each of the {self.records} records")
        if array.dtype.kind not in "iuf":
            raise LogError(f"{name} holds {array.dtype}; it must hold numbers")
        for mask, what in faults(SWF_BY_NAME.get(name) or Column(name, "float64", "", ""), array):
            if mask.any():
                row = int(np.argmax(mask))
                raise LogError(f"{name} of record {row + 1} is {array[row]}, it {what}")
        if array.dtype != np.int64:
            array = narrowed(array)
        array = array.view()
        array.flags.writeable = False
        return array


def is_further_name(name: str) -> bool:
    """Whether this is a valid name for a non-standard column: lower case, and usable in a filter."""
    return name.isidentifier() and name == name.lower() and name not in OWN_NAMES
