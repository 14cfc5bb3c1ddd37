"""The mean of the last runs, the prediction of EASY++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from walltime.compiled.prediction_memory import OWN, CompiledPredictor
from walltime.declared import Field
from walltime.predictors.base import Alike, Jobs, SubmittedJob
from walltime.predictors.key_history import KeyPredictor, observe_by_key


@dataclass(frozen=True)
class Tsafrir07(KeyPredictor):
    """The mean runtime, rounded down, of the user's last `k` jobs that have ended.

    With fewer such jobs the request is used. With shortest-job-first backfilling and the correction `tsafrir07`, this is EASY++.

    Source: tsafrir07.
    """

    k: Annotated[int, Field(least=1)] = 2
    """number of the last runs that count"""
    key: Alike = "user"
    """columns that define similar jobs"""
    recompute: bool = False
    """waiting jobs are predicted again in every scheduling pass, not only at submission"""

    def estimate(self, job: SubmittedJob, ended: list[int]) -> float | None:
        """Return the mean of the last k runtimes, if there are k."""
        last = ended[-self.k :]
        return sum(last) // self.k if len(last) == self.k else None

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form."""
        return CompiledPredictor(predict_by_tsafrir07, observe_by_key, None, jobs.memory(self.keys, options=(self.k,)))


@dataclass(frozen=True)
class LastRun(KeyPredictor):
    """The runtime of the last similar job that has ended; without one, the request. The same as `tsafrir07:k=1`."""

    key: Alike = "user"
    """columns that define similar jobs"""

    def estimate(self, job: SubmittedJob, ended: list[int]) -> float | None:
        """Return the last runtime."""
        return ended[-1] if ended else None

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form."""
        return Tsafrir07(k=1, key=self.key).compiled(jobs)


# ------------------------------------------------------------------------------------------------------------ compiled form

RUNS = 0


def predict_by_tsafrir07(learning, job, now):
    """Return the mean of the key's last runtimes, rounded down; -1 if there are too few."""
    key = learning.key[job, 0]
    runs = learning.options[RUNS]
    if key < 0 or learning.keys[key].ended < runs:
        return -1.0
    last = learning.keys[key].first + learning.keys[key].ended
    total = 0
    for i in range(last - runs, last):
        total += learning.jobs[learning.fifo[i]].ran
    learning.jobs[job].basis = OWN
    return float(total // runs)
