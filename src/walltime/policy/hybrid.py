"""Backfilling with reservations for a given number of blocked jobs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from walltime.errors import PolicyError
from walltime.policy.base import Backfilling, Passes, one_of
from walltime.policy.formulas import Formula

BEST = {"procs": Formula("lqf"), "seconds": Formula("ljf"), "procseconds": Formula("laf")}
"""The backfill order that is the best fit, by metric."""
GREEDY_AHEAD = 50
"""Of how many jobs combinations are looked for."""


@dataclass(frozen=True)
class Hybrid(Backfilling):
    """Backfilling with reservations for the first `depth` blocked jobs, recomputed at every event.

    0 makes no reservations, 1 is EASY, a depth beyond the length of the queue is conservative backfilling from scratch.

    `fit`: which job is backfilled of those that may be: the `first` in the backfill order, the `best` (the one with the most of
    `metric`), or, up to depth 1, the combination that has the most of it together, found among the first 50 of them (`greedy`). `metric`:
    processors (`procs`), believed runtime (`seconds`), or their product (`procseconds`). So `fit=best` is the backfill order lqf, ljf or
    laf.

    Source: the reservation depth and the backfill policies (FIRSTFIT, BESTFIT, GREEDY) of the Maui scheduler.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"hybrid": {}}
    bare: ClassVar[str | None] = "depth"

    depth: int = 1
    fit: Literal["first", "best", "greedy"] = "first"
    metric: Literal["procs", "seconds", "procseconds"] = "procs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise PolicyError(f"the depth of a hybrid must be a whole number of at least 0, not {self.depth!r}")
        one_of("fit", self.fit, ("first", "best", "greedy"))
        one_of("metric", self.metric, tuple(BEST))
        if self.fit == "first":
            object.__setattr__(self, "metric", "procs")
        if self.fit == "best":
            if self.backfill_order is not None and self.backfill_order != BEST[self.metric]:
                raise PolicyError("a hybrid that backfills the best fit takes no backfill order")
            object.__setattr__(self, "backfill_order", BEST[self.metric])
        if self.fit == "greedy" and self.depth > 1:
            raise PolicyError(f"combinations are found with at most one reservation, so fit=greedy is not for depth={self.depth}")

    def _says_nothing(self, name: str, value: Any) -> bool:
        if name == "backfill_order" and self.fit == "best":
            return True
        return super()._says_nothing(name, value)

    def _own_options(self) -> list[tuple[str, Any]]:
        """The options that differ from the default, and the depth in any case."""
        options = dict(super()._own_options()) | {"depth": self.depth}
        return [(field.name, options[field.name]) for field in fields(self) if field.name in options]

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
        if self.fit == "greedy":
            return Passes("lookahead", self.depth, ahead=GREEDY_AHEAD, objective=self.metric)
        return Passes("head" if self.depth <= 1 else "fresh", self.depth)
