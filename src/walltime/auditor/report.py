"""The rules of an audit, and its report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from walltime.tables import Facts, Table
from walltime.wording import counted, human_percent

if TYPE_CHECKING:
    from walltime.workload import Origin, Workload

ALWAYS = {
    "unknown_job": "every row is a job of the workload",
    "duplicate_job": "no job appears in the schedule twice",
    "missing_job": "every job of the workload appears in the schedule",
    "submit_differs": "submission times are the workload's",
    "procs_differ": "numbers of processors are the workload's",
    "requested_differs": "requests are the workload's",
    "planned_differs": "planned runtimes follow from the options: the estimate, or the prediction",
    "start_before_submit": "no job starts before it is submitted",
    "end_differs": "each job ends after exactly its effective runtime, which the log and the overrun rule decide",
    "over_limit": "no job runs past its kill limit",
    "capacity": "the jobs never use more processors than the machine has; a job of zero length starts only while enough are free",
}
"""Rules that hold under every policy, and their requirements."""
POLICY_RULES = {
    "head_waits": "the head of the queue starts when the policy starts it",
    "left_waiting": "no other job that the policy would start now is left waiting",
    "reservation_delayed": "no start delays a reservation",
    "reserved_start_missed": "no job waits past a reserved start that is kept for it",
    "out_of_turn": "no job starts where the policy does not start it",
    "reserved_start_differs": "the first reservation of each job is the one that the policy makes",
    "kind_wrong": "each start has the right label",
}
"""Rules that policies may guarantee, and their requirements; `Policy.promises` lists the rules of a policy in its own words."""
BOUNDS = {"overtaken_too_often": "no more jobs start before a job that arrived earlier than the policy allows"}
"""Rules of policies with a bound."""
CHECKS = ALWAYS | POLICY_RULES | BOUNDS
"""All rules for a machine with a single pool, and their requirements."""


_TIME = re.compile(r"\b(at|since|until) (\d+)\b(?! s)")
"""Matches a time in the message of a violation, in seconds of the log."""


@dataclass(frozen=True)
class Violation:
    """A violated rule, with its time and jobs."""

    rule: str
    message: str
    jobs: tuple[int, ...]
    time: int

    def told(self, origin: Origin) -> str:
        """Return the time and the message as text, with dates if the log has them."""

        def dated(found: re.Match[str]) -> str:
            time, preposition = int(found[2]), "" if found[1] == "at" else f"{found[1]} "
            if preposition == "" and time == self.time:
                return "then"
            if time > self.time and origin.when(time) == origin.when(self.time):
                return f"{preposition}{time - self.time} s later"
            return f"{found[1]} {origin.when(time)}"

        return f"{origin.when(self.time)}: {_TIME.sub(dated, self.message)}"


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit.

    `violations`: the earliest first. `checked`: the rules that were checked. `skipped`: the rules that apply but could not be checked, and
    the reason. `assumed`: assumptions of the audit, such as data that it took from the schedule itself. `decided`: the share of the events
    at which the policy's decisions were checked, 0 to 1; None without a policy or if the auditor has no rules for it.
    """

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    skipped: Mapping[str, str]
    jobs: int
    assumed: tuple[str, ...] = ()
    decided: float | None = None

    @property
    def ok(self) -> bool:
        """Return whether all checked rules hold; False if the policy's decisions should have been checked but were not."""
        return not self.violations and self.decided != 0

    @property
    def first(self) -> Violation | None:
        """Return the earliest violation, None without one."""
        return self.violations[0] if self.violations else None

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of violations of each rule."""
        return dict(Counter(v.rule for v in self.violations))

    def answer(self, name: str, workload: Workload, policy: str | None) -> str:
        """Return the result in a sentence; `name`: the file name of the schedule; `policy`: None if no guarantees were checked."""
        promised = (
            f"the guarantees of {policy}" if policy else "the rules common to all policies (without a policy, decisions are not checked)"
        )
        first, broken = self.first, len(self.violations)
        if first is None:
            unchecked = f"; {len(self.skipped)} could not be checked" if self.skipped else ""
            if self.decided == 0:
                kept = f"{name} breaks none of {len(self.checked)} rules, but the policy's decisions were not checked"
                return f"undecided: {kept}, so it is unknown whether it keeps {promised}{unchecked}."
            if self.decided is not None and self.decided < 1:
                unchecked += f"; decisions were checked at {human_percent(100 * self.decided)} of the events"
            return f"{name} keeps {promised}: none of {len(self.checked)} rules is broken by its {counted(self.jobs, 'job')}{unchecked}."
        return (
            f"{name} breaks {promised}: {len(self.counts)} of {len(self.checked)} rules, {counted(broken, 'time')} "
            f"in total, first at {first.told(workload.origin)}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON."""
        first = None if self.first is None else {name: getattr(self.first, name) for name in ("rule", "time", "jobs", "message")}
        return {
            "ok": self.ok,
            "decided": self.decided,
            "jobs": self.jobs,
            "violations": self.counts,
            "first": first and first | {"jobs": list(first["jobs"])},
            "checked": list(self.checked),
            "skipped": dict(self.skipped),
            "assumed": list(self.assumed),
        }

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        firsts = {v.rule: v.message for v in reversed(self.violations)}
        if firsts:
            rows = [[rule, f"{count:,}", firsts[rule]] for rule, count in sorted(self.counts.items())]
            return Table(["rule", "violations", "first violation"], rows, str(self))._repr_html_()
        facts = [("rules checked", f"{len(self.checked)}"), ("not checked", f"{len(self.skipped)}")]
        return Facts(f"{'ok' if self.ok else 'undecided'}: {self}", facts)._repr_html_()

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        if self.first is not None:
            return f"{self.first.rule} at {self.first.time}: {self.first.message}"
        result = f"{counted(self.jobs, 'job')}, {counted(len(self.checked), 'rule')} checked, none broken"
        if self.skipped:
            result += f"; {len(self.skipped)} not checked: {', '.join(self.skipped)}"
        if self.decided is not None and self.decided < 1:
            share = f"checked at {human_percent(100 * self.decided)} of the events" if self.decided else "not checked"
            result += f"; the policy's decisions were {share}"
        return "; ".join((result, *self.assumed))
