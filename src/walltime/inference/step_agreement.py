"""One-step agreement by class of jobs and by user, with what stood in the way of what the policy would not have started."""

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
"""Groups of fewer starts are left out."""


@dataclass(frozen=True)
class GroupAgreement:
    """One-step agreement over the starts of a group.

    `by`, `name`: the grouping and the group. `before`: F1 of prompt starts under the plain policy, None where it is not asked for.
    `in_the_way`: of how many starts that the policy would not have made what would have kept it from them. `not_followed`: how often it
    began to wish to start a job that was not started then, and `held`: how many of these wishes were for jobs that seem not to have been
    free to start then, by what only the record knows.
    """

    by: str
    name: str
    score: Score
    before: float | None
    in_the_way: Mapping[str, int]
    not_followed: int
    held: int

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self) | {"score": self.score.as_dict(), "in_the_way": dict(self.in_the_way)}


def agreement_by(
    workload: Workload, answer: OneStep, end: Array, eligible: Array, chosen: Array, within: int, plain: OneStep | None = None
) -> list[GroupAgreement]:
    """The agreement over the chosen starts (bool), all of them, and by class, user and month.

    `end`: recorded ends; `eligible`: when each job seems to have been free to start, by hindsight; int64 s. `within`: how
    many seconds after a wish a start is prompt. `plain`: the answers to compare with. Groups of fewer than 20 starts are left out.
    """
    rows = [_row("all", "all jobs", workload, answer, eligible, chosen & answer.counted, within, plain)]
    groupings = ["class", *(["users"] if "user" in workload.columns else [])]
    groupings += ["month"] if workload.origin.unix_start_time is not None else []
    for by in groupings:
        groups = group_jobs(workload, by, workload.submit, np.maximum(end, workload.submit))
        for k, name in enumerate(groups.names):
            mine = chosen & answer.counted & (groups.of == k)
            if mine.sum() >= FEWEST:
                rows.append(_row(by, name, workload, answer, eligible, mine, within, plain))
    return rows


def said_of_record(workload: Workload, machine: Machine, scheduler: Scheduler) -> str:
    """How a log's record agrees with a scheduler, one step each, and what stood in the way, in a sentence; or why it is not known."""
    wait = workload.recorded_wait
    try:
        if wait is None or scheduler.prediction is not None:
            raise PolicyError("it is asked of records with waits, and of policies without predictions")
        start = np.where(wait >= 0, workload.submit + wait, -1)
        placed, answer = one_step_on(workload, start, scheduler.policy, machine)
    except (PolicyError, WorkloadError) as error:
        return f"One-step agreement with the record is not known: {error}."
    recorded = placed.recorded_wait
    assert recorded is not None
    score = answer.score(within=prompt_within(answer, recorded))
    text = (
        f"In the recorded state {scheduler.label} would have made {100 * score.at:.0f} % of the starts, {100 * score.prompt_at:.0f} % "
        f"promptly (at most {score.within} s earlier); {100 * score.followed:.0f} % of its wishes were followed, "
        f"{100 * score.followed_promptly:.0f} % promptly (F1 of prompt starts {score.prompt_f1:.2f})"
    )
    counts = answer.in_the_way()
    return (
        f"{text}; in the way of the others: {', '.join(f'{name} {count:,}' for name, count in counts.items())}." if counts else f"{text}."
    )


def _row(
    by: str, name: str, workload: Workload, answer: OneStep, eligible: Array, mine: Array, within: int, plain: OneStep | None
) -> GroupAgreement:
    score, wishes = answer.score(mine, within), np.where(answer.made, answer.wishes - 1, answer.wishes)
    held = int(wishes[mine & (eligible > workload.submit)].sum())
    before = None if plain is None else plain.score(mine, within).prompt_f1
    return GroupAgreement(by, name, score, before, answer.in_the_way(mine), int(wishes[mine].sum()), held)
