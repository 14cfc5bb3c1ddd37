"""EASY backfilling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, Backfilling, Heading, Passes, Reservations, one_of


@dataclass(frozen=True)
class Easy(Heading, Backfilling):
    """EASY backfilling: a job may be backfilled if it does not delay the job at the head of the queue.

    `extra`: the extra nodes are `all` nodes that are free at the shadow time and not needed by the head (default), or, with
    `literal`, those counted when the walk over the running jobs stops at the first sufficient job; among jobs with the same
    expected end the one started last comes first. `shadow`: shadow time and extra nodes are recomputed (`afresh`) before each
    backfilled job (default), or `kept` until a job terminates or the head changes, even if jobs have used extra nodes in the
    meantime; the head may then be delayed; `once` finds them once for each head. With `extra="none"` no job may use extra nodes.
    `ends`: a job that uses no extra nodes is expected to end `by` the shadow time (default) or `before` it. `decisions`, `window`: see
    `Heading`. Values other than the default run on the reference engine.

    `arrivals`: `all` bring a scheduling pass (default), or, with predictions and if jobs are backfilled in the order of the queue,
    only those that are `fitting` into the free processors. It matters only where a silent expiry has moved the shadow time.

    Source: mualem01, section 2.2; feitelson98, Fig. 2; `fitting`: the program predictsim of gaussier15.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"easy": {}}

    extra: Literal["all", "literal", "none"] = "all"
    shadow: Literal["afresh", "kept", "once"] = "afresh"
    ends: Literal["by", "before"] = "by"
    arrivals: Literal["all", "fitting"] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("extra", self.extra, ("all", "literal", "none"))
        one_of("shadow", self.shadow, ("afresh", "kept", "once"))
        one_of("ends", self.ends, ("by", "before"))
        one_of("arrivals", self.arrivals, ("all", "fitting"))

    def _says_nothing(self, name: str, value: Any) -> bool:
        in_order = self.backfill_order in (None, self.order)
        return (name == "arrivals" and not in_order) or super()._says_nothing(name, value)

    @property
    def reservations(self) -> Reservations:
        """One, of the head of the queue."""
        return HEAD

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return "EASY" + self.remarks()

    @property
    def promises(self) -> Mapping[str, str]:
        """The head of the queue starts as soon as it fits, and whoever does not delay it, if it fits; nobody else."""
        by = "<" if self.ends == "before" else "<="
        room = "" if self.extra == "none" else " or procs <= extra processors"
        when = {
            "afresh": "for each job that is backfilled",
            "kept": "until a job ends or another is the head",
            "once": "once for each head",
        }
        counted = ", those counted at the first running job that suffices" if self.extra == "literal" else ""
        fits = f"procs <= free, and now + believed {by} shadow time{room}{counted}"
        return {
            "head_waits": HEAD_STARTS,
            "left_waiting": f"in backfill order, every job behind the head starts that has {fits}; these are found {when[self.shadow]}",
            "reservation_delayed": "no other job starts ahead of the head",
            "reserved_start_differs": FIRST_OF_HEAD,
            **KINDS,
        }

    @property
    def passes(self) -> Passes | None:
        """One reservation, for the head."""
        every_arrival = self.arrivals == "all" or self.backfill_order not in (None, self.order)
        default = self.reads_as_papers and (self.extra, self.shadow, self.ends) == ("all", "afresh", "by")
        return Passes("head", 1, every_arrival=every_arrival) if default else None
