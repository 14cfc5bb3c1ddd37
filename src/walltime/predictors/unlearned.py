"""Predictions that need no learning: the runtime itself, the user's request, and multiples of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from walltime.declared import Key
from walltime.predictors.base import Array, Predictor


@dataclass(frozen=True)
class ExactRuntime(Predictor):
    """The runtime itself, at least 1 s: the bound for all predictors; with shortest-job-first backfilling this is PERFECT++.

    Source: tsafrir07.
    """

    def given(self, requested: Array, runtime: Array) -> Array:
        """The runtimes."""
        return np.maximum(runtime, 1)


@dataclass(frozen=True)
class UserRequest(Predictor):
    """The user's request, the same as no prediction; for comparisons.

    Source of the factor 2: gaussier15 calls it double_reqtime. A multiple is not capped by the request.
    """

    factor: Annotated[int, Key(least=1)] = 1
    """how many times the request"""

    @property
    def uncapped(self) -> bool:
        """A multiple is."""
        return self.factor > 1

    def given(self, requested: Array, runtime: Array) -> Array:
        """The requests, times the factor."""
        return self.factor * requested
