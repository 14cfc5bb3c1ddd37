"""The mean of the last runs: what EASY++ predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from walltime.estimates.predictors.base import FinishedJob, Predictor, SubmittedJob, check_key, check_whole, key_of


@dataclass(frozen=True)
class Tsafrir07(Predictor):
    """The mean of the runtimes of the last `k` jobs of the same user that have ended, its fraction cut off.

    With fewer such jobs the request stands. `key`: which jobs are alike, of `walltime.estimates.KEYS`. `recompute`: predict
    waiting jobs again at every scheduling pass, not only when they are submitted. With shortest job backfilled first, and the
    correction `tsafrir07`, this is EASY++.

    Source: Tsafrir, Etsion, Feitelson, TPDS 2007 (SPEC L-10).
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


@dataclass(frozen=True)
class LastRun(Predictor):
    """The runtime of the last job like this one that has ended; without one the request stands.

    Source: common practice (SPEC L-12).
    """

    name: ClassVar[str] = "last"
    key: str = "user"

    def __post_init__(self) -> None:
        check_key(self.name, self.key)

    def begin(self) -> MeanOfLast:
        """A learner that has seen no job."""
        return MeanOfLast(self.key, 1)


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
