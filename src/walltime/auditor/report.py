"""What an audit has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walltime.tables import Facts, Table


@dataclass(frozen=True)
class Violation:
    """A violated rule, with its time and jobs."""

    rule: str
    message: str
    jobs: tuple[int, ...]
    time: int


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit; `violations` holds all violations, the earliest first.

    `skipped`: rules that hold for such a schedule and could not be checked, and why. `assumed`: what was taken from the schedule itself.
    """

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    skipped: Mapping[str, str]
    jobs: int
    assumed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checked rules hold."""
        return not self.violations

    @property
    def first(self) -> Violation | None:
        """The earliest violation."""
        return self.violations[0] if self.violations else None

    @property
    def counts(self) -> dict[str, int]:
        """Number of violations of each rule."""
        return dict(Counter(v.rule for v in self.violations))

    def as_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        first = self.first
        return {
            "ok": self.ok,
            "jobs": self.jobs,
            "violations": self.counts,
            "first": None
            if first is None
            else {"rule": first.rule, "time": first.time, "jobs": list(first.jobs), "message": first.message},
            "checked": list(self.checked),
            "skipped": dict(self.skipped),
            "assumed": list(self.assumed),
        }

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        rows = [
            [rule, f"{count:,}", next(v.message for v in self.violations if v.rule == rule)] for rule, count in sorted(self.counts.items())
        ]
        if rows:
            return Table(["rule", "broken", "first"], rows, str(self))._repr_html_()
        return Facts(f"ok: {self}", [("rules checked", f"{len(self.checked)}"), ("not checked", f"{len(self.skipped)}")])._repr_html_()

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        if self.first is not None:
            return f"{self.first.rule} at {self.first.time}: {self.first.message}"
        said = f"{self.jobs:,} jobs, {len(self.checked)} rules checked, none broken"
        if self.skipped:
            said += f"; {len(self.skipped)} not checked: {', '.join(self.skipped)}"
        return "; ".join((said, *self.assumed))
