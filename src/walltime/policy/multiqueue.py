"""Backfilling with a queue, and a reservation, for each class of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.policy.base import FIRST_OF_ALL, HEAD_STARTS, KINDS, PLAIN_ON_POOLS, Backfilling, PassSpec, Reservations

MOST_BOUNDS = 60


@dataclass(frozen=True)
class MultiQueue(Backfilling):
    """Backfilling with several queues: the first job of each has a reservation, and a job starts if it delays none of these.

    The queues are those of the jobs believed to run for less than the first of the `bounds` (s), for less than the second, ..., and for
    the rest; on the command line `bounds=100/1000/10000`. In every pass the first jobs get reservations in queue order; one
    that starts makes room for the next of its queue. No processors are set apart for a queue: it may use whatever is idle.

    Source: Lawson and Smirni, JSSPP 2002, whose abstract says no more; the bounds and the lack of partitions are assumptions.
    """

    called: ClassVar[str] = "Multiple queues"
    on_pools = PLAIN_ON_POOLS
    bounds: Annotated[tuple[int, ...], Key(least=1)] = (100, 1000, 10_000)
    """bounds of the believed runtimes of the queues, s, rising"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bounds or self.bounds != tuple(sorted(set(self.bounds))) or len(self.bounds) > MOST_BOUNDS:
            raise PolicyError(f"the bounds of the queues must be rising numbers of seconds, at most {MOST_BOUNDS}, not {self.bounds!r}")

    def queue_of(self, believed: int) -> int:
        """The number of the queue of a job, from 0."""
        return sum(believed >= bound for bound in self.bounds)

    @property
    def reservations(self) -> Reservations:
        """One of the first job of each queue."""
        classes = len(self.bounds) + 1
        return Reservations("some", f"only the first job of each of the {classes} queues, one for each class of lengths, has one")

    @property
    def promises(self) -> Mapping[str, str]:
        """Who has a reservation for now starts, and whoever delays none."""
        return {
            "head_waits": HEAD_STARTS,
            "left_waiting": "reservations are made in every pass, in queue order, for the first job of each queue, and for the next one if "
            "that starts; who has one for now starts, and then, in backfill order, every job that fits now beside them",
            "reservation_delayed": "no other job starts",
            "reserved_start_differs": FIRST_OF_ALL,
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """A reservation for the first job of each queue, recomputed in every pass."""
        return PassSpec("multiqueue", bounds=self.bounds)
