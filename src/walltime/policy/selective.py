"""Backfilling with reservations for the jobs that have waited long for their length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.errors import PolicyError
from walltime.policy.base import FIRST_OF_ALL, KINDS, Backfilling, Passes, Reservations


@dataclass(frozen=True)
class Selective(Backfilling):
    """Backfilling with reservations for the jobs whose expansion factor exceeds a `threshold`.

    The expansion factor is (wait + believed) / believed, as of the pass. In every pass these jobs get reservations, in queue order; then
    all others that delay none of these start, in the backfill order. `threshold`: a number, or `adaptive`, the mean bounded
    slowdown (of at least 10 s) of the jobs that have ended so far, 1 before the first end. 0 is conservative backfilling from scratch.

    Source: Srinivasan, Kettimuthu, Subramani and Sadayappan, JSSPP 2002; the threshold 2 is an assumption.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"selective": {}}

    threshold: float | Literal["adaptive"] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        value = self.threshold
        if value != "adaptive" and (isinstance(value, bool | str) or not isinstance(value, int | float) or not 0 <= value < math.inf):
            raise PolicyError(f"the threshold of selective reservations must be a number of at least 0, or adaptive, not {value!r}")

    @classmethod
    def read_option(cls, name: str, value: str) -> Any:
        """The value of an option's text."""
        if value.lower() == "adaptive":
            return "adaptive"
        try:
            return float(value)
        except ValueError:
            raise PolicyError(f"{name} must be a number or adaptive, not {value!r}") from None

    @property
    def reservations(self) -> Reservations:
        """Those of the jobs that have waited long."""
        if self.threshold == "adaptive":
            limit = "the mean bounded slowdown of the jobs that have ended"
        elif self.threshold < 1:
            return Reservations("all")
        else:
            limit = f"{self.threshold:g}"
        return Reservations("some", f"only jobs that have waited long for their length have one, by an expansion factor over {limit}")

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return f"Selective ({self.threshold if self.threshold == 'adaptive' else f'{self.threshold:g}'})" + self.remarks("threshold")

    @property
    def promises(self) -> Mapping[str, str]:
        """Who has a reservation for now starts, and whoever delays none."""
        least = "the mean bounded slowdown so far" if self.threshold == "adaptive" else f"{self.threshold:g}"
        return {
            "head_waits": f"reservations are made in every pass, in queue order, for jobs with (wait + believed) / believed > {least}; "
            "the head starts if it has one for now, or none and fits beside them",
            "left_waiting": "so does every other job, those without a reservation in backfill order",
            "reservation_delayed": "no other job starts",
            "reserved_start_differs": FIRST_OF_ALL,
            **KINDS,
        }

    @property
    def passes(self) -> Passes:
        """Reservations for some jobs, recomputed in every pass."""
        return Passes("selective", None)
