"""Variants of a log or of generated jobs: resampled weeks, users, and users who submit jobs after the ends of earlier ones."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from walltime.errors import WorkloadError
from walltime.workload.columns import MISSING
from walltime.workload.draws import uniforms
from walltime.workload.scaling import copied
from walltime.workload.workload import Workload

Array = np.ndarray

WEEK = 7 * 86_400
STREAM_WEEKS = 106
SESSION = 20 * 60
"""Maximum think time within a session, s (Feitelson 2021; as reported, not checked against the paper)."""
LINKS = ("depends_on", "depends_on_success")
"""Columns of other jobs' ids, in addition to `preceding_job`."""


def with_sessions(workload: Workload, within: int = SESSION) -> Workload:
    """Return the jobs with feedback: a job that was submitted soon after the end of a job of its user now waits for that end.

    `within`: the maximum think time for this, s. The job follows the last of its user's earlier jobs that had ended in the log; its think
    time is the time since that end. Raises WorkloadError if the log does not record users, or waits.

    Source: Zakay & Feitelson, Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job Scheduling, MASCOTS 2014,
    pp. 51-60, doi:10.1109/MASCOTS.2014.15 (sessions by think time). Fixed submit times for the first jobs of sessions are our choice.

    >>> jobs = Workload.from_arrays(submit=[0, 50, 900], runtime=[100, 10, 10], procs=[1, 1, 1], machine_procs=4,
    ...                             columns={"user": np.array([1, 1, 1]), "wait": np.array([0, 0, 0])})
    >>> found = with_sessions(jobs)
    >>> found.columns["preceding_job"].tolist(), found.columns["think_time"].tolist(), found.feedback
    ([-1, -1, 1], [-1, -1, 800], True)
    """
    user, wait = (workload.columns.get(name) for name in ("user", "wait"))
    if user is None or wait is None or not ((user >= 0) & (wait >= 0)).any():
        what = "users" if user is None or not (user >= 0).any() else "waits"
        raise WorkloadError(f"{workload.origin.name} does not record {what}, which sessions need; give another log", "missing_column")
    end = np.where(wait >= 0, workload.submit + wait + workload.runtime, np.iinfo(np.int64).max)
    preceding = np.full(len(workload), MISSING, np.int64)
    think = np.full(len(workload), MISSING, np.int64)
    by_user = np.argsort(user, kind="stable")
    for mine in np.split(by_user, np.flatnonzero(np.diff(user[by_user])) + 1):
        if user[mine[0]] < 0:
            continue
        by_end = mine[np.argsort(end[mine], kind="stable")]
        last = np.searchsorted(end[by_end], workload.submit[mine], side="right") - 1
        while (later := (last >= 0) & (by_end[np.maximum(last, 0)] >= mine)).any():
            last -= later  # a job of 0 s may end when it is submitted
        followed = by_end[np.maximum(last, 0)]
        gap = workload.submit[mine] - end[followed]
        follows = (last >= 0) & (gap < within)
        preceding[mine[follows]] = workload.job_id[followed[follows]]
        think[mine[follows]] = gap[follows]
    columns = {**workload.columns, "preceding_job": preceding, "think_time": think}
    origin = workload.origin.after(f"sessions: think times under {within} s")
    return replace(workload, columns=columns, origin=origin, feedback=True)


def resample_weeks(workload: Workload, seed: int = 0) -> Workload:
    """Return a log of as many weeks as this log has, drawn from it with replacement; jobs keep their weekday and time of day.

    Jobs get new numbers. Links between jobs (feedback, dependencies) are kept within a week; the machine is empty at the start. The number
    of jobs, and therefore the load, differs between draws, as it does between weeks.

    Source: after Feitelson, Resampling with feedback (2021), by weeks instead of users.

    >>> jobs = Workload.from_arrays(submit=[0, WEEK + 5], runtime=[1, 2], procs=[1, 1], machine_procs=4)
    >>> [resample_weeks(jobs, seed).submit.tolist() for seed in (0, 1)]
    [[5, 604805], [5, 604800]]
    """
    if not len(workload):
        return workload
    week = (workload.submit - workload.submit[0]) // WEEK
    weeks = int(week[-1]) + 1
    drawn = np.floor(uniforms(seed, np.arange(weeks), STREAM_WEEKS)[0] * weeks).astype(np.int64)
    first = np.searchsorted(week, np.arange(weeks + 1))
    number = {int(job): place for place, job in enumerate(workload.job_id.tolist())}
    names = [name for name in ("preceding_job", *LINKS) if name in workload.columns]
    named = {name: np.array([number.get(job, -1) for job in workload.columns[name].tolist()], np.int64) for name in names}
    places, submits, begun = [], [], 0
    links: dict[str, list[Array]] = {name: [] for name in names}
    for to, source in enumerate(drawn.tolist()):
        mine = np.arange(first[source], first[source + 1])
        places.append(mine)
        submits.append(workload.submit[mine] + (to - source) * WEEK)
        for name in names:
            other = named[name][mine]
            inside = (other >= first[source]) & (other < first[source + 1])
            links[name].append(np.where(inside, other - first[source] + begun, -1))
        begun += len(mine)
    place = np.concatenate(places)
    if not len(place):
        raise WorkloadError(f"the weeks drawn from {workload.origin.name} with seed {seed} have no jobs; use another seed")
    columns = {name: np.full_like(values, MISSING) if name == "running_since" else values for name, values in workload.columns.items()}
    origin = workload.origin.after(f"{weeks} weeks resampled with seed {seed}")
    return copied(
        replace(workload, columns=columns, origin=origin),
        place,
        np.concatenate(submits),
        np.zeros(len(place), bool),
        {name: np.concatenate(parts) for name, parts in links.items()},
    )


STREAM_USERS, STREAM_POPULARITY = 104, 105
LIKENESS = 0.9
"""Correlation between the normal scores of a job's runtime and of its user. Our choice: with it, the mean of a user's last two runs
has an average accuracy of one half, as on real logs.
"""
POPULARITY = 0.9
"""The k-th most active user has a share of the jobs proportional to 1 / k**POPULARITY. Our choice."""


def with_users(workload: Workload, users: int, seed: int = 0) -> Workload:
    """Assign this number of users to the jobs (column `user`, from 1), so that each user's jobs have similar runtimes; return the jobs.

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
