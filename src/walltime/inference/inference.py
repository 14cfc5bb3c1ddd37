"""What a log shows of its site's rules: the rules that were kept, their evidence, and the file that says them."""

from __future__ import annotations

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
from walltime.provenance import plain
from walltime.wording import sanitize


@dataclass(frozen=True)
class InferredRule:
    """A rule that was kept: what it says, the evidence, and what it adds to the agreement of what judges.

    `gain`: F1 of prompt starts in the folds that judge with the rule minus without, at its turn (of an overhead: starts within 30 s);
    `error`: its standard error, by leaving out a week at a time; `better`, `worse`: in how many of their weeks it adds and takes away;
    `since`, `until`: times of the log between which it holds, s, None for always.
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
        """What it adds to the agreement, and how sure that is, in words."""
        return f"{self.gain:+.3f} ± {2 * self.error:.3f}"

    @property
    def weeks(self) -> str:
        """In how many of the weeks that judge it adds to the agreement, in words."""
        return f"better in {self.better} weeks, worse in {self.worse}"


@dataclass(frozen=True)
class MonthAgreement:
    """One-step agreement over the starts of a month that judge, before and with the rules."""

    month: str
    before: Score
    after: Score

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"month": self.month, "before": self.before.as_dict(), "after": self.after.as_dict()}


@dataclass(frozen=True)
class FreeRun:
    """A simulation of the whole log beside its record, over the jobs of the folds that judge; waits in s.

    `within`: share of the jobs that start within 10 min of their recorded start. `trusted_from`: differences in the mean wait above this
    are trusted, and `doubt`, why none is, as `calibrate` says it.
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
    """What a log shows of its site's rules.

    `machine`: the machine and all rules, as a file has them. `before`, `after`: scores over what judges, under the plain policy
    and with all rules; `hindsight`: with the times besides at which jobs were free to start, which only the record knows. `free`:
    simulations that run freely: on the plain machine, with the rules, with the rules against themselves with submissions shaken by
    30 s, which is the most that any simulation can reach, and with the rules and those times, by hindsight. `delay`: seconds from the
    instant at which the policy would start a job to its recorded start: 5 %, median, 95 %. `refused`: why nothing was inferred. `stopped`:
    at which step the search was interrupted. `held`: by job number, of the jobs that by hindsight were not free to start when they were
    submitted, for how long they were not, s. `groups`: the agreement with the rules by class, user and month of what judges. `order`: how
    well orders say which of the jobs that could have started did, None where there are too few choices.

    The machine's rules hold for whoever is told of them before; the outages are those that the log shows, so they are known by hindsight.
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
        """The days since and until which a rule holds, to be put behind it; empty for one that always does."""
        return period_of(self.unix_start_time, rule.since, rule.until)

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; the machine as the text of its file."""
        scores = {name: getattr(self, name).as_dict() for name in ("before", "after", "hindsight")}
        lists = {name: [plain(asdict(one)) for one in getattr(self, name)] for name in ("rules", "free")}
        lists["months"] = [one.as_dict() for one in self.months]
        others = ("log", "refused", "stopped", "misfits", "clock", "unix_start_time", "delay", "notes")
        rest = {name: plain(getattr(self, name)) for name in others}
        order = None if self.order is None else self.order.as_dict()
        return rest | scores | lists | {"machine": site_text(self), "groups": [plain(one.as_dict()) for one in self.groups], "order": order}


def write_site(inference: Inference, path: str | os.PathLike[str], eligible: bool = False) -> list[Path]:
    """Write the inferred machine as a file, with the evidence of each rule as a comment above it; returns what was written.

    With `eligible` a table beside it, `NAME.held.csv`, says how long each job seems not to have been free to start, and the file names it
    as `eligible`. Raises OutputError.
    """
    written = Path(path)
    if not eligible:
        with whole_file(written) as file:
            file.write(site_text(inference).encode())
        return [written]
    table = write_held(written.with_suffix(".held.csv"), inference.held)
    known = replace(inference, machine=replace(inference.machine, eligible=table.name))
    return [*write_site(known, written), table]


def unread_of(machine: Machine | None) -> list[str]:
    """What the description of a machine says and rules are not read of, in a sentence; none without one, or where there is nothing."""
    if machine is None:
        return []
    nodes = sorted({pool.procs for pool in machine.pools})
    sizes = [f"nodes of different sizes ({', '.join(f'{size:,}' for size in nodes)} processors; parts are counted in processors)"]
    several = [("pools", machine.pools), ("partitions", machine.partitions)]
    lists = [f"{len(values)} {name}" for name, values in several if len(values) > 1]
    rest: list[tuple[str, Any]] = [
        ("overheads", machine.overhead != NO_OVERHEAD),
        ("eligible times", machine.eligible is not None),
        ("outages", machine.outages),
        ("limits", machine.limits),
        ("windows", machine.windows),
        ("shares", machine.shares),
    ]
    lists += [name for name, values in [*rest, ("qualities of service", machine.qos), ("settings of Slurm", machine.slurm)] if values]
    lists += ["the policy"] if machine.policy is not None else []
    ignored = lists + sizes * (len(nodes) > 1)
    if not ignored:
        return []
    return [
        f"Of {sanitize(machine.name, 100)} only the numbers of processors are used; it also has {', '.join(ignored)}: these are neither "
        "taken over nor tested, and all processors count as one pool until the log shows parts."
    ]


def site_text(inference: Inference) -> str:
    """The text of that file."""
    after, before = inference.after, inference.before
    head = [
        f"# {inference.machine.name}",
        f"# One-step agreement (F1 of prompt starts) {after.prompt_f1:.3f}, without rules {before.prompt_f1:.3f}, in a part of the log",
        "# that was not used to find them.",
        f"# In the recorded state the policy makes {100 * after.at:.0f} % of the recorded starts, {100 * after.prompt_at:.0f} % promptly,",
        f"# and {100 * after.followed:.0f} % of its wishes were followed, {100 * after.followed_promptly:.0f} % promptly "
        f"(within {after.within} s).",
        f"# From the instant of a decision to the recorded start: {inference.delay[0]:.0f} s (5 %), {inference.delay[1]:.0f} s (median), "
        f"{inference.delay[2]:.0f} s (95 %).",
        *(f"# {line}" for note in inference.notes for line in textwrap.wrap(sanitize(note, 500), 130)),
        "",
    ]
    comments = {
        kind: [rule for rule in inference.rules if rule.kind == kind]
        for kind in ("part", "outage", "window", "overhead", "limit", "policy")
    }
    above = {
        "[[partition]]": "part",
        "[[outage]]": "outage",
        "[[window]]": "window",
        "[overhead]": "overhead",
        "[[limit]]": "limit",
        "policy =": "policy",
    }
    lines = []
    for line in write_machine(inference.machine).splitlines():
        kind = next((kind for start, kind in above.items() if line.startswith(start)), None)
        if kind is not None and comments[kind]:
            rule = comments[kind].pop(0)
            lines += [f"# {rule.text}: {rule.evidence}; agreement {rule.agreement}, {rule.weeks}{inference.period_of(rule)}"]
        lines.append(line)
    return "\n".join([*head, *lines]) + "\n"


def period_of(unix_start_time: int | None, since: int | None, until: int | None) -> str:
    """The days since and until which a rule holds, to be put behind it; empty for one that always does."""
    times = [(word, time) for word, time in (("since", since), ("until", until)) if time is not None]
    return "".join(f", {word} {_date(unix_start_time, time)}" for word, time in times)


def _date(unix_start_time: int | None, time: int) -> str:
    """A time of the log as a date, in UTC, where the log says when it starts."""
    return f"{time:,} s of the log" if unix_start_time is None else str(np.datetime64(unix_start_time + time, "s").astype("datetime64[D]"))
