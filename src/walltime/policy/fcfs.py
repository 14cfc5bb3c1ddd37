"""No backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from walltime.policy.base import Heading, Passes
from walltime.policy.orders import FCFS


@dataclass(frozen=True)
class NoBackfilling(Heading):
    """Start jobs from the head of the queue while they fit: first come, first served, or another `order` without backfilling.

    `decisions`, `window`: see `Heading`. Source: feitelson98, section 1.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"fcfs": {}}

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return "FCFS" if self.order == FCFS else "No backfilling" + self.remarks()

    @property
    def promises(self) -> tuple[str, ...]:
        """No job is overtaken, and the head of the queue starts as soon as it fits."""
        return ("fcfs_order", "head_waits") if self.reads_as_papers else ()

    @property
    def passes(self) -> Passes | None:
        """Starts from the head, without a search."""
        return Passes("head", 0, backfills=False, window=self.window) if self.decisions == "revised" else None
