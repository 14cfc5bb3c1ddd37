"""The user's request, as a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from walltime.predictors.base import Array, Predictor


@dataclass(frozen=True)
class UserRequest(Predictor):
    """The user's request, the same as no prediction; for comparisons."""

    name: ClassVar[str] = "user"

    def given(self, requested: Array, runtime: Array) -> Array:
        """The requests."""
        return requested
