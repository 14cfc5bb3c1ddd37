"""Suggest walltimes for a user's next job, with the risk that the job is killed."""

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.workload import Array, Workload

RISKS = (50.0, 25.0, 10.0, 5.0, 2.0, 1.0)
"""Default risks that the job is killed, percent."""
LEAST = 10
"""Default minimum number of earlier jobs (tang13, section 4)."""
KIND = ("group", "procs", "executable", "requested")
"""Attributes in which jobs of a user may be similar, in descending order of information."""
ROUND = 300
"""Suggestions are rounded up to multiples of this time, s."""
SURE = 0.95
"""Confidence level of the upper bound on a risk."""


@dataclass(frozen=True)
class Suggestion:
    """A walltime and its consequences."""

    risk: float
    """target risk that such a job is killed, percent"""
    walltime: int
    """s"""
    killed_before: int
    """number of earlier jobs that ran longer"""
    upper: float
    """95 % upper confidence bound on the risk, percent, if the next job is like the earlier ones; computed from the number of
    kills that the risk allows, because the walltime was chosen from the same jobs"""
    backtest: float
    """percentage of the earlier jobs that suggestions from the jobs before them would have killed; nan if unknown"""
    slack: float
    """median fraction of the walltime that the earlier jobs used"""


@dataclass(frozen=True)
class Advice:
    """Suggestions for a kind of job, and the earlier jobs on which they are based."""

    like: Sequence[str]
    """attributes in which the earlier jobs have the same values as the next one"""
    jobs: int
    median_runtime: float
    """s"""
    median_request: float
    """s, of the earlier jobs"""
    killed: int
    """number of earlier jobs that used all of their request"""
    suggestions: Sequence[Suggestion]


def suggest(
    workload: Workload,
    *,
    user: int,
    kind: Mapping[str, int] | None = None,
    risks: Sequence[float] = RISKS,
    months: int | None = None,
    min_jobs: int = LEAST,
) -> Advice:
    """Return walltimes for the next job of a user, from the user's earlier jobs of this kind.

    `kind`: additional common attributes of the earlier jobs and the next one, from `group`, `procs`, `executable` and `requested` (s). Only
    the last `months` of 30 days before the end of the log count, if given. If there are fewer jobs than `min_jobs`, the least informative
    attributes are dropped: first the request, then the program, the processors, the group. A job that used all of its
    request was killed and would have run longer, so it counts as longer than any walltime up to its request.

    For each risk, the walltime is the smallest, rounded up to 5 min, under which at most this share of the earlier jobs would have
    been killed. `upper` is the one-sided 95 % bound of Clopper and Pearson for as many kills as the risk allows, even if fewer jobs ran
    longer. The walltime is chosen from the same jobs, so this is the exact bound for the probability of exceeding an order statistic.
    `backtest` goes through the earlier jobs in order, makes a suggestion for each from the jobs before it, and counts the jobs that it
    would have killed: the quality of the rule on future jobs.

    Raises WorkloadError if the log has no such user, or too few jobs of that user; PolicyError for a risk outside 0 to 100.
    Source: percentiles of earlier runtimes as in tang13, section 4; Clopper and Pearson, Biometrika 26 (1934); order statistics: Wilks,
    Annals of Mathematical Statistics 12 (1941).

    >>> runs = np.arange(1, 21) * 60
    >>> jobs = Workload.from_arrays(submit=np.arange(20), runtime=runs, requested=runs * 3, procs=np.ones(20, int), machine_procs=4,
    ...                             columns={"user": np.full(20, 7)})
    >>> [(s.risk, s.walltime, s.killed_before) for s in suggest(jobs, user=7, risks=[50, 10]).suggestions]
    [(50.0, 600, 10), (10.0, 1200, 0)]
    """
    for risk in risks:
        if not 0 <= risk < 100:
            raise PolicyError(f"a risk must be a percentage from 0 to below 100, not {risk:g}", "number_out_of_range")
    if unknown := [name for name in kind or {} if name not in KIND]:
        raise PolicyError(f"unknown attribute {unknown[0]!r} of jobs. Valid attributes: {', '.join(KIND)}", "unknown_column")
    wanted = {"user": user} | {name: (kind or {})[name] for name in KIND if name in (kind or {})}
    mine, like = alike_jobs(workload, wanted, months, min_jobs)
    ran, asked = workload.runtime[mine], workload.requested[mine]
    return Advice(
        like=like,
        jobs=len(mine),
        median_runtime=float(np.median(np.minimum(ran, asked))),
        median_request=float(np.median(asked)),
        killed=int((ran >= asked).sum()),
        suggestions=[suggestion_from(workload, mine, float(risk), min_jobs) for risk in risks],
    )


def alike_jobs(workload: Workload, wanted: Mapping[str, int], months: int | None, min_jobs: int) -> tuple[Array, list[str]]:
    """Return the indices of similar earlier jobs, and the attributes that they share with the next job."""
    columns = {"procs": workload.procs, "requested": workload.requested}
    for name in wanted:
        column = columns.get(name, workload.columns.get(name))
        if column is None:
            raise WorkloadError(f"{workload.origin.name} does not record the {name} of its jobs; leave it out", "missing_column")
        columns[name] = column
    given = list(wanted.items())
    recent = np.ones(len(workload), bool)
    if months is not None:
        recent = workload.submit > int(workload.submit[-1]) - months * 30 * 86_400
    count = int((recent & (columns["user"] == wanted["user"])).sum())
    if not count:
        place = workload.origin.name + ("" if months is None else f", last {months} months,")
        raise WorkloadError(f"{place} has no job of user {wanted['user']}; give a user with jobs in the log", "unknown_name")
    for length in range(len(given), 0, -1):
        mask = recent.copy()
        for name, value in given[:length]:
            mask &= columns[name] == value
        if mask.sum() >= min_jobs:
            return np.flatnonzero(mask), [name for name, _ in given[:length]]
    raise WorkloadError(
        f"user {wanted['user']} has {count} earlier jobs, but {min_jobs} are needed; set another minimum (min_jobs=N)", "too_few_jobs"
    )


def allowed_kills(risk: float, jobs: int) -> int:
    """Return the number of kills among `jobs` jobs that a risk, percent, allows."""
    return math.floor(risk / 100 * jobs)


def exceeded_by(risk: float, ordered: Sequence[int], step: int = ROUND) -> int:
    """Return the smallest multiple of `step` (a walltime, s, or an amount) that at most `risk` percent of the ascending values exceed."""
    place = len(ordered) - 1 - allowed_kills(risk, len(ordered))
    return max(-(-ordered[place] // step) * step, step)


def killed_in_hindsight(risk: float, length: Array, cut: Array, min_jobs: int) -> int:
    """Return how many jobs after the first `min_jobs` would have been killed by suggestions from the jobs before them."""
    lengths: list[int] = np.where(cut, length + 1, length).tolist()
    ordered = sorted(lengths[:min_jobs])
    kills = 0
    for own in lengths[min_jobs:]:
        kills += own > exceeded_by(risk, ordered)  # a job that was cut counts as longer, as in `outran`
        insort(ordered, own)
    return kills


def suggestion_from(workload: Workload, jobs: Array, risk: float, min_jobs: int = LEAST) -> Suggestion:
    """Return the suggestion for a risk from these jobs (indices); jobs that used all of their requests count as longer."""
    ran, asked = workload.runtime[jobs], workload.requested[jobs]
    length, cut = np.minimum(ran, asked), ran >= asked
    walltime = exceeded_by(risk, np.sort(np.where(cut, length + 1, length)).tolist())
    longer = int(outran(length, cut, walltime).sum())
    tries, kills = max(len(length) - min_jobs, 0), killed_in_hindsight(risk, length, cut, min_jobs)
    return Suggestion(
        risk=risk,
        walltime=walltime,
        killed_before=longer,
        upper=100 * share_at_most(allowed_kills(risk, len(length)), len(length)),
        backtest=100 * kills / tries if tries else math.nan,
        slack=float(np.median(np.minimum(length / walltime, 1.0))),
    )


def outran(length: Array, cut: Array, walltime: int) -> Array:
    """Return a mask (bool) of the jobs that a walltime would have killed: longer jobs, and jobs that were killed at this length."""
    killed: Array = (length > walltime) | (cut & (length >= walltime))
    return killed


def share_at_most(count: int, cases: int, confidence: float = SURE) -> float:
    """Return the one-sided upper confidence bound on a share that was observed `count` times in `cases`.

    Source: Clopper and Pearson, Biometrika 26 (1934): a quantile of a beta distribution.

    >>> round(share_at_most(0, 20), 3), round(share_at_most(10, 20), 3)
    (0.139, 0.698)
    """
    from scipy.special import betaincinv  # slow to load

    return 1.0 if count >= cases else float(betaincinv(count + 1, cases - count, confidence))
