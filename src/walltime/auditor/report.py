"""What an audit checks, and what it says: the rules, declared once, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walltime.tables import Facts, Table

ALWAYS = {
    "unknown_job": "every row is a job of the workload",
    "duplicate_job": "no job stands in the schedule twice",
    "missing_job": "every job of the workload stands in the schedule",
    "submit_differs": "submit is that of the workload",
    "procs_differ": "processors are those of the workload",
    "requested_differs": "the request is that of the workload",
    "believed_differs": "the believed runtime is that of the options: the estimate, or what the predictor says",
    "start_before_submit": "no job starts before it is submitted",
    "end_differs": "each job ends after exactly its effective runtime, which the log and the overrun rule decide",
    "over_limit": "no job runs past its kill limit",
    "capacity": "at no instant are more processors in use than the machine has; a job of no length starts only while its own are free",
}
"""What holds for every schedule, whatever the policy."""
OF_POLICIES = {
    "head_waits": "the head of the queue starts when the policy starts it",
    "left_waiting": "no other job that the policy would start now is left waiting",
    "reservation_delayed": "no job starts that moves a reservation back",
    "reserved_start_missed": "no job waits past a reserved start that is kept for it",
    "out_of_turn": "no job starts where the policy does not start it",
    "reserved_start_differs": "the first reservation of each job is the one that the policy makes",
    "kind_wrong": "each start is labelled as what it is",
}
"""What policies promise. Each of them says which of these rules hold for it, and in which form (`Policy.promises`)."""
CHECKS = ALWAYS | OF_POLICIES
"""All rules for a machine that is a number of processors, and what they require."""


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
