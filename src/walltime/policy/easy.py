"""EASY backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from walltime.declared import DeclaredKey
from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, Backfilling, HeadPolicy, PassSpec


@dataclass(frozen=True)
class Easy(HeadPolicy, Backfilling):
    """EASY backfilling: a job may be backfilled if it does not delay the job at the head of the queue.

    Other values of `extra`, `shadow`, `ends` and `decisions` than the default run on the reference engine.

    Source: mualem01, section 2.2; feitelson98, Fig. 2; `fitting`: the program predictsim of gaussier15.
    """

    called: ClassVar[str] = "EASY"
    reservations = HEAD
    variants: ClassVar[tuple[str, ...]] = (
        *("", "order=*", "order=saf:starvation=86400"),
        *("backfill-order=sjf", "backfill-order=saf", "backfill-order=lxf"),
    )
    extra: Literal["all", "literal", "none"] = "all"
    """the extra processors are all that are free at the shadow time and not needed by the head; or those counted when the walk over the
    running jobs stops at the first that suffices, among jobs with the same expected end the one started last first; or none"""
    shadow: Literal["afresh", "kept", "once"] = "afresh"
    """shadow time and extra processors are found before each backfilled job; or kept until a job ends or another is the head, even if jobs
    have used extra processors in the meantime, so that the head may be delayed; or once for each head"""
    ends: Literal["by", "before"] = "by"
    """a job that uses no extra processors is expected to end by the shadow time, or before it"""
    arrivals: Literal["all", "fitting"] = "all"
    """which arrivals bring a pass; with predictions and if jobs are backfilled in the order of the queue it can be only those that fit into
    the free processors, which matters only where a silent expiry has moved the shadow time"""

    def says(self, option: DeclaredKey) -> bool:
        """Which arrivals bring a pass matters only if jobs are backfilled in the order of the queue."""
        in_order = self.backfill_order in (None, self.order)
        return super().says(option) and not (option.field == "arrivals" and not in_order)

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
    def passes(self) -> PassSpec:
        """One reservation, for the head."""
        every_arrival = self.arrivals == "all" or self.backfill_order not in (None, self.order)
        default = self.decisions == "revised" and not self.window and (self.extra, self.shadow, self.ends) == ("all", "afresh", "by")
        head = PassSpec(
            "head", 1, compiled=default, window=self.window, committed=self.decisions == "committed", every_arrival=every_arrival
        )
        return head._replace(extra=self.extra, shadow=self.shadow, ends=self.ends)


def find_shadow(running: Iterable[tuple[int, int]], free: int, wanted: int, now: int, literal: bool = False) -> tuple[int, int]:
    """Find EASY's reservation: the shadow time, at which so many processors are free if no other job starts, and the extra nodes.

    `running`: the ends (s) and the processors of those that run. Of the jobs that end at the shadow time all count; read literally, the
    walk stops at the first sufficient one.

    Source: mualem01, section 2.2.

    >>> find_shadow([(10, 2), (20, 3)], free=1, wanted=4, now=5)
    (20, 2)
    """
    shadow, by_end = now, sorted(running, key=lambda one: one[0])
    while by_end and (free < wanted or (not literal and by_end[0][0] <= shadow)):
        end, procs = by_end.pop(0)
        free += procs
        shadow = max(end, now)
    return shadow, free - wanted
