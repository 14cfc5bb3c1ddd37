"""Conservative backfilling."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from walltime.errors import PolicyError
from walltime.policy.base import FIRST_OF_ALL, KINDS, PARTICULAR, PassSpec, Policy, Reservations, pass_promises


@dataclass(frozen=True)
class Conservative(Policy):
    """Conservative backfilling: every job gets a reservation on arrival, which no later job may delay.

    `compress` (default) keeps the reservations and, when a job ends early, moves each to its earliest possible start, in queue
    order; no job starts after its first reservation (mualem01, section 2.1). `scratch` recomputes all reservations, in queue
    order, at every event; a job may start after its first reservation (feitelson98, Fig. 1).

    `compression` values other than the default run on the reference engine.
    """

    variant: Literal["compress", "scratch"] = "compress"
    """whether reservations are kept (`compress`) or recomputed at every event (`scratch`)"""
    compression: Literal["once", "fixpoint", "always"] = "once"
    """one round when a job ends early, rounds until no job moves, or one round at every event"""
    processors: Literal["counted", "particular"] = "counted"
    """reservations are for a number of processors (`counted`), or for the lowest-numbered free processors (`particular`), as in Batsim's
    batsched"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.processors == "particular" and self.compression != "once":
            raise PolicyError("conservative with particular processors compresses once; leave out `compression`", "conflicting_options")
        if self.variant == "scratch" and self.compression != "once":
            raise PolicyError("conservative from scratch does not compress; leave out `compression`", "conflicting_options")

    @property
    def reservations(self) -> Reservations:
        """Return which jobs have reservations: all waiting jobs."""
        return Reservations("all", kept=self.variant == "compress" or self.processors == "particular")

    @property
    def title(self) -> str:
        """Name in text and figures."""
        return ("Conservative" if self.variant == "compress" else "Conservative from scratch") + self.options_text()

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: with `compress`, each job starts at its reserved start; with `scratch`, the jobs planned for now start."""
        if self.processors == "particular":
            moves = (
                "all reservations are recomputed in queue order"
                if self.variant == "scratch"
                else "each reservation in queue order moves to its earliest time"
            )
            left = (
                f"a new job reserves the earliest time at which enough processors stay free, and gets {PARTICULAR}; when a job has ended, "
                f"{moves}; jobs whose reservations begin now start"
            )
            return pass_promises(left, others="no other job starts", first=FIRST_OF_ALL)
        if self.variant == "scratch":
            left = (
                "every pass recomputes the reservations in queue order, each as early as possible; jobs whose reservations begin now start"
            )
            return pass_promises(left, others="no other job starts", first=FIRST_OF_ALL)
        when = {"once": "when a job has ended early", "always": "in every pass", "fixpoint": "when a job has ended early, until none moves"}
        return {
            "reserved_start_missed": "an arriving job reserves the earliest start that delays no reservation, and starts then; "
            f"reservations move to earlier times {when[self.compression]}, in queue order, and to later times only if an expected end "
            "becomes later",
            "out_of_turn": "no job starts before its reserved start",
            "reserved_start_differs": FIRST_OF_ALL,
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """Return the passes: a reservation for every job."""
        kept = self.variant == "compress"
        if self.processors == "particular":
            return PassSpec("particular", compression="once" if kept else "scratch")
        return PassSpec("kept" if kept else "fresh", compiled=self.compression == "once", compression=self.compression)
