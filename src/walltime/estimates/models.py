"""Models of what the scheduler believes about the runtimes; the kill limit stays the user's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError
from walltime.workload import Workload

Array = np.ndarray


class EstimateModel:
    """What every model of estimates can do."""

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Believed runtimes, int64 seconds, at least 1, one per job of the workload."""
        raise NotImplementedError


@dataclass(frozen=True)
class UserEstimates(EstimateModel):
    """The users' own requests."""

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The requests."""
        return workload.requested


@dataclass(frozen=True)
class ExactEstimates(EstimateModel):
    """The time that each job will really run before it ends or is killed.

    Source: P2 section 4.2, f = 1 (SPEC T-01); runtimes of 0 are lifted to 1 s (SPEC Q-02).
    """

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The runtimes, at most the requests, at least 1."""
        return np.maximum(np.minimum(workload.runtime, workload.requested), 1)


@dataclass(frozen=True)
class FactorEstimates(EstimateModel):
    """The users' requests times a factor, rounded to whole seconds.

    Source: P2 section 4.5 and P3 Fig. 2 (SPEC T-04), with factor 2.
    """

    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.factor < 1e6:
            raise PolicyError(f"the factor of the estimates must be over 0, not {self.factor}")

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The products."""
        return np.maximum(np.floor(workload.requested * self.factor + 0.5).astype(np.int64), 1)


ESTIMATES = {"user": UserEstimates(), "exact": ExactEstimates(), "double": FactorEstimates(2.0)}


def parse_estimates(text: str) -> EstimateModel:
    """The model of this name; raises PolicyError naming the known ones.

    >>> parse_estimates("double")
    FactorEstimates(factor=2.0)
    """
    model = ESTIMATES.get(text.strip().lower())
    if model is None:
        raise PolicyError(f"unknown estimates {text!r}; known are {', '.join(ESTIMATES)}")
    return model
