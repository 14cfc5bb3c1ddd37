"""Compute one-step agreement on a machine from a file, by class of jobs and by user, with the reasons for unmatched starts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.inference.one_step import OneStep, Score, SiteRules, one_step, prompt_within
from walltime.machine import Machine, Placement, place
from walltime.machine.placing import NEVER
from walltime.policy import Policy
from walltime.schedule.groups import group_jobs
from walltime.simulation.specification import Scheduler
from walltime.workload import Array, Workload


def one_step_on(workload: Workload, start: Array, policy: Policy, machine: Machine) -> tuple[Workload, OneStep]:
    """Return the jobs that fit this machine, and the proposals of a policy at every recorded instant.

    `start`: recorded starts, int64 s, one per job of the workload, negative if unknown. A dependent job may start when its predecessors
    have ended. Raises PolicyError for a policy whose passes are unknown, and for unsupported machines: partitions of several pools, or
    with tiers on one pool; a second resource; outages; limits of processors, several limits of a job, or limits over several pools.
    """
    placed, placement = place(workload, machine)
    start = start[workload.places_of(placed.job_id)]
    if placement.second.any() or (placement.since < NEVER).any():
        raise _not_asked("jobs that need a second resource or run at the beginning")
    if placement.outages:
        raise _not_asked("outages")
    eligible = _after_others(placement, placed.submit, np.where(start >= 0, start + placed.runtime, -1))
    last = int(max(start.max(), placed.submit[-1]))
    windows = [(hours.until(last), np.array([k in own for own in placement.windows_of])) for k, hours in enumerate(placement.windows)]
    group, at_once = _groups(placement)
    answers = []
    for pool, mine in _apart(placement):
        if not (mine & (start >= 0)).any():
            continue
        if at_once is not None and group is not None and np.isin(group[~mine & (group >= 0)], group[mine]).any():
            raise _not_asked("limits over jobs of several pools")
        procs = machine.pools[pool].nodes * machine.pools[pool].procs
        own = SiteRules(windows, None, eligible, group, at_once, machine.overhead, procs, mine)
        answers.append(one_step(placed, start, policy, rules=own))
    return placed, OneStep.joined(answers)


def _not_asked(what: str) -> PolicyError:
    return PolicyError(f"one-step agreement does not support {what}; remove them from the machine file", "unsupported_machine")


def _after_others(placement: Placement, submit: Array, end: Array) -> Array:
    """Return the earliest start of each job: its submission, or the last recorded end of its predecessors."""
    eligible = submit.copy()
    for job, others in enumerate(placement.after):
        eligible[job] = max([int(submit[job]), *(int(end[other]) for other in others)])
    return eligible


def _groups(placement: Placement) -> tuple[Array | None, Array | None]:
    """Return the limit to which each job counts, -1 for none, and the number of running jobs that each limit allows."""
    if not placement.limits:
        return None, None
    if (placement.limits_of.counts > 1).any() or any(procs < NEVER or second < NEVER for _, procs, second in placement.limits):
        raise _not_asked("limits of processors or several limits for one job")
    return np.array([own[0] if own else -1 for own in placement.limits_of], np.int64), np.array([jobs for jobs, *_ in placement.limits])


def _apart(placement: Placement) -> list[tuple[int, Array]]:
    """Return the index of each used pool, with a mask of its jobs; raises PolicyError if partitions share pools in an unsupported way."""
    machine = placement.machine
    used = np.unique(placement.partition).tolist()
    pools = [{machine.place_of(name) for name in machine.partitions[k].pools} for k in used]
    for k, own in enumerate(pools):
        shared = [j for j, other in enumerate(pools) if own & other]
        if len(own) > 1 or len({machine.partitions[used[j]].tier for j in [k, *shared]}) > 1:
            raise _not_asked("partitions of several pools or partitions with tiers on one pool")
    return [
        (pool, np.isin(placement.partition, [k for k, own in zip(used, pools, strict=True) if pool in own])) for pool in set().union(*pools)
    ]


FEWEST = 20
"""Groups with fewer starts are omitted."""


@dataclass(frozen=True)
class GroupAgreement:
    """One-step agreement over the starts of a group.

    `by`, `name`: the grouping and the group. `before`: F1 of prompt starts under the plain policy, or None. `blockers`: the number of
    unmatched starts by reason. `not_followed`: number of proposals that were not followed; `held`: the number of these for jobs that seem
    not to have been eligible yet.
    """

    by: str
    name: str
    score: Score
    before: float | None
    blockers: Mapping[str, int]
    not_followed: int
    held: int

    def as_dict(self) -> dict[str, Any]:
        """Return the agreement as a dictionary for JSON, without the blockers."""
        return {name: value for name, value in asdict(self).items() if name != "blockers"} | {"score": self.score.as_dict()}


def agreement_by(
    workload: Workload, answer: OneStep, end: Array, eligible: Array, chosen: Array, within: int, plain: OneStep | None = None
) -> list[GroupAgreement]:
    """Return the agreement over the chosen starts (bool): over all of them, and by class, user and month.

    `end`: recorded ends; `eligible`: when each job seems to have become eligible; int64 s. `within`: the largest delay of a
    prompt start, s. `plain`: the proposals under the plain policy. Groups with fewer than 20 starts are omitted.
    """
    counted, unfollowed = chosen & answer.counted, answer.proposals - answer.matched

    def row(by: str, name: str, mine: Array) -> GroupAgreement:
        before = None if plain is None else plain.score(mine, within).prompt_f1
        held = int(unfollowed[mine & (eligible > workload.submit)].sum())
        return GroupAgreement(by, name, answer.score(mine, within), before, answer.blockers(mine), int(unfollowed[mine].sum()), held)

    rows = [row("all", "all jobs", counted)]
    there = {"class": True, "users": "user" in workload.columns, "month": workload.origin.unix_start_time is not None}
    for by in (by for by, is_recorded in there.items() if is_recorded):
        groups = group_jobs(workload, by, workload.submit, np.maximum(end, workload.submit))
        masks = [(name, counted & (groups.of == k)) for k, name in enumerate(groups.names)]
        rows += [row(by, name, mine) for name, mine in masks if mine.sum() >= FEWEST]
    return rows


def record_note(workload: Workload, machine: Machine, scheduler: Scheduler) -> str:
    """Return a sentence on the one-step agreement of a scheduler with the record, or on the reason why it is unknown."""
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
    text = f"Given the recorded machine and queue at each instant, {scheduler.label} {score.text} "
    text += f"The F1 score of prompt starts is {score.prompt_f1:.2f}."
    reasons = ", ".join(f"{name} ({count:,})" for name, count in answer.blockers().items())
    return f"{text} Recorded starts that the policy would not make are blocked by: {reasons}." if reasons else text
