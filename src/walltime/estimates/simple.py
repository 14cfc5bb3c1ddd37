"""Deterministic estimates: the users', perfect ones, and multiples of the users'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from walltime.errors import PolicyError
from walltime.estimates.model import Array, EstimateModel, whole_seconds
from walltime.workload import Workload


@dataclass(frozen=True)
class UserEstimates(EstimateModel):
    """The users' own requests, which remain the kill limit.

    `truncated`: requests and runtimes are truncated to this many seconds, E_max, as for the real estimates shown beside the
    truncated f-model in tsafrir06, Fig. 13. It sets the kill limit, so `limit` is "model" then.
    """

    limit: Literal["model", "user"] = "user"
    truncated: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truncated is not None and (self.truncated < 1 or self.limit == "user"):
            raise PolicyError("truncated estimates need at least 1 s, and set the kill limit themselves (limit='model')")

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The requests, at most `truncated`."""
        return workload.requested if self.truncated is None else np.minimum(workload.requested, self.truncated)


@dataclass(frozen=True)
class ExactEstimates(EstimateModel):
    """Perfect estimates: the runtimes themselves, at least 1 s.

    Source: mualem01, section 4.2, f = 1.
    """

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The runtimes, at least 1."""
        return np.maximum(self.runtime(workload), 1)


@dataclass(frozen=True)
class FactorEstimates(EstimateModel):
    """The users' requests times a factor, for the scheduler only: the request remains the kill limit.

    Doubled perfect estimates are another model, `FModel(2, deterministic=True)`.

    Source: mualem01, section 4.5, and tsafrir06, Fig. 2, with a factor of 2.
    """

    limit: Literal["model", "user"] = "user"
    factor: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor <= 1e6:
            raise PolicyError(f"the factor of the estimates must be over 0 and up to a million, not {self.factor:g}")

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The products, rounded to the nearest second, at least 1."""
        return whole_seconds(workload.requested * self.factor, np.ones(1, np.int64))
