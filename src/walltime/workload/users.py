"""Users for generated jobs, which predictors, suggestions and gains by user need."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from walltime.errors import WorkloadError
from walltime.workload.draws import uniforms
from walltime.workload.workload import Workload

STREAM_USERS, STREAM_POPULARITY = 104, 105
LIKENESS = 0.9
"""Correlation between the normal scores of a job's runtime and of its user. Our choice: with it, the mean of a user's last two runs
has an average accuracy of one half, as on real logs.
"""
POPULARITY = 0.9
"""The k-th most active user has a share of the jobs proportional to 1 / k**POPULARITY. Our choice."""


def with_users(workload: Workload, users: int, seed: int = 0) -> Workload:
    """Return the jobs with this number of users (column `user`, from 1), whose jobs have similar runtimes.

    Only the column is drawn: sizes, times and order do not change. This is our construction, not from a paper: users differ in their
    runtimes, as real users do, but they have no sessions, no favourite sizes, and do not repeat their estimates. Raises WorkloadError for
    fewer than 1 user, or more users than jobs.

    >>> from walltime.workload.models.lublin99 import Lublin99
    >>> jobs = with_users(Lublin99().generate(jobs=1000, machine_procs=128, load=0.7, seed=1), users=20, seed=1)
    >>> len(np.unique(jobs.columns["user"])), jobs.origin.steps
    (20, ('users 20, drawn with seed 1',))
    """
    jobs = len(workload)
    if isinstance(users, bool) or not isinstance(users, int | np.integer) or not 1 <= users <= jobs:
        raise WorkloadError(
            f"the number of users must be a whole number from 1 to {jobs}, the number of jobs, not {users!r}", "number_out_of_range"
        )
    first, second = uniforms(seed, workload.job_id, STREAM_USERS)
    own = _normal_scores(np.lexsort((first, workload.runtime)))
    drawn = _normal_scores(np.argsort(second))
    order = np.argsort(LIKENESS * own + np.sqrt(1 - LIKENESS**2) * drawn, kind="stable")
    shares = 1 / np.arange(1, users + 1) ** POPULARITY
    shares = shares[np.argsort(uniforms(seed, np.arange(users), STREAM_POPULARITY)[0])]
    ends = np.arange(1, users + 1) + np.floor((jobs - users) * np.cumsum(shares) / shares.sum() + 1e-9).astype(np.int64)
    user = np.empty(jobs, np.int64)
    user[order] = np.searchsorted(ends, np.arange(jobs), side="right") + 1
    origin = workload.origin.after(f"users {users}, drawn with seed {seed}")
    return replace(workload, columns={**workload.columns, "user": user}, origin=origin)


def _normal_scores(order: np.ndarray) -> np.ndarray:
    """Return the normal score of each element's rank, float64; `order`: the indices of the elements by rank."""
    middle = NormalDist().inv_cdf
    scores = np.empty(len(order))
    scores[order] = [middle((k + 0.5) / len(order)) for k in range(len(order))]
    return scores
