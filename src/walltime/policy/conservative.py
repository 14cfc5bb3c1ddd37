"""Conservative backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.errors import PolicyError
from walltime.policy.base import Passes, Policy, one_of


@dataclass(frozen=True)
class Conservative(Policy):
    """Conservative backfilling: every job gets a reservation when it arrives, nobody may delay it.

    `compress` (default) keeps the reservations and moves each one forward, in queue order, when a job ends early; no job starts
    after its first reservation (Mu'alem, Feitelson, TPDS 12 (2001), section 2.1). `scratch` makes all reservations afresh, in queue
    order, at every event; a job may start after its first reservation (Feitelson, Mu'alem Weil, IPPS 1998, Fig. 1).

    `compression`: `once` moves each job forward once when a job ends early (default); `fixpoint` begins again until no job
    moves; `always` does it once at every event. Other values than the default run on the reference engine.
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
            raise PolicyError("conservative from scratch does not compress, so it has no compression to choose")

    @property
    def title(self) -> str:
        """What the policy is called in sentences and figures."""
        return ("Conservative" if self.variant == "compress" else "Conservative from scratch") + self.remarks()

    @property
    def promises(self) -> tuple[str, ...]:
        """With kept reservations each job starts by its first one; with others, the head by the one that it had as the head."""
        return ("reserved_start_missed", "no_reserved_start") if self.variant == "compress" else ("head_waits", "head_delayed")

    @property
    def passes(self) -> Passes | None:
        """A reservation for every job."""
        if self.compression != "once":
            return None
        return Passes("kept" if self.variant == "compress" else "fresh", None)
