"""Backfilling with a reservation for each of the first so many jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from walltime.errors import PolicyError
from walltime.policy.base import Backfilling, Passes


@dataclass(frozen=True)
class Hybrid(Backfilling):
    """Backfilling with reservations for the first `depth` blocked jobs, made afresh at every event.

    0 reserves for nobody, 1 is EASY, a depth over the length of the queue is conservative backfilling from scratch.
    Source: the reservation depth of production schedulers.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"hybrid": {}}
    bare: ClassVar[str | None] = "depth"

    depth: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise PolicyError(f"the depth of a hybrid must be a whole number from 0 on, not {self.depth!r}")

    @property
    def title(self) -> str:
        """What the policy is called in sentences and figures."""
        return f"Hybrid ({self.depth:,} reservation{'' if self.depth == 1 else 's'})" + self.remarks("depth")

    @property
    def promises(self) -> tuple[str, ...]:
        """The head of the queue starts as soon as it fits, and by its reservation where it has one."""
        return ("head_waits", "head_delayed") if self.depth > 0 else ("head_waits",)

    @property
    def passes(self) -> Passes:
        """Up to one reservation as EASY; more are made afresh."""
        return Passes("head" if self.depth <= 1 else "fresh", self.depth)
