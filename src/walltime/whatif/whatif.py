"""Simulate alternative changes to a machine or its settings, compare each with today's setting, and rank them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError
from walltime.machine import Machine, hindsight_note, omission_sentences, placing_notes, with_hindsight
from walltime.metrics.energy import NO_ENERGY, Carbon
from walltime.metrics.intervals import KINDS, LEVEL
from walltime.metrics.weekly_interval import LogWeeks
from walltime.policy import Policy
from walltime.provenance import plain, version
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.whatif.answer import answer_of
from walltime.whatif.calibration import Calibration, calibrate
from walltime.whatif.change import Change, parse_change
from walltime.whatif.effects import (
    MEASURES,
    Cost,
    Difference,
    Effect,
    OtherUsers,
    cost,
    differences,
    doubts,
    gains_of,
    group_effects,
    measures_of,
    pairs,
    signed,
)
from walltime.whatif.setting import SHAKE, machine_of
from walltime.whatif.simulations import ALL_CHANGES, TODAY, NamedSetting, settings_of, simulate_all
from walltime.whatif.track_record import TrackRecord, track_record
from walltime.wording import counted, human_percent, sanitize, seed_fault, shown
from walltime.workload import Array, Workload, check_workload

AS_RECORDED, REACT = "as-recorded", "react"
SUBMISSIONS = (AS_RECORDED, REACT)
"""Assumptions on users: they submit at the recorded times, or at the recorded interval after the end of an earlier job."""
REPLICATIONS = 5
"""Default number of shaken copies."""
NO_WAITS = "The log records no waits, so the simulation cannot be compared with the machine."


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Today's schedule and the effect of each change; with `together`, the last effect is for all changes at once.

    `measured`: the measured jobs of today's schedule, bool. `calibration`: None if the log records no waits.
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
    submissions: str = AS_RECORDED
    """one of `SUBMISSIONS`"""
    feedback: str = ""
    """why reacting users cannot be simulated; empty if they can"""
    linked: float = 0.0
    """share of the jobs that follow the end of an earlier job of their user"""
    asks_energy: bool = False
    """whether a price or the carbon intensity of electricity is given"""
    reused: int = 0
    """number of simulations whose results are from an earlier run"""

    @property
    def alone(self) -> Sequence[Effect]:
        """Return the effects of single changes, without the effect of all changes together."""
        return [effect for effect in self.effects if effect.label != ALL_CHANGES]

    @property
    def ranked(self) -> Sequence[Effect]:
        """Return the effects in descending order of gain minus cost (`Effect.worth`); the effect of all changes together is last."""
        return [*sorted(self.alone, key=lambda one: -one.worth), *(one for one in self.effects if one.label == ALL_CHANGES)]

    @property
    def best(self) -> Effect:
        """Return the effect with the largest gain minus cost."""
        return self.ranked[0]

    def rows(self) -> list[dict[str, Any]]:
        """Return rows for today and each effect: measures, differences with intervals, losses, doubts."""
        today: dict[str, Any] = {"change": TODAY, "jobs": int(self.measured.sum()), **self.measures, "utilization": self.utilization}
        rows = [today | _costs(self.cost)]
        for effect in self.effects:
            row: dict[str, Any] = {"change": effect.label, "name": effect.name, "jobs": effect.jobs}
            row |= {name: effect.differences[name].changed for name in MEASURES} | {"utilization": effect.utilization} | _costs(effect.cost)
            for name in MEASURES:
                known = ("difference", "scatter", *(("low", "high", "agree") if name.startswith("mean") else ()))
                row |= {f"{name}_{one}": getattr(effect.differences[name], one) for one in known}
            if effect.other_users is not None:
                row["mean_wait_difference_other_users"] = effect.other_users.difference
            rows.append(row | {"doubts": "; ".join(effect.doubts)})
        return [plain(row) for row in rows]

    def table(self) -> Any:
        """Return the rows as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def groups(self) -> Any:
        """Return the mean waits of groups of jobs under each change as a polars DataFrame."""
        import polars as pl

        rows = [{"change": effect.label, **row.as_dict()} for effect in self.effects for row in effect.groups]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def caveats(self) -> list[str]:
        """Return the caveats, as sentences, in addition to the general caveats of simulations."""
        jobs = self.today.workload
        said = [*jobs.warnings, *placing_notes(jobs, self.machine), *filter(None, [hindsight_note(jobs)])]
        said += [NO_WAITS] if self.calibration is None else self.calibration.verdict[1:]
        said += [*self.not_modelled, *self.today.interruption_notes]
        said += [f"With {one.name}: {note}" for one in self.effects for note in one.schedule.interruption_notes[:1]]
        if nothing := ", ".join(effect.name for effect in self.effects if effect.nothing):
            said.append(f"No job starts earlier or later with {nothing}.")
        lost = [effect for effect in self.effects if effect.cost.lost_jobs]
        if lost:
            told = "; ".join(f"{one.cost.lost_jobs:,} with {one.name} ({one.cost.rules_text})" for one in lost)
            rest = "Waits are compared over the other jobs, which then have the machine to themselves."
            said.append(f"Jobs that no longer fit are left out: {told}. {rest}")
        if any(effect.cost.cut_jobs for effect in self.effects):
            said.append(
                "Users of jobs that are killed earlier than today would split or shorten them. In the simulation, the rest of this work is "
                "lost, which makes the other waits too short."
            )
        said += [
            f"Under {one.name}, {counted(one.cost.stranded_jobs, 'job')} with {human_percent(100 * one.cost.stranded)} of the work exceed "
            "the limit by themselves: the site would never start them; here they run, and the limit does not apply to them."
            for one in self.effects
            if one.cost.stranded_jobs
        ]
        uncovered = [(TODAY, self.cost), *((one.name, one.cost) for one in self.effects)]
        if told := ", ".join(f"{counted(one.uncovered_jobs, 'job')} ({name})" for name, one in uncovered if one.uncovered_jobs):
            said.append(f"The carbon time series does not cover the simulated runs of some jobs, so CO2 excludes them: {told}.")
        if self.asks_energy and math.isnan(self.cost.energy):
            said.append(NO_ENERGY)
        said.append(self.users())
        if self.replications < 2:
            said.append("The effect of small shifts of the submissions was not measured; this takes at least 2 replications.")
        return said

    def users(self, effects: bool = True) -> str:
        """Describe the assumption on users and, with `effects`, the differences under the other assumption."""
        if self.feedback:
            return f"Users submit as recorded, regardless of their waits; {self.feedback}."
        share = f"{100 * self.linked:.0f} %"
        reacting = f"a job submitted within 20 min after the end of its user's earlier job ({share} of the jobs) follows that end"
        if not effects:
            return f"If users react, {share} of the jobs move: those submitted within 20 min after the end of their user's earlier job."
        first, second = "Users submit as recorded", f"If they react, so that {reacting}"
        if self.submissions == REACT:
            first, second = f"Users react: {reacting}", "If they submit as recorded"
        others = [(one.name, one.other_users) for one in self.effects if one.other_users is not None and not one.nothing]
        told = ", ".join(f"{signed(other.difference)} with {name}" for name, other in others)
        return f"{first}. {second}, the mean wait {f'changes by {told}' if told else 'does not change'}."

    def answer(self) -> str:
        """Return the result in sentences: the effect and cost of the best change, and whether it can be trusted."""
        warning = "".join(f"{one} " for one in self.today.workload.warnings)
        known = "Waits count from eligible times known only in hindsight. " if hindsight_note(self.today.workload) else ""
        return f"{warning}{known}{answer_of(self.ranked, self.calibration)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON."""
        origin = self.today.workload.origin
        content = {
            "log": origin.name,
            "sha256": origin.sha256,
            "machine": sanitize(self.machine.name),
            "policy": self.today.label,
            "answer": self.answer(),
            "submissions": self.submissions,
            "linked": self.linked,
            "trim": self.trim,
            "replications": self.replications,
            "shake": SHAKE if self.replications else 0,
            "level": LEVEL,
            "of": {"scatter": KINDS["shaken.copy"].of, "low, high": KINDS["weeks"].of, "other_low, other_high": KINDS["weeks.logs"].of},
            "today": {"jobs": int(self.measured.sum()), **self.measures, "utilization": self.utilization, "cost": self.cost.as_dict()},
            "effects": [effect.as_dict() for effect in self.effects],
            "best": self.best.label,
            "ranking": [effect.label for effect in self.ranked if effect.label != ALL_CHANGES],
            "calibration": None if self.calibration is None else self.calibration.as_dict(),
            "caveats": self.caveats,
            "version": version(),
        }
        value: dict[str, Any] = plain(content)
        return value


def what_if(
    workload: Workload,
    machine: Machine | None,
    changes: Sequence[str | Change] = (),
    *,
    against: Sequence[Machine] = (),
    together: bool = False,
    policy: str | Policy | Scheduler | None = None,
    calibration: Calibration | None = None,
    replications: int = REPLICATIONS,
    submissions: str = AS_RECORDED,
    trim: str = "steady",
    overrun: str = "kill",
    seed: int = 0,
    hindsight: bool = False,
    kwh_price: float | None = None,
    carbon: Carbon | None = None,
    progress: Callable[[int], None] | None = None,
) -> WhatIf:
    """Simulate today's setting and each change alone, and return the effects of the changes.

    `machine`: by default (None) a single pool with the log's processors, under EASY.
    `changes`: alternatives, such as `nodes+=10%`, which are ranked by gain minus cost.
    `against`: other machines, which are alternatives as well; a machine without a policy has today's policy.
    `together`: also simulate all changes together, unless two of them set the same value.
    `policy`: today's policy, by default the policy of the machine.
    `calibration`: a calibration for this log, machine and policy; by default it is computed, if the log records waits.
    `replications`: number of copies of the log with each submission shifted by up to 30 s, and of logs resampled from its weeks, in which
        users react; all settings use the same copies. With fewer than 2, the scatter of differences is unknown.
    `submissions`: "as-recorded", or "react": a job submitted within 20 min after the end of its user's earlier job moves with this end. The
        result under the other assumption is also computed.
    `trim`: which jobs are measured, as in `Schedule.summary` of today's schedule.
    `kwh_price`, `carbon`: price of a kWh and carbon intensity of electricity, for the energy cost and CO2 emissions of each change.
    `progress`: called with the number of completed simulations, out of `runs(alternatives, replications)`.

    Raises PolicyError for an invalid change, WorkloadError for a calibration of another log, machine or policy and for "react" with a
    log that lacks the users or ends of jobs; also the errors of `simulate`.
    """
    check_workload(workload)
    listed = [change if isinstance(change, Change) else parse_change(change) for change in _listed(changes, against)]
    if fault := seed_fault(seed):
        raise PolicyError(fault, "number_out_of_range")
    if isinstance(replications, bool) or not isinstance(replications, int) or replications < 0:
        raise PolicyError(f"replications must be a whole number of 0 or more, not {shown(replications)}", "number_out_of_range")
    workload, machine = with_hindsight(workload, machine, hindsight, "a what-if")
    machine = machine_of(workload, machine)
    if submissions not in SUBMISSIONS:
        raise PolicyError(f"submissions must be {' or '.join(SUBMISSIONS)}, not {shown(submissions)}")
    settings = settings_of(machine, listed, policy, against, together)
    if carbon is not None:
        carbon.of(workload, workload.runtime, workload.submit)  # a log without dates is reported before the simulations
    if calibration is not None:
        calibration.check(workload, machine, settings[0].setting.scheduler().label)

    options: dict[str, Any] = {"overrun": overrun, "seed": seed, "replications": replications, "trim": trim, "progress": progress}
    simulated = simulate_all(settings, workload, react=submissions == REACT, **options)
    today, measured = simulated.schedules[0], simulated.measured
    if calibration is None and workload.recorded_wait is not None:
        calibration = calibrate(workload, machine, policy, trim=trim, overrun=overrun, schedule=simulated.recorded)

    def effect(k: int, named: NamedSetting) -> Effect:
        changed, other_users = simulated.schedules[k + 1], simulated.others[k] if simulated.others else None
        both = pairs(today, changed, measured)
        if not len(both[0]):
            raise PolicyError(f"under the change {shown(named.label)} no measured job is left; make a smaller change")
        copies = ([copy[k] for copy in some] for some in (simulated.copies, simulated.resampled))
        weeks = LogWeeks.of(today.workload.submit, *((one.submit, one.start) for one in (today, changed)))
        by_measure = differences(today, changed, both, weeks, *copies)
        return Effect(
            *named,
            schedule=changed,
            jobs=len(both[0]),
            differences=by_measure,
            utilization=_utilization(changed),
            groups=group_effects(today, changed, both, weeks, calibration),
            gains=gains_of(today, changed, both),
            cost=cost(today, changed, pairs(today, changed, np.ones(len(today), bool)), kwh_price, carbon, weeks),
            doubts=doubts(by_measure["mean_wait"], calibration, other_users),
            other_users=other_users,
            nodes_added=sum(pool.nodes for pool in named.setting.machine.pools) / sum(pool.nodes for pool in machine.pools) - 1,
            record=_record(by_measure["mean_wait"], other_users, calibration),
        )

    everyone = np.arange(len(today))
    return WhatIf(
        machine=machine,
        changes=listed,
        not_modelled=omission_sentences(one.workload for one in simulated.schedules),
        today=today,
        measured=measured,
        measures=measures_of(today, np.flatnonzero(measured)),
        utilization=_utilization(today),
        cost=cost(today, today, (everyone, everyone), kwh_price, carbon),
        effects=[effect(k, named) for k, named in enumerate(settings[1:])],
        calibration=calibration,
        replications=replications,
        trim=trim,
        submissions=submissions,
        feedback=simulated.feedback,
        linked=simulated.linked,
        asks_energy=kwh_price is not None or carbon is not None,
        reused=simulated.reused,
    )


def _record(one: Difference, other: OtherUsers | None, calibration: Calibration | None) -> TrackRecord | None:
    """Return the expected change of the mean wait with its track record; None without a calibration, or if no job waits today."""
    if calibration is None or not one.today:
        return None
    reacting = other.difference / other.today if other is not None and other.today else None
    return track_record(one.difference / one.today, reacting, calibration.overall)


def runs(alternatives: int, replications: int) -> int:
    """Return the number of simulations in a what-if; all changes together count as one alternative.

    >>> runs(2, 5), runs(1, 0)
    (36, 4)
    """
    return (1 + alternatives) * (2 + 2 * replications)


def _listed(changes: object, against: Sequence[Machine]) -> list[Any]:
    if isinstance(changes, str | Change):
        return [changes]
    if not isinstance(changes, Sequence) or not (changes or against):
        raise PolicyError("no change was given; give changes such as ['nodes+=10%', 'policy=easy:order=sjf']", "no_change")
    return list(changes)


def _utilization(schedule: Schedule) -> float:
    """Return the utilization from the first to the last submission."""
    jobs = schedule.workload
    return metrics.utilization(
        schedule.start, schedule.end, jobs.procs, jobs.machine_procs, int(schedule.submit.min()), schedule.last_submit
    )


def _costs(cost: Cost) -> dict[str, Any]:
    names = "nodes cut_jobs lost_jobs short_jobs work_lost_hours work_lost users_worse energy energy_cost grams energy_low energy_high"
    hours = {f"node_hours_{name}": getattr(cost, name) for name in ("capacity", "used", "idle")}
    return hours | {name: getattr(cost, name) for name in (*names.split(), "grams_low", "grams_high", "stranded_jobs")}
