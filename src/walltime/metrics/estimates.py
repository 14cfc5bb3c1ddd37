"""Metrics of estimates: the fraction used, their accuracy, and the values that users choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics.jobs import accuracy, mean
from walltime.metrics.summary import Averages

if TYPE_CHECKING:
    from walltime.workload import Workload

Array = np.ndarray

OVER = 101
"""The last bin of the histogram: jobs that used more than 100 percent."""
FAILED = 0
"""SWF status of a failed job; in the logs of mualem01, these are the killed jobs."""
SHORT, FEW_HOURS = 90, 7200
"""Limits of two rows of mualem01, Table 2: runtimes under 90 s, and estimates of at most 2 h."""
FULL, TENTH = 0.99, 0.1
"""Used share from which an estimate counts as fully used, and used share below which it counts as hardly used."""
YEAR = 365 * 86_400
"""Requests of at least this many seconds mean no limit, as the readers of logs write it."""
MINUTE = 60
LIMIT_STATES = ("TIMEOUT", "DEADLINE")
"""States of jobs that ended at a time limit."""
USES = (
    ("ran less than a minute", 0.0),
    ("used less than 10 %", TENTH),
    ("used 10 to 50 %", 0.5),
    ("used 50 to 99 %", FULL),
    ("reached the limit: 99 % or more", np.inf),
)
"""Classes of jobs by use: the first by runtime, the others by their largest share of the request."""


EXACT = 100
"""In a log of at least this many jobs, requests that all equal the runtimes do not count as limits."""


def has_limit(jobs: Workload) -> Array:
    """Return a mask (bool) of the jobs with a limit; readers give jobs without a limit a request of a year, or of their runtime.

    If the requests of all jobs, at least `EXACT`, equal their runtimes, no job has a limit: models without estimates generate such logs.
    """
    guessed = jobs.origin.changed.get("runtime_as_estimate", 0)
    equal = jobs.requested == np.maximum(jobs.runtime, 1)
    are_guessed = (guessed and int(equal.sum()) <= guessed) or (len(jobs) >= EXACT and bool(equal.all()))
    by_runtime = equal if are_guessed else np.zeros(len(jobs), bool)
    return (jobs.requested < YEAR) & ~by_runtime


def reached_limit(jobs: Workload) -> Array:
    """Return a mask (bool) of the jobs that ended at a time limit, by their runtime or by their state in the log (TIMEOUT, DEADLINE)."""
    states = [k + 1 for k, name in enumerate(jobs.origin.names.get("state", ())) if name in LIMIT_STATES]
    by_state = np.isin(jobs.columns["state"], states) if "state" in jobs.columns else np.zeros(len(jobs), bool)
    return by_state | (has_limit(jobs) & (jobs.runtime >= jobs.requested))


def estimate_use(runtime: Array, requested: Array) -> Array:
    """Return the percentage of its estimate that each job used, `floor(100 r / e)`, int64.

    `runtime`, `requested`: int64 s, shape (jobs,), requests at least 1. Source: feitelson98, Fig. 4; mualem01, Fig. 8; rounding down is an
    interpretation.

    >>> estimate_use(np.array([0, 99, 100, 150]), np.array([100, 100, 100, 100])).tolist()
    [0, 99, 100, 150]
    """
    return 100 * np.asarray(runtime, np.int64) // np.asarray(requested, np.int64)


def use_histogram(runtime: Array, requested: Array) -> Array:
    """Return the number of jobs by percentage of the estimate used, 0 to 100, and over 100 in the last bin; int64, shape (102,).

    Source: mualem01, Fig. 8.

    >>> use_histogram(np.array([0, 99, 300]), np.array([100, 100, 100]))[[0, 99, 100, 101]].tolist()
    [1, 1, 0, 1]
    """
    return np.bincount(np.minimum(estimate_use(runtime, requested), OVER), minlength=OVER + 1)


@dataclass(frozen=True)
class EstimateUse(Averages):
    """The rows of mualem01, Table 2, as numbers of jobs; None for killed jobs if the log does not record them."""

    total: int
    killed: int | None
    """jobs with status 0 (failed)"""
    full: int
    """100 % peak: jobs in the bins 99 and 100"""
    killed_full: int | None
    """killed jobs in this peak"""
    zero: int
    """0 % peak: jobs in bin 0"""
    short: int
    """jobs that ran under 90 s"""
    few_hours: int
    """jobs that estimated at most 2 h"""

    def percent(self, name: str) -> float:
        """Return a number in percent of the total, or, for killed jobs in the peak, of the peak; NaN for a total of 0."""
        count = getattr(self, name)
        whole = self.full if name == "killed_full" else self.total
        return 100 * count / whole if count is not None and whole else float("nan")


def estimate_use_table(runtime: Array, requested: Array, killed: Array | None = None) -> EstimateUse:
    """Return the numbers of mualem01, Table 2, for these jobs.

    `runtime`, `requested`: int64 s; `killed`: bool; shape (jobs,). The paper's row "zero jobs" needs per-node data that SWF logs lack.
    Source: mualem01, Table 2; the definitions were inferred from its numbers for KTH.

    >>> estimate_use_table(np.array([10, 100]), np.array([9000, 100]), np.array([False, True])).as_dict()
    {'total': 2, 'killed': 1, 'full': 1, 'killed_full': 1, 'zero': 1, 'short': 1, 'few_hours': 1}
    """
    use = estimate_use(runtime, requested)
    full = (use == 99) | (use == 100)
    count = np.count_nonzero
    return EstimateUse(
        total=len(use),
        killed=None if killed is None else int(count(killed)),
        full=int(count(full)),
        killed_full=None if killed is None else int(count(full & np.asarray(killed, bool))),
        zero=int(count(use == 0)),
        short=int(count(np.asarray(runtime) < SHORT)),
        few_hours=int(count(np.asarray(requested) <= FEW_HOURS)),
    )


def accuracy_by_runtime(runtime: Array, requested: Array, bins: int = 100) -> tuple[Array, Array]:
    """Return mean runtime, s, and mean accuracy r / e, by runtime: of the shortest hundredth of the jobs, the next one, and so on.

    `runtime`, `requested`: int64 s, shape (jobs,). Jobs that ran longer than requested count as killed at the estimate, r = e; jobs with
    equal runtimes stay in the given order. Bin sizes differ by at most one job; with fewer jobs than `bins`, each job is a bin. The results
    are float64, shape (bins,). Source: tsafrir06, Fig. 12; killing at the estimate is an interpretation.

    >>> means = accuracy_by_runtime(np.array([10, 40, 20, 90]), np.array([100, 100, 100, 60]), bins=2)
    >>> [values.round(2).tolist() for values in means]
    [[15.0, 50.0], [0.15, 0.7]]
    """
    if bins < 1:
        raise WorkloadError(f"the number of bins must be at least 1, not {bins}", "number_out_of_range")
    ran = np.minimum(np.asarray(runtime), np.asarray(requested))
    order = np.argsort(ran, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, max(len(order), 1))) if len(part)]
    ratio = ran / np.asarray(requested)
    return np.array([ran[p].mean() for p in parts]), np.array([ratio[p].mean() for p in parts])


def use_by_group(members: Sequence[tuple[str, Array]], runtime: Array, requested: Array, procs: Array) -> list[dict[str, Any]]:
    """Return a row for each group of jobs on the use of its estimates.

    `members`: name of each group and the indices of its jobs; `runtime`, `requested`: int64 s; `procs`: int64; shape (jobs,). A row has the
    `group`, the number of `jobs`, their `share_of_use` (of the processor time of all groups), and the medians of both times in s. It also
    has `mean_use` (the mean of r / e, at most 1), and the shares of jobs that use less than a tenth (`under_tenth`) and all (`full`, 99 %
    or more).

    >>> row, = use_by_group([("user 7", np.array([0, 2]))], np.array([50, 9, 100]), np.array([100, 9, 100]), np.array([1, 1, 1]))
    >>> row["jobs"], row["mean_use"], row["full"]
    (2, 0.75, 0.5)
    """
    used = np.minimum(runtime / requested, 1.0)
    work = (runtime * procs).astype(np.float64)
    total = float(sum(work[inside].sum() for _, inside in members))
    return [
        {
            "group": name,
            "jobs": len(inside),
            "share_of_use": float(work[inside].sum()) / total if total else float("nan"),
            "median_runtime": float(np.median(runtime[inside])),
            "median_request": float(np.median(requested[inside])),
            "mean_use": float(used[inside].mean()),
            "under_tenth": float((used[inside] < TENTH).mean()),
            "full": float((used[inside] >= FULL).mean()),
        }
        for name, inside in members
    ]


@dataclass(frozen=True)
class RequestedTime(Averages):
    """Requested and used processor-hours of some jobs; shares and accuracies are nan without jobs."""

    jobs: int
    asked_hours: float
    """processor-hours, request x processors"""
    used_hours: float
    """processor-hours, runtime x processors"""
    unused_hours: float
    """processor-hours requested and not used"""
    over_hours: float
    """processor-hours used beyond the requests"""
    used_share: float
    """used over requested: the accuracy of all requests together (tang13, section 3)"""
    mean_accuracy: float
    """of the single requests (tang13, eq. 3)"""
    median_accuracy: float
    at_limit: float
    """share of jobs that used 99 % of the request or more, the 100 % peak"""
    under_tenth: float
    """share of jobs that used less than a tenth of it"""


def requested_time(runtime: Array, requested: Array, procs: Array) -> RequestedTime:
    """Return requested and used processor-hours; requested hours are used plus unused hours, without hours beyond the requests.

    `runtime`, `requested`: int64 s, requests at least 1; `procs`: int64; shape (jobs,). Source: tang13, section 3.

    >>> found = requested_time(np.array([1800, 7200]), np.array([3600, 3600]), np.array([4, 1]))
    >>> found.asked_hours, found.used_hours, found.unused_hours, found.over_hours, found.used_share, found.mean_accuracy
    (5.0, 4.0, 2.0, 1.0, 0.8, 0.5)
    """
    runtime, requested, procs = (np.asarray(values, np.int64) for values in (runtime, requested, procs))
    width = procs.astype(np.float64) / 3600
    total, used = float((requested * width).sum()), float((runtime * width).sum())
    exact = accuracy(runtime, requested)
    share = runtime / requested
    return RequestedTime(
        jobs=len(exact),
        asked_hours=total,
        used_hours=used,
        unused_hours=float((np.maximum(requested - runtime, 0) * width).sum()),
        over_hours=float((np.maximum(runtime - requested, 0) * width).sum()),
        used_share=used / total if total else float("nan"),
        mean_accuracy=mean(exact),
        median_accuracy=float(np.median(exact)) if len(exact) else float("nan"),
        at_limit=mean(share >= FULL),
        under_tenth=mean(share < TENTH),
    )


def jobs_by_use(runtime: Array, requested: Array, procs: Array, failed: Array | None = None) -> list[dict[str, Any]]:
    """Return the fields of `RequestedTime` for each class of USES, and its number of `failed` jobs, None if not known.

    `runtime`, `requested`: int64 s, requests at least 1; `procs`: int64; `failed`: bool, None if not known; shape (jobs,). A job under a
    minute that reaches its limit counts as a job at its limit.

    >>> a = np.array([1, 1, 1, 1])
    >>> [row["jobs"] for row in jobs_by_use(np.array([59, 300, 3600, 30]), np.array([3600, 3600, 3600, 30]), a)]
    [1, 1, 0, 0, 2]
    """
    share = np.asarray(runtime) / np.asarray(requested)
    number = np.searchsorted([edge for _, edge in USES[1:-1]], share, side="right") + 1
    number[(runtime < MINUTE) & (share < FULL)] = 0
    rows = []
    for k, (name, _) in enumerate(USES):
        mine = np.flatnonzero(number == k)
        count = None if failed is None else int(failed[mine].sum())
        rows.append({"group": name, "failed": count, **requested_time(runtime[mine], requested[mine], procs[mine]).as_dict()})
    return rows


def popular_values(values: Array) -> tuple[Array, Array]:
    """Return the distinct values, most frequent first, then ascending, and the number of jobs with each; int64.

    >>> [a.tolist() for a in popular_values(np.array([60, 300, 60, 10]))]
    [[60, 10, 300], [2, 1, 1]]
    """
    distinct, counts = np.unique(np.asarray(values), return_counts=True)
    order = np.lexsort((distinct, -counts))
    return distinct[order], counts[order]


def top_share(values: Array, top: int = 20) -> float:
    """Return the percentage of jobs with one of the `top` most frequent values; nan without jobs.

    Source: tsafrir06, section VII: about 90 % for the first 20 estimates.

    >>> top_share(np.array([60, 300, 60, 10]), top=1)
    50.0
    """
    _, counts = popular_values(values)
    return 100 * float(counts[:top].sum()) / float(counts.sum()) if len(counts) else float("nan")


def rank_of(value: int, values: Array) -> tuple[int, float]:
    """Return the popularity rank of a value and the percentage of jobs with it; rank 0 without such jobs.

    The rank is one more than the number of more frequent values. Source: tsafrir06, section VII, for the largest estimate.

    >>> rank_of(300, np.array([60, 300, 60, 10]))
    (2, 25.0)
    """
    distinct, counts = popular_values(values)
    mine = counts[distinct == value]
    if not len(mine):
        return 0, 0.0
    return int(np.count_nonzero(counts > mine[0])) + 1, 100 * float(mine[0]) / float(counts.sum())


def distribution(values: Array) -> tuple[Array, Array]:
    """Return the distribution function: the distinct values, ascending, and the percentage of jobs with at most each; float64.

    Source: tsafrir06, Fig. 11.

    >>> [a.tolist() for a in distribution(np.array([60, 300, 60, 10]))]
    [[10, 60, 300], [25.0, 75.0, 100.0]]
    """
    distinct, counts = np.unique(np.asarray(values), return_counts=True)
    return distinct, 100 * np.cumsum(counts) / max(len(values), 1)
