"""Predictions without learning: the users' requests, and perfect ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from walltime.estimates.predictors.base import Array, Predictor


@dataclass(frozen=True)
class UserRequest(Predictor):
    """The user's request; the same as not to predict at all, for comparisons."""

    name: ClassVar[str] = "user"

    def given(self, requested: Array, runtime: Array) -> Array:
        """The requests."""
        return requested


@dataclass(frozen=True)
class ExactRuntime(Predictor):
    """The runtime itself, at least 1 s: the bound for all predictors; with shortest job backfilled first, PERFECT++.

    Source: Tsafrir, Etsion, Feitelson, TPDS 2007 (SPEC L-10).
    """

    name: ClassVar[str] = "exact"

    def given(self, requested: Array, runtime: Array) -> Array:
        """The runtimes."""
        return np.maximum(runtime, 1)
