"""Backfilling with reservations for a given number of blocked jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from walltime.declared import DeclaredField, Field
from walltime.errors import PolicyError
from walltime.policy.base import (
    FIRST_OF_ALL,
    FIRST_OF_HEAD,
    HEAD,
    HEAD_STARTS,
    KINDS,
    NO_RESERVATIONS,
    BoundedBackfilling,
    PassSpec,
    Reservations,
    Support,
    pass_promises,
)
from walltime.policy.formulas import Formula
from walltime.policy.later import ONE_NUMBER, combination
from walltime.wording import counted

BEST_FIT = {"procs": Formula("lqf"), "seconds": Formula("ljf"), "procseconds": Formula("laf")}
"""The backfill order of the best fit, by metric."""
GREEDY_AHEAD = 50
"""Number of jobs whose combinations are considered."""


@dataclass(frozen=True)
class Hybrid(BoundedBackfilling):
    """Backfilling with reservations for the first `depth` blocked jobs, recomputed at every event.

    Depth 0 makes no reservations, 1 is EASY, and more than the queue length is conservative backfilling from scratch.

    Source: the reservation depth and the backfill policies (FIRSTFIT, BESTFIT, GREEDY) of the Maui scheduler.
    """

    positional: ClassVar[tuple[str, ...]] = ("depth",)
    written: ClassVar[tuple[str, ...]] = ("depth",)
    variants: ClassVar[tuple[str, ...]] = (
        *("depth=0", "depth=4"),
        *("depth=1,fit=best", "depth=1,fit=best,metric=seconds", "depth=1,fit=greedy,metric=procseconds"),
    )
    depth: Annotated[int, Field(least=0)] = 1
    """number of blocked jobs with a reservation"""
    fit: Literal["first", "best", "greedy"] = "first"
    """which job is backfilled: the `first` in backfill order, or the `best`, with the largest `metric` (as with the backfill orders lqf,
    ljf and laf). Up to depth 1, also `greedy`: the set of jobs with the largest total among the first 50 candidates"""
    metric: Literal["procs", "seconds", "procseconds"] = "procs"
    """processors, planned runtime, or their product"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit == "first":
            object.__setattr__(self, "metric", "procs")
        if self.fit == "best":
            if self.backfill_order is not None and self.backfill_order != BEST_FIT[self.metric]:
                raise PolicyError("fit=best of a hybrid implies its backfill order; leave backfill-order out")
            object.__setattr__(self, "backfill_order", BEST_FIT[self.metric])
        if self.fit == "greedy" and self.depth > 1:
            raise PolicyError(f"fit=greedy needs a depth of at most 1, not {self.depth}")
        if self.overtakes is not None and (self.fit == "greedy" or self.depth > 1):
            raise PolicyError("overtakes of a hybrid needs a depth of at most 1, and not fit=greedy", "conflicting_options")

    def is_written(self, option: DeclaredField) -> bool:
        """Leave out the backfill order that the best fit implies."""
        return super().is_written(option) and not (option.field == "backfill_order" and self.fit == "best")

    @property
    def reservations(self) -> Reservations:
        """Return which jobs have reservations: the first `depth` blocked jobs."""
        if self.depth < 2:
            return HEAD if self.depth else NO_RESERVATIONS
        return Reservations("some", f"only the first {self.depth} jobs that cannot start have one")

    @property
    def on_pools(self) -> Support:
        """Return the engine for several pools; none with `fit=greedy`."""
        return Support("", ONE_NUMBER) if self.fit == "greedy" else super().on_pools

    @property
    def title(self) -> str:
        """Name in text and figures."""
        return f"Hybrid ({counted(self.depth, 'reservation')})" + self.options_text("depth")

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: the head starts as soon as it fits, and so do jobs that fit and delay no reservation."""
        if self.fit == "greedy":
            return {**combination(GREEDY_AHEAD, self.metric, self.depth > 0), **KINDS}
        if self.depth == 0:
            rest = {"out_of_turn": "no other job starts", "reserved_start_differs": "no job has a reservation"}
            left = "in backfill order, every job behind the head starts if procs <= free"
            return self.bounded({"head_waits": HEAD_STARTS, "left_waiting": left, **rest, **KINDS})
        reserved = "the head" if self.depth == 1 else f"the first {self.depth:,} blocked jobs"
        promises = pass_promises(
            f"in backfill order, every job that fits now next to the reservations of {reserved} starts",
            others=f"no other job starts: every pass makes reservations for {reserved}, in queue order",
            first=FIRST_OF_HEAD if self.depth == 1 else FIRST_OF_ALL,
        )
        return self.bounded(promises)

    @property
    def passes(self) -> PassSpec:
        """Up to one reservation as in EASY; more are recomputed in every pass."""
        if self.fit == "greedy":
            return PassSpec("lookahead", self.depth, ahead=GREEDY_AHEAD, objective=self.metric)
        return PassSpec("head" if self.depth <= 1 else "fresh", self.depth, overtakes=self.overtakes)
