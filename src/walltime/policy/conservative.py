"""Conservative backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.errors import PolicyError
from walltime.policy.base import Passes, Policy, one_of


@dataclass(frozen=True)
class Conservative(Policy):
    """Conservative backfilling: every job gets a reservation on arrival, which no later job may delay.

    `compress` (default) keeps the reservations and, when a job ends early, moves each to its earliest possible start, in queue
    order; no job starts after its first reservation (mualem01, section 2.1). `scratch` recomputes all reservations, in queue
    order, at every event; a job may start after its first reservation (feitelson98, Fig. 1).

    `compression`: `once` makes one round when a job ends early (default); `fixpoint` repeats it until no job moves; `always`
    makes one round at every event. Values other than the default run on the reference engine.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {
        "conservative": {"variant": "compress"},
        "conservative-compress": {"variant": "compress"},
        "conservative-scratch": {"variant": "scratch"},
    }

    variant: Literal["compress", "scratch"] = "compress"
    compression: Literal["once", "fixpoint", "always"] = "once"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("compress", "scratch"):
            raise PolicyError(f"the variant of conservative must be compress or scratch, not {self.variant!r}")
        one_of("compression", self.compression, ("once", "fixpoint", "always"))
        if self.variant == "scratch" and self.compression != "once":
            raise PolicyError("conservative from scratch does not compress, so it takes no compression option")

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return ("Conservative" if self.variant == "compress" else "Conservative from scratch") + self.remarks()

    @property
    def promises(self) -> tuple[str, ...]:
        """With `compress` each job starts by its first reserved start; with `scratch` the head by the one that it had as the head."""
        return ("reserved_start_missed", "no_reserved_start") if self.variant == "compress" else ("head_waits", "head_delayed")

    @property
    def passes(self) -> Passes | None:
        """A reservation for every job."""
        if self.compression != "once":
            return None
        return Passes("kept" if self.variant == "compress" else "fresh", None)
