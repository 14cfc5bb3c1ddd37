"""The result of an inference: the accepted rules with their evidence, and the machine file that contains them."""

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from walltime.files import whole_file
from walltime.inference.one_step import Score
from walltime.inference.order_choice import OrderChoice
from walltime.inference.step_agreement import GroupAgreement
from walltime.machine import NO_OVERHEAD, Machine, write_held, write_machine
from walltime.machine.tables import RESOURCES
from walltime.provenance import plain
from walltime.wording import counted, human_percent, listed, sanitize
from walltime.workload import Array, Workload


@dataclass(frozen=True)
class InferredRule:
    """An accepted rule: its text, the evidence, and its gain in agreement on held-out folds.

    `gain`: increase of the F1 score of prompt starts in the held-out folds when the rule was added (for overheads: of starts within 30 s).
    `error`: its standard error, a jackknife over weeks. `better`, `worse`: the number of held-out weeks with a gain or a loss. `since`,
    `until`: the log times, s, between which the rule applies; None for no bound.
    """

    kind: str
    text: str
    evidence: str
    gain: float
    error: float
    better: int
    worse: int
    since: int | None = None
    until: int | None = None

    @property
    def agreement(self) -> str:
        """Return the gain ± two standard errors, as text."""
        return f"{self.gain:+.3f} ± {2 * self.error:.3f}"

    @property
    def weeks(self) -> str:
        """Return the numbers of held-out weeks with a gain and with a loss, as text."""
        return f"better in {counted(self.better, 'week')}, worse in {self.worse}"


@dataclass(frozen=True)
class MonthAgreement:
    """One-step agreement over the held-out starts of a month, without and with the rules."""

    month: str
    before: Score
    after: Score


@dataclass(frozen=True)
class FreeRun:
    """A free simulation of the whole log, compared with the record over the held-out jobs; waits in s.

    `within`: share of jobs that start within 10 min of their recorded start. `trusted_from`: the calibration error of the mean wait, s, and
    `doubt`: the reason if it is not usable, both as in `calibrate`.
    """

    machine: str
    jobs: int
    mean_recorded: float
    mean_simulated: float
    rank_correlation: float
    within: float
    trusted_from: float
    doubt: str = ""


@dataclass(frozen=True)
class Inference:
    """The rules of a site, inferred from its log.

    `machine`: the machine with all rules. `before`, `after`: scores over held-out jobs under the plain policy and with all rules;
    `hindsight`: the score with eligible times inferred from the recorded starts. `free`: free simulations of the whole log: on the plain
    machine; with the rules; with the rules, compared with its own shaken copy (30 s), which is the best possible agreement; with the rules
    and the eligible times. `delay`: 5th percentile, median and 95th percentile of the time from a proposal to the recorded start, s.
    `misfits`: share of recorded starts with too few free processors. `refused`: the reason if nothing was inferred. `stopped`: the step at
    which the search was interrupted. `held`: time from submission to eligibility, s, by job number, for jobs that were not eligible at
    submission. `groups`: agreement over held-out jobs by class, user and month. `order`: how well queue orders predict which job starts
    next; None with too few choices. Inferred outages are outages during the log; future outages are unknown.
    """

    log: str
    rules: Sequence[InferredRule]
    machine: Machine
    before: Score
    after: Score
    hindsight: Score
    months: Sequence[MonthAgreement]
    delay: tuple[float, float, float]
    misfits: float
    clock: int
    unix_start_time: int | None = None
    notes: Sequence[str] = ()
    refused: str = ""
    stopped: str = ""
    free: tuple[FreeRun, ...] = ()
    groups: Sequence[GroupAgreement] = ()
    held: Mapping[int, int] = field(default_factory=dict)
    order: OrderChoice | None = None

    def period_of(self, rule: InferredRule) -> str:
        """Return the period in which a rule applies, as text to append to its description; empty if it always applies."""
        return period_of(self.unix_start_time, rule.since, rule.until)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON; the machine is the text of its file."""
        others = ("log", "refused", "stopped", "misfits", "clock", "unix_start_time", "delay", "notes")
        values = {name: getattr(self, name) for name in others}
        values |= {name: getattr(self, name).as_dict() for name in ("before", "after", "hindsight")}
        values |= {name: list(map(asdict, getattr(self, name))) for name in ("rules", "free")}
        values["months"] = [{"month": one.month, "before": one.before.as_dict(), "after": one.after.as_dict()} for one in self.months]
        order = None if self.order is None else asdict(self.order)
        record: dict[str, Any] = plain(
            values | {"machine": site_text(self), "groups": [one.as_dict() for one in self.groups], "order": order}
        )
        return record


def write_site(path: str | os.PathLike[str], inference: Inference, eligible: bool = False) -> list[Path]:
    """Write the inferred machine file, with the evidence of each rule as a comment above it; return the paths written.

    With `eligible`, also write a table `NAME.held.csv` of how long jobs seem to have been held before they became eligible; the machine
    file refers to it with the key `eligible`. Raises OutputError.
    """
    written = Path(path)
    if not eligible:
        with whole_file(written) as file:
            file.write(site_text(inference).encode())
        return [written]
    table = write_held(written.with_suffix(".held.csv"), inference.held)
    known = replace(inference, machine=replace(inference.machine, eligible=table.name))
    return [*write_site(written, known), table]


def unread_of(machine: Machine | None) -> list[str]:
    """Return a sentence, in a list, on the contents of a machine file that inference ignores; an empty list if there are none."""
    if machine is None:
        return []
    sizes = sorted({pool.procs for pool in machine.pools})
    nodes = ", ".join(f"{size:,}" for size in sizes)
    there: dict[str, Any] = {
        f"{len(machine.pools)} pools": len(machine.pools) > 1,
        f"{len(machine.partitions)} partitions": len(machine.partitions) > 1,
        "overheads": machine.overhead != NO_OVERHEAD,
        "eligible times": machine.eligible is not None,
        "outages": machine.outages,
        "limits": machine.limits,
        "windows": machine.windows,
        "shares": machine.shares,
        "qualities of service": machine.qos,
        "preemption": machine.preempts,
        "settings of Slurm": machine.slurm,
        "the policy": machine.policy is not None,
        f"nodes of different sizes ({nodes} processors; parts are counted in processors)": len(sizes) > 1,
    }
    ignored = ", ".join(name for name, value in there.items() if value)
    unread = (
        f"Inference uses only the number of processors of {sanitize(machine.name, 100)}, and treats them as one pool unless the log shows "
        f"separate parts. It ignores the other contents of the machine file: {ignored}."
    )
    return [unread] if ignored else []


def preemption_note(workload: Workload, apart: Array) -> str:
    """Return a sentence on the treatment of preemption; `apart`: the jobs (bool) that may preempt others."""
    joined = int((workload.columns.get("earlier_runtime", np.zeros(1)) > 0).sum())
    runs = "Each run of a preempted job counts as a job"
    if joined:
        runs = f"The earlier runs of {counted(joined, 'job')} are missing from the log, so their processors count as free"
    return (
        f"Inference does not model preemption. Rules are neither chosen nor judged by the {counted(int(apart.sum()), 'job')} that may "
        f"preempt others ({human_percent(100 * float(apart.mean()))}), which only occupy processors. {runs}."
    )


def unmodelled(workload: Workload) -> str:
    """Return a sentence on the requests in a log that inference does not model; empty if there are none."""
    columns = workload.columns
    there = {"partitions": len(np.unique(columns.get("partition", ()))) > 1}
    there |= {RESOURCES[name]: bool((columns[name] > 0).any()) for name in RESOURCES if name in columns}
    names = [name for name, value in there.items() if value]
    if not names:
        return ""
    return f"The jobs request {listed(names)}, which inference does not model: they may explain the waits that no rule explains."


def site_text(inference: Inference) -> str:
    """Return the text of the machine file."""
    after, (low, middle, high) = inference.after, inference.delay
    sentences = [
        f"One-step agreement (match of decisions and recorded starts, F1 score): {after.prompt_f1:.3f} with these rules, "
        f"{inference.before.prompt_f1:.3f} without, on a part of the log that was not used to find them.",
        f"Given the recorded machine and queue at each instant, the policy {after.text}",
        f"Delay from decision to recorded start: {low:.0f} s (5th percentile), {middle:.0f} s (median), {high:.0f} s (95th percentile).",
        *inference.notes,
    ]
    wrapped = [line for one in sentences for line in textwrap.wrap(sanitize(one, 500), 130)]
    head = [f"# {line}" for line in (inference.machine.name, *wrapped)] + [""]
    left, lines = list(inference.rules), []
    for line in write_machine(inference.machine).splitlines():
        kind = ABOVE.get(line.partition("=")[0].strip())
        rule = next((rule for rule in left if rule.kind == kind), None)
        if rule is not None:
            left.remove(rule)
            lines.append(f"# {rule.text}: {rule.evidence}; agreement {rule.agreement}, {rule.weeks}{inference.period_of(rule)}")
        lines.append(line)
    return "\n".join([*head, *lines]) + "\n"


ABOVE = {
    "[[partition]]": "part",
    "[[outage]]": "outage",
    "[[window]]": "window",
    "[overhead]": "overhead",
    "[[limit]]": "limit",
    "policy": "policy",
}
"""Lines of the machine file, and the kind of rule that a comment above them describes."""


def period_of(unix_start_time: int | None, since: int | None, until: int | None) -> str:
    """Return the dates between which a rule applies, to be appended to its text; empty if it always applies."""
    times = [(word, time) for word, time in (("since", since), ("until", until)) if time is not None]
    return "".join(f", {word} {_date(unix_start_time, time)}" for word, time in times)


def _date(unix_start_time: int | None, time: int) -> str:
    """Return a log time as a UTC date or, if the log has no start date, in seconds."""
    return f"{time:,} s of the log" if unix_start_time is None else str(np.datetime64(unix_start_time + time, "s").astype("datetime64[D]"))
