"""Test a queue order against recorded choices between comparable jobs, which differ in no request that inference does not model."""

from __future__ import annotations

import math

import numpy as np

from walltime.inference.candidate_rules import FEWEST
from walltime.inference.order_choice import HOUR, Choices
from walltime.machine.placing import RESOURCES
from walltime.policy import FCFS, Order, Policy
from walltime.workload import Workload

Array = np.ndarray
EQUAL = ("user", "partition", "qos", "reservation", "constraints", "requested_gpu_type", "gpu_type", "licences", "exclusive")
"""Columns in which comparable jobs must be equal; the user is one because fair share may explain a choice."""


def contradiction(choices: Choices, workload: Workload, policy: Policy) -> str:
    """Return a sentence if recorded choices between comparable jobs contradict a policy's queue order, otherwise an empty string.

    A waiting job is comparable with the job that started if they have equal values in the columns EQUAL and the waiting job requested no
    more of any resource, so that it could have started instead. The order is contradicted if it prefers such a job clearly more often than
    order of arrival does, by two standard errors. Orders that read past use are not checked. `workload`: the log with all columns.
    """
    if policy.order == FCFS or policy.order.history_of or not len(choices.first):
        return ""
    job, started = choices.job, choices.job[choices.first][choices.choice]
    columns = {"procs": workload.procs, "requested": workload.requested, **workload.columns}
    same = np.ones(len(job), bool)
    same[choices.first] = False
    for name in EQUAL:
        if name in columns:
            same &= columns[name][job] == columns[name][started]
    for name in ("procs", "requested", *RESOURCES):
        if name in columns:
            same &= columns[name][job] <= columns[name][started]
    rows = np.flatnonzero(same)
    own, arrival = (_preferred(choices, rows, workload, order) for order in (policy.order, FCFS))
    against, without = len(np.setdiff1d(own, arrival)), len(np.setdiff1d(arrival, own))
    if against < FEWEST or against - without <= 2 * math.sqrt(against + without):
        return ""
    return (
        f"{policy.label} is rejected. In {len(own):,} choices, its order prefers a waiting job of the same user and partition that "
        f"requested no more of any resource than the job that started; order of arrival does so in {len(arrival):,}."
    )


def _preferred(choices: Choices, rows: Array, workload: Workload, order: Order) -> Array:
    """Return the indices of the choices in which an order prefers one of these rows to the job that started."""
    choice = choices.choice[rows]
    first = choices.first[choice]
    scores = {row: _score(choices, row, workload, order) for row in np.unique(np.concatenate([rows, first])).tolist()}
    better = [scores[row] > scores[top] for row, top in zip(rows.tolist(), first.tolist(), strict=True)]
    return np.unique(choice[better])


def _score(choices: Choices, row: int, workload: Workload, order: Order) -> float:
    job = choices.job[row]
    wait, request = round(choices.wait[row] * HOUR), int(workload.requested[job])
    return order.score(wait, request, int(workload.procs[job]), int(workload.submit[job]))
