"""Backfilling with reservations for a given number of blocked jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from walltime.errors import PolicyError
from walltime.policy.base import Backfilling, Passes


@dataclass(frozen=True)
class Hybrid(Backfilling):
    """Backfilling with reservations for the first `depth` blocked jobs, recomputed at every event.

    0 makes no reservations, 1 is EASY, a depth beyond the length of the queue is conservative backfilling from scratch.
    Source: the reservation depth of production schedulers.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"hybrid": {}}
    bare: ClassVar[str | None] = "depth"

    depth: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise PolicyError(f"the depth of a hybrid must be a whole number of at least 0, not {self.depth!r}")

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return f"Hybrid ({self.depth:,} reservation{'' if self.depth == 1 else 's'})" + self.remarks("depth")

    @property
    def promises(self) -> tuple[str, ...]:
        """The head of the queue starts as soon as it fits and, if it has a reservation, by its reserved start."""
        return ("head_waits", "head_delayed") if self.depth > 0 else ("head_waits",)

    @property
    def passes(self) -> Passes:
        """Up to one reservation as in EASY; more are recomputed in every pass."""
        return Passes("head" if self.depth <= 1 else "fresh", self.depth)
