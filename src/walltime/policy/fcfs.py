"""No backfilling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from walltime.policy.base import HEAD_STARTS, KINDS, NOBODY, HeadPolicy, PassSpec
from walltime.policy.orders import FCFS


@dataclass(frozen=True)
class NoBackfilling(HeadPolicy):
    """Start jobs from the head of the queue while they fit: first come, first served, or another `order` without backfilling.

    Source: feitelson98, section 1.
    """

    reservations = NOBODY

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return "FCFS" if self.order == FCFS else "No backfilling" + self.remarks()

    @property
    def promises(self) -> Mapping[str, str]:
        """No job is overtaken, and the head of the queue starts as soon as it fits."""
        head = HEAD_STARTS
        if self.window:
            head += f"; the head is the first, in queue order, of the {self.window} waiting jobs that arrived first"
        if self.decisions == "committed":
            head += "; a job that has come to the head stays there until it starts"
        nobody = {"out_of_turn": "no other job starts", "reserved_start_differs": "nobody has a reservation"}
        return {"head_waits": head, **nobody, **KINDS}

    @property
    def passes(self) -> PassSpec:
        """Starts from the head, without a search."""
        committed = self.decisions == "committed"
        return PassSpec("head", 0, compiled=not committed, backfills=False, window=self.window, committed=committed)
