"""Walltime adjustment: the user's request times the accuracy of earlier requests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from walltime.compiled.prediction_memory import FOR_EVER, OWN, CompiledPredictor
from walltime.declared import Field
from walltime.predictors.base import Alike, FinishedJob, Jobs, SubmittedJob
from walltime.predictors.key_history import KeyPredictor, count, observe_by_key, place_of_rank

KNOWN_STATISTICS = ("max", "median", *(f"p{percent}" for percent in range(1, 101)))
STATISTICS = ("max", "p95", "p90", "p85", "p80", "p70", "median")
"""The levels of aggressiveness in tang13, section 4.3."""
WINDOWS = (1, 2, 3, 6, 12, None)
"""The history windows of tang13, in months; None for the whole history."""
MONTH = 30 * 86400


@dataclass(frozen=True)
class Tang13(KeyPredictor):
    """The request times a percentile of R = runtime / request, at most 1, over earlier similar jobs.

    Users can obtain short predictions, from which they gain, by submitting many short jobs. The options `weight` and `small`, which are our
    own and not compiled, prevent this.

    Source: tang13, section 4.

    >>> Tang13(statistic="p90", window=None, threshold=0.5).label
    'tang13:statistic=p90,window=all,threshold=0.5'
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "cobalt": {"statistic": "p80", "window": 2, "threshold": 0.5, "min_jobs": 11, "rank": "cobalt", "refresh": 1800}
    }
    """`cobalt`: Cobalt's scheme, with more than 10 jobs of the last 60 days. Source: histm; our half hours begin with the log."""
    key: Alike = "triple"
    """columns that define similar jobs"""
    statistic: Annotated[str, Field(known=KNOWN_STATISTICS, label="max, median, or a percentile from p1 to p100")] = "p85"
    """the statistic of the accuracies of the earlier jobs"""
    window: Annotated[int | None, Field(least=1, literals={"all": None})] = 1
    """months of 30 days before the submission t: only jobs that ended in (t - window, t] count"""
    threshold: Annotated[float, Field(least=0, most=1)] = 0.0
    """lower bound on the percentile"""
    min_jobs: Annotated[int, Field(least=1)] = 10
    """with fewer similar jobs, the request is used"""
    rank: Literal["nearest", "cobalt"] = "nearest"
    """the ceil(p k)-th smallest of k values, or, as in Cobalt, the value at index int(p k), counted from 0"""
    refresh: Annotated[int, Field(least=1)] = 1
    """interval, s, between updates of the history, counted from the start of the log"""
    weight: Literal["jobs", "work"] = "jobs"
    """whether the percentile is over jobs or over processor-seconds"""
    small: Annotated[float, Field(least=0, most=1)] = 0.0
    """jobs are left out if they used less than this fraction of the processor-seconds that the new job requests"""

    @property
    def percent(self) -> int:
        """Return the percentile, 1 to 100."""
        return {"max": 100, "median": 50}.get(self.statistic) or int(self.statistic[1:])

    def record(self, job: FinishedJob) -> tuple[int, float, int]:
        """Return the end, R, and the processor-seconds."""
        return job.end, min(job.runtime / job.requested, 1.0), job.procs * job.runtime

    def estimate(self, job: SubmittedJob, ended: list[tuple[int, float, int]]) -> float | None:
        """Return the adjusted request t_sched = t_req A (tang13, equation 2), s; None with too few jobs."""
        as_of = job.now - job.now % self.refresh
        oldest = -1 if self.window is None else as_of - self.window * MONTH
        least = self.small * job.procs * job.requested
        eligible = sorted((r, work) for end, r, work in ended if oldest < end <= as_of and work >= least)
        count = len(eligible)
        if count < self.min_jobs:
            return None
        place = -(-self.percent * count // 100) - 1
        if self.rank == "cobalt":
            place = min(int(self.percent / 100 * count), count - 1)
        if self.weight == "work":
            place = _place_by_work([work for _, work in eligible], self.percent)
        return job.requested * min(max(eligible[place][0], self.threshold), 1.0)

    @property
    def is_compiled(self) -> bool:
        """Return whether there is a compiled form; `weight=work` and `small` have none."""
        return self.weight == "jobs" and self.small == 0

    def compiled(self, jobs: Jobs) -> CompiledPredictor | None:
        """Return the compiled form."""
        if not self.is_compiled:
            return None
        window = FOR_EVER if self.window is None else self.window * MONTH
        options = (self.min_jobs, window, self.refresh, self.percent, int(self.rank == "cobalt"))
        ratio = np.minimum(jobs.runtime / jobs.requested, 1.0)
        memory = jobs.memory(self.keys, options=options, factors=(self.threshold, self.percent / 100), ranked=ratio)
        return CompiledPredictor(predict_by_tang13, observe_by_key, None, memory)


def _place_by_work(work: list[int], percent: int) -> int:
    """Return the first index up to which this percentage of the work is reached.

    >>> _place_by_work([1] * 10 + [1000], 95), _place_by_work([5, 5, 5, 5], 50)
    (10, 1)
    """
    wanted = percent * sum(work)
    return next(place for place, done in enumerate(itertools.accumulate(work)) if 100 * done >= wanted)


# ------------------------------------------------------------------------------------------------------------ compiled form

LEAST, WINDOW, REFRESH, PERCENT, BY_FRACTION = 0, 1, 2, 3, 4
THRESHOLD, FRACTION = 0, 1


def predict_by_tang13(learning, job, now):
    """Return the request times a percentile of the accuracies of earlier requests; -1 if there are too few."""
    known, options, key = learning.jobs, learning.options, learning.key[job, 0]
    if key < 0:
        return -1.0
    history = learning.keys[key]
    first = history.first
    as_of = now - now % options[REFRESH]
    while history.admitted < history.ended:
        newest = known[learning.fifo[first + history.admitted]]
        if newest.ended_at > as_of:
            break
        count(learning.marks, first, history.room, newest.place, 1)
        history.admitted += 1
    while history.expired < history.admitted:
        oldest = known[learning.fifo[first + history.expired]]
        if oldest.ended_at > as_of - options[WINDOW]:
            break
        count(learning.marks, first, history.room, oldest.place, -1)
        history.expired += 1
    eligible = history.admitted - history.expired
    if eligible < options[LEAST]:
        return -1.0
    if options[BY_FRACTION]:
        rank = min(int(learning.factors[FRACTION] * eligible), eligible - 1) + 1
    else:
        rank = (options[PERCENT] * eligible + 99) // 100
    known[job].basis = OWN
    percentile = learning.values[first + place_of_rank(learning.marks, first, history.room, rank)]
    return known[job].requested * min(max(percentile, learning.factors[THRESHOLD]), 1.0)
