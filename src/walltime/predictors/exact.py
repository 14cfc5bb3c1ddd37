"""The runtime itself, as a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from walltime.predictors.base import Array, Predictor


@dataclass(frozen=True)
class ExactRuntime(Predictor):
    """The runtime itself, at least 1 s: the bound for all predictors; with shortest-job-first backfilling this is PERFECT++.

    Source: tsafrir07.
    """

    name: ClassVar[str] = "exact"

    def given(self, requested: Array, runtime: Array) -> Array:
        """The runtimes."""
        return np.maximum(runtime, 1)
