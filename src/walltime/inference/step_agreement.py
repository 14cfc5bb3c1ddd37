"""One-step agreement by class of jobs and by user, with the reasons for unmatched starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.inference.machine_steps import one_step_on
from walltime.inference.one_step import OneStep, Score, prompt_within
from walltime.machine import Machine
from walltime.schedule.groups import group_jobs
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload

Array = np.ndarray
FEWEST = 20
"""Groups with fewer starts are omitted."""


@dataclass(frozen=True)
class GroupAgreement:
    """One-step agreement over the starts of a group.

    `by`, `name`: the grouping and the group. `before`: F1 of prompt starts under the plain policy, or None. `blockers`: the number of
    unmatched starts by reason. `not_followed`: proposals that were not followed; `held`: those for jobs that in hindsight seem not to have
    been eligible.
    """

    by: str
    name: str
    score: Score
    before: float | None
    blockers: Mapping[str, int]
    not_followed: int
    held: int

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "blockers"} | {"score": self.score.as_dict()}


def agreement_by(
    workload: Workload, answer: OneStep, end: Array, eligible: Array, chosen: Array, within: int, plain: OneStep | None = None
) -> list[GroupAgreement]:
    """Return the agreement over the chosen starts (bool): of all, and by class, user and month.

    `end`: recorded ends; `eligible`: when each job seems to have become eligible, in hindsight; int64 s. `within`: the largest delay of a
    prompt start, s. `plain`: the proposals to compare with. Groups with fewer than 20 starts are omitted.
    """
    counted, unfollowed = chosen & answer.counted, answer.proposals - answer.matched

    def row(by: str, name: str, mine: Array) -> GroupAgreement:
        before = None if plain is None else plain.score(mine, within).prompt_f1
        held = int(unfollowed[mine & (eligible > workload.submit)].sum())
        return GroupAgreement(by, name, answer.score(mine, within), before, answer.blockers(mine), int(unfollowed[mine].sum()), held)

    rows = [row("all", "all jobs", counted)]
    there = {"class": True, "users": "user" in workload.columns, "month": workload.origin.unix_start_time is not None}
    for by in filter(there.get, there):
        groups = group_jobs(workload, by, workload.submit, np.maximum(end, workload.submit))
        masks = [(name, counted & (groups.of == k)) for k, name in enumerate(groups.names)]
        rows += [row(by, name, mine) for name, mine in masks if mine.sum() >= FEWEST]
    return rows


def record_note(workload: Workload, machine: Machine, scheduler: Scheduler) -> str:
    """Return a sentence on the one-step agreement of a log's record with a scheduler, or on why it is unknown."""
    wait = workload.recorded_wait
    try:
        if wait is None or scheduler.prediction is not None:
            raise PolicyError("it needs a log with recorded waits and a policy without predictions")
        start = np.where(wait >= 0, workload.submit + wait, -1)
        placed, answer = one_step_on(workload, start, scheduler.policy, machine)
    except (PolicyError, WorkloadError) as error:
        return f"One-step agreement with the record is unknown: {error}."
    recorded = placed.recorded_wait
    assert recorded is not None
    score = answer.score(within=prompt_within(answer, recorded))
    text = (
        f"In the recorded state {scheduler.label} proposes {100 * score.at:.0f} % of the starts, {100 * score.prompt_at:.0f} % "
        f"promptly (at most {score.within} s earlier); {100 * score.followed:.0f} % of its proposals were followed, "
        f"{100 * score.followed_promptly:.0f} % promptly (F1 of prompt starts {score.prompt_f1:.2f})"
    )
    counts = answer.blockers()
    return f"{text}; reasons for the others: {', '.join(f'{name} {count:,}' for name, count in counts.items())}." if counts else f"{text}."
