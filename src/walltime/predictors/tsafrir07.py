"""The mean of the last runs: what EASY++ predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from walltime.engine.learning import OWN, Compiled
from walltime.predictors.base import FinishedJob, Predictor, SubmittedJob, check_whole
from walltime.predictors.keys import check_key, key_of
from walltime.predictors.known import Jobs
from walltime.predictors.shared import observe_by_key


@dataclass(frozen=True)
class Tsafrir07(Predictor):
    """The mean of the runtimes of the last `k` jobs of the same user that have ended, its fraction cut off.

    With fewer such jobs the request stands. `key`: which jobs are alike, of `walltime.predictors.KEYS`. `recompute`: predict
    waiting jobs again at every scheduling pass, not only when they are submitted. With shortest job backfilled first, and the
    correction `tsafrir07`, this is EASY++.

    Source: Tsafrir, Etsion, Feitelson, TPDS 18 (2007).
    """

    name: ClassVar[str] = "tsafrir07"
    k: int = 2
    key: str = "user"
    recompute: bool = False

    def __post_init__(self) -> None:
        check_whole(self.name, "the number of runs k", self.k, 1)
        check_key(self.name, self.key)

    @property
    def again(self) -> bool:
        """As `recompute` says."""
        return self.recompute

    def begin(self) -> MeanOfLast:
        """A learner that has seen no job."""
        return MeanOfLast(self.key, self.k)

    def compiled(self, jobs: Jobs) -> Compiled:
        """The same, compiled."""
        return Compiled(predict_by_tsafrir07, observe_by_key, None, jobs.memory([self.key], options=(self.k,)))


class MeanOfLast:
    """Remembers all runtimes of each key, in the order in which the jobs ended."""

    def __init__(self, key: str, k: int):
        self.key = key
        self.k = k
        self.runtimes: dict[tuple[int, ...], list[int]] = {}

    def observe(self, job: FinishedJob) -> None:
        """Note the runtime."""
        key = key_of(job, self.key)
        if key is not None:
            self.runtimes.setdefault(key, []).append(job.runtime)

    def predict(self, job: SubmittedJob) -> float | None:
        """The mean of the last k, if there are k."""
        key = key_of(job, self.key)
        last = self.runtimes.get(key, [])[-self.k :] if key is not None else []
        return sum(last) // self.k if len(last) == self.k else None


# ------------------------------------------------------------------------------------------------------------ compiled form

RUNS = 0


def predict_by_tsafrir07(learning, job, now):
    """The mean of the key's last runs, its fraction cut off; -1 where there are fewer."""
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
