"""What would a change of the machine or its settings do: each change alone and all together, against today's setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, shown
from walltime.machine import Machine
from walltime.metrics.intervals import KINDS, LEVEL
from walltime.policy import Policy
from walltime.provenance import plain, version
from walltime.schedule.groups import recorded_wait
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.whatif.calibration import Calibration, calibrate, left_out
from walltime.whatif.changes import Change, parse_change
from walltime.whatif.cost import Cost, cost
from walltime.whatif.effects import MEASURES, Effect, differences, doubts, gains_of, group_effects, measures_of, pairs, signed
from walltime.whatif.setting import SHAKE, Setting, machine_of, without_warnings
from walltime.whatif.simulations import TODAY, settings_of, simulate_all
from walltime.wording import harmless, human_time
from walltime.workload import Workload, check_workload
from walltime.workload.draws import seed_fault

__all__ = ["REPLICATIONS", "WhatIf", "runs", "what_if"]

Array = np.ndarray

REPLICATIONS = 5
"""Shaken copies of the log."""
MOST_TOLD = 5
"""Of more effects, those with the largest differences are told in sentences, and that of all together."""


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Today's schedule, and what each change does to it; the last effect is that of all changes together, if there are several.

    `measured`: the jobs that are measured, bool; the same for every setting. `calibration`: None where the log records no waits.
    """

    machine: Machine
    changes: Sequence[Change]
    not_modelled: Sequence[str]
    today: Schedule
    measured: Array
    measures: Mapping[str, float]
    utilization: float
    cost: Cost
    effects: Sequence[Effect]
    calibration: Calibration | None
    replications: int
    trim: str
    feedback: str = ""
    """why users do not react in the logs of its weeks; empty where they do"""

    def rows(self) -> list[dict[str, Any]]:
        """One row for today and each effect: the measures, their differences with intervals, what is lost, and the doubts."""
        first: dict[str, Any] = {"change": TODAY, "jobs": int(self.measured.sum()), **self.measures, "utilization": self.utilization}
        rows = [first | _costs(self.cost)]
        for effect in self.effects:
            row: dict[str, Any] = {"change": effect.label, "jobs": effect.jobs}
            row |= {name: effect.differences[name].changed for name in MEASURES} | {"utilization": effect.utilization} | _costs(effect.cost)
            for name in MEASURES:
                known = ("difference", "scatter", *(("low", "high", "agree") if name.startswith("mean") else ()))
                row |= {f"{name}_{one}": getattr(effect.differences[name], one) for one in known}
            rows.append(row | {"doubts": "; ".join(effect.doubts)})
        return [{name: plain(value) for name, value in row.items()} for row in rows]

    def table(self) -> Any:
        """The rows as a polars table."""
        import polars as pl

        names = list(dict.fromkeys(name for row in self.rows() for name in row))
        return pl.DataFrame([{name: row.get(name) for name in names} for row in self.rows()], infer_schema_length=None)

    def groups(self) -> Any:
        """The mean waits of groups of jobs under each change as a polars table."""
        import polars as pl

        rows = [{"change": effect.label, **row.as_dict()} for effect in self.effects for row in effect.groups]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def caveats(self) -> list[str]:
        """What a reader should know besides the general caveats of simulations, in sentences."""
        said = []
        if self.calibration is None:
            said.append("The log records no waits, so nothing is known of how far the simulation resembles the machine.")
        else:
            said += self.calibration.verdict[1:]
        said += self.not_modelled
        nothing = [effect.label for effect in self.effects if effect.nothing]
        if nothing:
            said.append(f"No job starts earlier or later with {', '.join(nothing)}: it does not bear on these jobs, or not on this policy.")
        lost = [effect for effect in self.effects if effect.cost.lost_jobs]
        if lost:
            told = "; ".join(f"{effect.cost.lost_jobs:,} with {effect.label} ({_rules(effect.cost)})" for effect in lost)
            said.append(
                f"Jobs no longer fit and are left out: {told}. The waits are compared over the others, which have the machine to "
                "themselves."
            )
        cut = [effect for effect in self.effects if effect.cost.cut_jobs]
        if cut:
            told = ", ".join(f"{effect.cost.cut_jobs:,} with {effect.label}" for effect in cut)
            said.append(
                f"Jobs are killed earlier than today: {told}. Their users would split or shorten them; here the rest of their work is "
                "simply gone, which makes the waits of the others shorter than they would be."
            )
        said.append(
            "In today's log users submit as they did: shorter waits bring no more work, and longer ones keep nobody away. In logs of its "
            "weeks "
            + (
                f"they do so, too: {self.feedback}."
                if self.feedback
                else "a job that followed another one of its user within 20 min waits for its end."
            )
        )
        if self.replications < 2:
            said.append("How far the differences scatter when the log is shaken is not known: that takes 2 replications or more.")
        return said

    def answer(self) -> str:
        """The result in a few sentences."""
        shown = self.effects if len(self.effects) <= MOST_TOLD else [*_largest(self.effects[:-1]), self.effects[-1]]
        said = []
        for effect in shown:
            one = effect.differences["mean_wait"]
            said.append(f"{human_time(one.changed)} with {effect.label} ({'no change' if effect.nothing else signed(one.difference)})")
        told = said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, and {said[-1]}"
        log = self.today.workload.origin.name
        return (
            f"Today's mean wait on {log} is {human_time(self.measures['mean_wait'])} in the simulation; it comes to {told}. {_trust(shown)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        effects = [
            {
                "change": effect.label,
                "became": list(effect.became),
                "policy": effect.schedule.label,
                "jobs": effect.jobs,
                "measures": {name: content.as_dict() for name, content in effect.differences.items()},
                "utilization": effect.utilization,
                "groups": [row.as_dict() for row in effect.groups],
                "gains": effect.gains.as_dict(),
                "cost": plain(effect.cost.as_dict()),
                "doubts": list(effect.doubts),
            }
            for effect in self.effects
        ]
        origin = self.today.workload.origin
        content = {
            "log": origin.name,
            "sha256": origin.sha256,
            "machine": harmless(self.machine.name),
            "policy": self.today.label,
            "trim": self.trim,
            "replications": self.replications,
            "shake": SHAKE if self.replications else 0,
            "level": LEVEL,
            "of": {"scatter": KINDS["shaken.copy"].of, "low, high": KINDS["weeks"].of, "other_low, other_high": KINDS["weeks.logs"].of},
            "today": {
                "jobs": int(self.measured.sum()),
                **self.measures,
                "utilization": self.utilization,
                "cost": plain(self.cost.as_dict()),
            },
            "effects": effects,
            "calibration": None if self.calibration is None else self.calibration.as_dict(),
            "caveats": self.caveats,
            "version": version(),
        }
        value: dict[str, Any] = plain(content)
        return value


def what_if(
    workload: Workload,
    machine: Machine | None,
    changes: Sequence[str | Change],
    *,
    policy: str | Policy | Scheduler | None = None,
    calibration: Calibration | None = None,
    replications: int = REPLICATIONS,
    trim: str = "tsafrir06",
    overrun: str = "kill",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> WhatIf:
    """Simulate today's setting, each change alone, and all of them together.

    `changes`: as on the command line, such as `nodes+=10%`. `machine`: None for one pool of the log's processors under EASY.
    `policy`: today's, by default that of the machine. `calibration`: of
    this log, machine and policy; by default it is made, if the log records waits. `replications`: copies of the log with each submission
    moved by up to 30 s, and as many logs of its weeks, in which users submit when their jobs have ended; each the same for every setting;
    below 2 the scatter of differences is not known. `trim`: which of the jobs are
    measured, by today's schedule. `progress` is called with the number of simulations done, of `runs(changes, replications)`.

    Raises PolicyError for a change that cannot be made, WorkloadError for the calibration of something else, and the errors of `simulate`.
    """
    check_workload(workload)
    listed = [change if isinstance(change, Change) else parse_change(change) for change in _listed(changes)]
    if fault := seed_fault(seed):
        raise PolicyError(fault)
    if isinstance(replications, bool) or not isinstance(replications, int) or replications < 0:
        raise PolicyError(f"replications must be a whole number of 0 or more, not {shown(replications)}")
    machine = machine_of(workload, machine)
    settings = settings_of(machine, listed, policy)
    if calibration is not None:
        calibration.check(workload, machine, settings[0][1].scheduler().label)

    with without_warnings():
        simulated = simulate_all(settings, workload, overrun=overrun, seed=seed, replications=replications, trim=trim, progress=progress)
    today, measured = simulated.schedules[0], simulated.measured
    if calibration is None and recorded_wait(workload) is not None:
        calibration = calibrate(workload, machine, policy, trim=trim, overrun=overrun, schedule=today)
    effects = []
    for k, (label, setting, became) in enumerate(settings[1:]):
        own, others = ([copy[k] for copy in copies] for copies in (simulated.copies, simulated.resampled))
        effects.append(_effect(label, setting, became, today, simulated.schedules[k + 1], measured, own, others, calibration))
    everyone = np.arange(len(today))
    return WhatIf(
        machine=machine,
        changes=listed,
        not_modelled=list(dict.fromkeys(line for _, setting, _ in settings for line in left_out(setting))),
        today=today,
        measured=measured,
        measures=measures_of(today, np.flatnonzero(measured)),
        utilization=_utilization(today),
        cost=cost(today, today, (everyone, everyone)),
        effects=effects,
        calibration=calibration,
        replications=replications,
        trim=trim,
        feedback=simulated.feedback,
    )


def runs(changes: int, replications: int) -> int:
    """How many simulations a what-if of so many changes takes.

    >>> runs(2, 5), runs(1, 0)
    (44, 2)
    """
    return (1 + changes + (changes > 1)) * (1 + 2 * replications)


def _listed(changes: object) -> list[Any]:
    if isinstance(changes, str | Change):
        return [changes]
    if not isinstance(changes, Sequence) or not changes:
        raise PolicyError("there is nothing to change; give changes such as ['nodes+=10%', 'policy=easy:order=sjf']")
    return list(changes)


def _effect(
    label: str,
    setting: Setting,
    became: Sequence[str],
    today: Schedule,
    changed: Schedule,
    measured: Array,
    shaken: Sequence[Mapping[str, float]],
    resampled: Sequence[Mapping[str, float]],
    calibration: Calibration | None,
) -> Effect:
    both = pairs(today, changed, measured)
    if not len(both[0]):
        raise PolicyError(f"under the change {shown(label)} none of the measured jobs is left")
    by_measure = differences(today, changed, both, shaken, resampled)
    return Effect(
        label=label,
        setting=setting,
        became=became,
        schedule=changed,
        jobs=len(both[0]),
        differences=by_measure,
        utilization=_utilization(changed),
        groups=group_effects(today, changed, both, calibration),
        gains=gains_of(today, changed, both),
        cost=cost(today, changed, pairs(today, changed, np.ones(len(today), bool))),
        doubts=doubts(by_measure["mean_wait"], calibration),
    )


def _utilization(schedule: Schedule) -> float:
    """While jobs arrive."""
    jobs = schedule.workload
    return metrics.utilization(
        schedule.start, schedule.end, jobs.procs, jobs.machine_procs, int(schedule.submit.min()), schedule.last_submit
    )


def _costs(cost: Cost) -> dict[str, Any]:
    return {f"node_hours_{name}": getattr(cost, name) for name in ("capacity", "used", "idle")} | {
        name: getattr(cost, name) for name in ("nodes", "cut_jobs", "cut_hours", "lost_jobs", "lost_hours")
    }


def _largest(effects: Sequence[Effect]) -> list[Effect]:
    """Those with the largest differences, in their order."""
    order = sorted(range(len(effects)), key=lambda k: -abs(effects[k].differences["mean_wait"].difference))[: MOST_TOLD - 1]
    return [effects[k] for k in sorted(order)]


def _trust(effects: Sequence[Effect]) -> str:
    """Which of these differences can be trusted, and why not the others."""
    those = [effect for effect in effects if not effect.nothing]
    solid = [effect.label for effect in those if not effect.doubts]
    if not those:
        return "No job starts earlier or later."
    what = "the differences" if len(those) > 1 else "the difference"
    if len(solid) == len(those):
        return f"Nothing that could be checked speaks against {what}."
    shared = [doubt for doubt in those[0].doubts if all(doubt in effect.doubts for effect in those)]
    if not solid and shared:
        return f"Do not trust {what} yet: {'; '.join(shared)}."
    if not solid:
        return f"Do not trust {what} yet: each has something that speaks against it."
    names = solid[0] if len(solid) == 1 else f"{', '.join(solid[:-1])} and {solid[-1]}"
    return f"Nothing that could be checked speaks against {names}; do not trust the others yet."


def _rules(cost: Cost) -> str:
    return ", ".join(f"{count:,} {rule}" for rule, count in cost.rules.items())
