"""A running quantile of each user's runtimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from walltime.compiled.prediction_memory import OWN, CompiledPredictor
from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.predictors.base import Alike, Jobs, SubmittedJob
from walltime.predictors.key_history import KeyPredictor, append, count, place_of_rank


@dataclass(frozen=True)
class Quantile(KeyPredictor):
    """The `percent`-th percentile of the runtimes of the last `last` similar jobs that have ended (0: all).

    The percentile of k runtimes is the ceil(percent k / 100)-th smallest (nearest rank). About `percent` percent of the jobs end within
    their prediction, as long as the user's jobs do not change. With fewer than `min_jobs` such jobs, the request is used.

    >>> Quantile(percent=95).label
    'quantile:percent=95'
    """

    percent: Annotated[int, Field(least=1, most=100)] = 90
    """the percentile"""
    key: Alike = "user"
    """columns that define similar jobs"""
    last: Annotated[int, Field(least=0)] = 0
    """number of the last similar jobs that count; 0 for all"""
    min_jobs: Annotated[int, Field(least=1)] = 5
    """with fewer similar jobs, the request is used"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.last < self.min_jobs:
            raise PolicyError(f"last={self.last} is less than min_jobs={self.min_jobs}: raise last or lower min_jobs", "too_few_jobs")

    def estimate(self, job: SubmittedJob, ended: list[int]) -> float | None:
        """Return the percentile, if enough jobs have ended."""
        ranked = sorted(ended[-self.last :])
        return ranked[-(-self.percent * len(ranked) // 100) - 1] if len(ranked) >= self.min_jobs else None

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form."""
        options = (self.percent, self.last, self.min_jobs)
        memory = jobs.memory(self.keys, options=options, ranked=jobs.runtime.astype(float))
        return CompiledPredictor(predict_by_quantile, observe_by_quantile, None, memory)


# ------------------------------------------------------------------------------------------------------------ compiled form

PERCENT, LAST, LEAST = 0, 1, 2


def predict_by_quantile(learning, job, now):
    """Return the percentile of the key's runtimes; -1 if too few jobs have ended."""
    key = learning.key[job, 0]
    if key < 0:
        return -1.0
    history = learning.keys[key]
    runtimes = history.ended - history.expired
    if runtimes < learning.options[LEAST]:
        return -1.0
    rank = (learning.options[PERCENT] * runtimes + 99) // 100
    learning.jobs[job].basis = OWN
    return learning.values[history.first + place_of_rank(learning.marks, history.first, history.room, rank)]


def observe_by_quantile(learning, job, now):
    """Add a job that has ended, and drop the oldest one if there are too many."""
    key = learning.key[job, 0]
    if key < 0:
        return 0
    history = learning.keys[key]
    append(learning, key, job)
    count(learning.marks, history.first, history.room, learning.jobs[job].place, 1)
    if learning.options[LAST] > 0 and history.ended - history.expired > learning.options[LAST]:
        oldest = learning.fifo[history.first + history.expired]
        count(learning.marks, history.first, history.room, learning.jobs[oldest].place, -1)
        history.expired += 1
    return 0
