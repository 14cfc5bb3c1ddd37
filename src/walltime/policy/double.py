"""EASY backfilling with a doubled reservation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, PLAIN_ON_POOLS, Backfilling, PassSpec


@dataclass(frozen=True)
class Double(Backfilling):
    """EASY backfilling that expects a job that starts at the head of the queue to run for twice as long as it was planned.

    The shadow time of the next head is later by that, so more is backfilled before it. A job that is backfilled is expected to run for as
    long as it was planned. Doubling what is planned for all jobs is EASY with the estimates `double`.

    Source: `HeadDoubleEasyScheduler` of the program pyss.
    """

    called: ClassVar[str] = "EASY, heads doubled"
    reservations = HEAD
    on_pools = PLAIN_ON_POOLS
    passes = PassSpec("head", 1, head_runtime_factor=2)
    variants: ClassVar[tuple[str, ...]] = ("", "backfill-order=sjf")

    @property
    def promises(self) -> Mapping[str, str]:
        """The head of the queue starts as soon as it fits, and whoever does not delay its doubled reservation; nobody else."""
        return {
            "head_waits": f"{HEAD_STARTS}; one that started so is expected to end 2 x believed after its start, others after believed",
            "left_waiting": "in backfill order, every job behind the head starts that has procs <= free, and now + believed <= shadow time "
            "or procs <= extra processors; these are found for each job that is backfilled",
            "reservation_delayed": "no other job starts ahead of the head",
            "reserved_start_differs": FIRST_OF_HEAD,
            **KINDS,
        }
