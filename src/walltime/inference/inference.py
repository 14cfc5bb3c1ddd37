"""The result of an inference: the accepted rules, their evidence, and the machine file with them."""

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
    """An accepted rule: its text, the evidence, and its gain in agreement on held-out folds.

    `gain`: F1 of prompt starts in the held-out folds with the rule minus without, at its turn (for overheads: starts within 30 s). `error`:
    its standard error, a jackknife over weeks. `better`, `worse`: the number of held-out weeks with a gain or a loss. `since`, `until`: the
    times of the log between which it applies, s, None for always.
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
        """The gain with two standard errors, in words."""
        return f"{self.gain:+.3f} ± {2 * self.error:.3f}"

    @property
    def weeks(self) -> str:
        """The numbers of held-out weeks with a gain or a loss, in words."""
        return f"better in {self.better} weeks, worse in {self.worse}"


@dataclass(frozen=True)
class MonthAgreement:
    """One-step agreement over the held-out starts of a month, without and with the rules."""

    month: str
    before: Score
    after: Score

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {"month": self.month, "before": self.before.as_dict(), "after": self.after.as_dict()}


@dataclass(frozen=True)
class FreeRun:
    """A free simulation of the whole log, compared with its record over the held-out jobs; waits in s.

    `within`: share of the jobs that start within 10 min of their recorded start. `trusted_from`: larger differences in the mean wait are
    trusted; `doubt`: the reason if none is; both as in `calibrate`.
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

    `machine`: the machine with all rules. `before`, `after`: held-out scores under the plain policy and with all rules; `hindsight`: also
    with the times at which jobs became eligible, known only from the record. `free`: free simulations: on the plain machine; with the
    rules; with the rules against themselves with submissions shaken by 30 s, the best that any simulation can reach; and with the rules and
    those times. `delay`: s from a proposal to the recorded start: 5 %, median, 95 %. `refused`: why nothing was inferred. `stopped`: the
    step at which the search was interrupted. `held`: seconds from submission to eligibility, by number, of the jobs that in hindsight were
    not eligible at submission. `groups`: held-out agreement with the rules by class, user and month. `order`: how well orders predict which
    of the possible jobs starts, None with too few choices. The outages are those in the log, known in hindsight.
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
        """Return the dates between which a rule applies, as a suffix; empty if it always applies."""
        return period_of(self.unix_start_time, rule.since, rule.until)

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON; the machine as the text of its file."""
        scores = {name: getattr(self, name).as_dict() for name in ("before", "after", "hindsight")}
        lists = {name: [plain(asdict(one)) for one in getattr(self, name)] for name in ("rules", "free")}
        lists["months"] = [one.as_dict() for one in self.months]
        others = ("log", "refused", "stopped", "misfits", "clock", "unix_start_time", "delay", "notes")
        rest = {name: plain(getattr(self, name)) for name in others}
        order = None if self.order is None else self.order.as_dict()
        return rest | scores | lists | {"machine": site_text(self), "groups": [plain(one.as_dict()) for one in self.groups], "order": order}


def write_site(inference: Inference, path: str | os.PathLike[str], eligible: bool = False) -> list[Path]:
    """Write the inferred machine file, with the evidence of each rule as a comment above it; return the paths written.

    With `eligible`, also write a table `NAME.held.csv` of how long each job seems not to have been eligible, which the machine file names
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
    """Return a sentence on the parts of a machine file that inference ignores, if there are any."""
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
        f"Only the numbers of processors of {sanitize(machine.name, 100)} are used; its {', '.join(ignored)} are neither adopted nor "
        "tested, and all processors count as one pool until the log shows parts."
    ]


def site_text(inference: Inference) -> str:
    """Return the text of the machine file."""
    after, before = inference.after, inference.before
    head = [
        f"# {inference.machine.name}",
        f"# One-step agreement (F1 of prompt starts) {after.prompt_f1:.3f}, without rules {before.prompt_f1:.3f}, in a part of the log",
        "# that was not used to find them.",
        f"# In the recorded state the policy proposes {100 * after.at:.0f} % of the recorded starts, {100 * after.prompt_at:.0f} % "
        "promptly,",
        f"# and {100 * after.followed:.0f} % of its proposals were followed, {100 * after.followed_promptly:.0f} % promptly "
        f"(within {after.within} s).",
        f"# From the instant of a decision to the recorded start: {inference.delay[0]:.0f} s (5 %), {inference.delay[1]:.0f} s (median), "
        f"{inference.delay[2]:.0f} s (95 %).",
        *(f"# {line}" for note in inference.notes for line in textwrap.wrap(sanitize(note, 500), 130)),
        "",
    ]
    above = {
        "[[partition]]": "part",
        "[[outage]]": "outage",
        "[[window]]": "window",
        "[overhead]": "overhead",
        "[[limit]]": "limit",
        "policy =": "policy",
    }
    comments = {kind: [rule for rule in inference.rules if rule.kind == kind] for kind in above.values()}
    lines = []
    for line in write_machine(inference.machine).splitlines():
        kind = next((kind for start, kind in above.items() if line.startswith(start)), None)
        if kind is not None and comments[kind]:
            rule = comments[kind].pop(0)
            lines += [f"# {rule.text}: {rule.evidence}; agreement {rule.agreement}, {rule.weeks}{inference.period_of(rule)}"]
        lines.append(line)
    return "\n".join([*head, *lines]) + "\n"


def period_of(unix_start_time: int | None, since: int | None, until: int | None) -> str:
    """Return the dates between which a rule applies, as a suffix; empty if it always applies."""
    times = [(word, time) for word, time in (("since", since), ("until", until)) if time is not None]
    return "".join(f", {word} {_date(unix_start_time, time)}" for word, time in times)


def _date(unix_start_time: int | None, time: int) -> str:
    """Return a time of the log as a UTC date, if the log has a start date."""
    return f"{time:,} s of the log" if unix_start_time is None else str(np.datetime64(unix_start_time + time, "s").astype("datetime64[D]"))
