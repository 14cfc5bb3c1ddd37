"""Backfilling with reservations for the jobs that have waited long for their length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from walltime.declared import Key
from walltime.policy.base import FIRST_OF_ALL, KINDS, PLAIN_ON_POOLS, Backfilling, PassSpec, Reservations


@dataclass(frozen=True)
class Selective(Backfilling):
    """Backfilling with reservations for the jobs whose expansion factor exceeds a `threshold`.

    The expansion factor is (wait + believed) / believed, as of the pass. In every pass these jobs get reservations, in queue order; then
    all others that delay none of these start, in the backfill order. With a threshold of 0 it is conservative backfilling from scratch.

    Source: Srinivasan, Kettimuthu, Subramani and Sadayappan, JSSPP 2002; the threshold 2 is an assumption.
    """

    on_pools = PLAIN_ON_POOLS
    variants: ClassVar[tuple[str, ...]] = ("", "threshold=adaptive")
    threshold: Annotated[float | Literal["adaptive"], Key(least=0)] = 2.0
    """the expansion factor from which on a job has a reservation; `adaptive` is the mean bounded slowdown (of at least 10 s) of the jobs
    that have ended so far, 1 before the first end"""

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
    def passes(self) -> PassSpec:
        """Reservations for some jobs, recomputed in every pass."""
        if self.threshold == "adaptive":
            return PassSpec("selective", adapts=True)
        return PassSpec("selective", factor=self.threshold)
