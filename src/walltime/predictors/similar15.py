"""The mean runtime of a user's similar jobs, found with a chain of decreasingly specific templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from walltime.compiled.prediction_memory import GENERAL, OWN, CompiledPredictor
from walltime.declared import Field
from walltime.predictors.base import Jobs, SubmittedJob
from walltime.predictors.key_history import KeyPredictor, append

CHAIN = ("shape", "request", "size", "user")
"""Keys of `walltime.predictors.KEYS`, in descending order of similarity."""


@dataclass(frozen=True)
class Similar15(KeyPredictor):
    """The mean runtime of the user's jobs with the same size and request; otherwise with the same request, with the same size, or of all.

    The first of these groups with at least `min_jobs` ended jobs is used; only its last `last` jobs count (0: all). The mean is
    rounded down. If no group has enough jobs, the request is used.

    Source: similarity templates as in Smith, Foster, Taylor (IPPS workshop, 1998); this chain of templates is our own.

    >>> Similar15(min_jobs=3).label
    'similar15:min-jobs=3'
    """

    min_jobs: Annotated[int, Field(least=1)] = 1
    """smallest number of ended jobs of a group"""
    last: Annotated[int, Field(least=0)] = 0
    """number of a group's last jobs that count; 0 for all"""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys, the most similar jobs first."""
        return CHAIN

    def estimate(self, job: SubmittedJob, ended: list[int]) -> float | None:
        """Return the mean of the last runtimes of a group with enough jobs, else None."""
        last = ended[-self.last :]
        return sum(last) // len(last) if len(ended) >= self.min_jobs else None

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form."""
        return CompiledPredictor(predict_by_similar15, observe_by_similar15, None, jobs.memory(CHAIN, options=(self.min_jobs, self.last)))


# ------------------------------------------------------------------------------------------------------------ compiled form

LEAST, LAST = 0, 1
TEMPLATES = len(CHAIN)


def predict_by_similar15(learning, job, now):
    """Return the mean of the first group in the chain with enough jobs; -1 without one."""
    for template in range(TEMPLATES):
        key = learning.key[job, template]
        if key < 0 or learning.keys[key].ended < learning.options[LEAST]:
            continue
        history = learning.keys[key]
        learning.jobs[job].basis = OWN if template == 0 else GENERAL
        return float(history.total // (history.ended - history.expired))
    return -1.0


def observe_by_similar15(learning, job, now):
    """Append a job that has ended to each of its groups, and subtract the job that is no longer among the last."""
    for template in range(TEMPLATES):
        key = learning.key[job, template]
        if key < 0:
            continue
        history = learning.keys[key]
        append(learning, key, job)
        history.total += learning.jobs[job].ran
        if learning.options[LAST] > 0 and history.ended - history.expired > learning.options[LAST]:
            history.total -= learning.jobs[learning.fifo[history.first + history.expired]].ran
            history.expired += 1
    return 0
