"""Backfilling within the slack of reservations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.policy.base import KINDS, OWN_ORDER, PassSpec, Policy, Reservations, Support
from walltime.policy.orders import FCFS

MOST_RECENT = 1_000_000
"""The most recent starts that can be remembered."""


@dataclass(frozen=True)
class Slack(Policy):
    """Slack-like backfilling: every job has a reservation on arrival, and later jobs may delay it by its slack.

    The slack is `factor` times the mean wait of the `recent` jobs that started last, at least 1 s. An arriving job takes the first place
    in the line of waiting jobs at which none behind it, planned again in the order of the line, is moved past its first reservation and
    slack, or, if it is past that already, moved at all; at the end of the line it delays nobody. Reservations are recomputed in the
    order of the line at every event. With exact estimates and a factor of 0 that is conservative backfilling.

    Source: the idea of Talby and Feitelson, IPPS 1999. Their slack depends on priorities, and they compare schedules by a cost function;
    formula, factor and the number of recent jobs are assumptions here.
    """

    called: ClassVar[str] = "Slack-like"
    reservations = Reservations("all", kept=True)
    on_pools = Support("", "its line of waiting jobs is one for a whole machine, without partitions and limits")
    factor: Annotated[float, Key(least=0)] = 1.0
    """the slack is this factor times the mean wait of the `recent` jobs, at least 1 s"""
    recent: Annotated[int, Key(least=1, most=MOST_RECENT)] = 100
    """how many of the jobs that started last count"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order != FCFS:
            raise PolicyError("slack-like backfilling orders the waiting jobs itself, so it takes no other order than fcfs")

    @property
    def without(self) -> Mapping[str, str]:
        """Orders."""
        return {**super().without, **dict.fromkeys(("history", "threshold"), OWN_ORDER)}

    @property
    def promises(self) -> Mapping[str, str]:
        """Every job starts where it is planned, and newcomers delay nobody beyond their slack."""
        return {
            "reserved_start_missed": "jobs are planned in the order of the line, each at its earliest place; who is planned for now starts",
            "out_of_turn": "no other job starts; a newcomer takes the first place in the line at which nobody behind it is planned later "
            "than both now and first reservation + slack; slack = factor x mean wait of the recent starts, at least factor seconds",
            "reserved_start_differs": "that of a job is the start at which it is planned on arrival",
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """A reservation for every job, recomputed in every pass."""
        return PassSpec("slack", factor=self.factor, recent=self.recent)
