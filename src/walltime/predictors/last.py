"""The runtime of the last job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from walltime.engine.kernel.prediction_memory import Compiled
from walltime.predictors.base import Predictor
from walltime.predictors.keys import check_key
from walltime.predictors.known import Jobs
from walltime.predictors.tsafrir07 import MeanOfLast, Tsafrir07


@dataclass(frozen=True)
class LastRun(Predictor):
    """The runtime of the last similar job that has ended; without one, the request.

    `key`: which jobs are alike, one of `walltime.predictors.KEYS`. The same as `tsafrir07:k=1`.
    """

    name: ClassVar[str] = "last"
    key: str = "user"

    def __post_init__(self) -> None:
        check_key(self.name, self.key)

    def begin(self) -> MeanOfLast:
        """A learner that has seen no job."""
        return MeanOfLast(self.key, 1)

    def compiled(self, jobs: Jobs) -> Compiled:
        """The compiled form."""
        return Tsafrir07(k=1, key=self.key).compiled(jobs)
