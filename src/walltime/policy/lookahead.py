"""Backfilling that looks ahead: LOS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, Backfilling, PassSpec, Support

MOST_AHEAD = 1000
"""The most jobs that can be considered together."""
ONE_NUMBER = "the best set of jobs is looked for in one number of processors"


@dataclass(frozen=True)
class Lookahead(Backfilling):
    """EASY backfilling of the set of jobs that together use the most processors now: LOS, lookahead optimizing scheduler.

    Of the waiting jobs that could be backfilled alone, in the backfill order, the first `lookahead` are considered together; this
    is repeated with those that are left until none could be. So a lookahead of 1 is EASY.

    Source: Shmueli and Feitelson, JPDC 2005; the other objective is that of the program pyss.
    """

    called: ClassVar[str] = "LOS"
    reservations = HEAD
    on_pools = Support("", ONE_NUMBER)
    variants: ClassVar[tuple[str, ...]] = ("", "ties=slowdown")
    lookahead: Annotated[int, Key(least=1, most=MOST_AHEAD)] = 50
    """how many jobs are considered together"""
    ties: Literal["head", "slowdown"] = "head"
    """which of equally good sets is taken: the one that has the jobs closest to the head of the queue; or, of these, the one with the
    highest sum of expected slowdowns"""
    objective: Literal["procs", "procseconds"] = "procs"
    """what a set has most of: processors, or the sum of processors x believed runtimes"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties == "slowdown" and self.objective != "procs":
            raise PolicyError("ties of LOS are broken by slowdown only where its objective is procs")

    @property
    def promises(self) -> Mapping[str, str]:
        """The head starts as soon as it fits, and the best combinations of jobs that do not delay it."""
        return {**combination(self.lookahead, "procs, then slowdown" if self.ties == "slowdown" else self.objective, True), **KINDS}

    @property
    def passes(self) -> PassSpec:
        """One reservation, for the head; jobs behind it are chosen together."""
        objective = "slowdown" if self.ties == "slowdown" else self.objective
        return PassSpec("lookahead", 1, ahead=self.lookahead, objective=objective)


def combination(ahead: int, objective: str, reserves: bool) -> dict[str, str]:
    """What backfilling of combinations promises; `reserves`: whether the head has a reservation."""
    may = "now + believed <= shadow time or procs <= extra processors" if reserves else "no reservation to mind"
    return {
        "head_waits": HEAD_STARTS,
        "left_waiting": f"of the first {ahead} jobs in backfill order with procs <= free and {may}, the combination with the most "
        f"{objective} that fits together starts, of equal ones that with jobs closest to the head; this is repeated until none could start",
        "reservation_delayed" if reserves else "out_of_turn": "no other job starts ahead of the head",
        "reserved_start_differs": FIRST_OF_HEAD if reserves else "nobody has a reservation",
    }
