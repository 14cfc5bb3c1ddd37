"""Relaxed backfilling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from walltime.declared import Key
from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, PLAIN_ON_POOLS, Backfilling, PassSpec


@dataclass(frozen=True)
class Relaxed(Backfilling):
    """EASY backfilling that may delay the head of the queue by up to `omega` times its expected wait.

    The expected wait is that until the head's first reservation. The head may start so much later than the earliest reservation that it
    has had since it became the head, and no later; 0 is EASY.

    Source: Ward, Mahood and West, JSSPP 2002; omega 0.5 is an assumption, they try several.
    """

    reservations = HEAD
    on_pools = PLAIN_ON_POOLS
    omega: Annotated[float, Key(least=0)] = 0.5
    """by how many of its expected waits the head may be delayed"""

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return f"Relaxed ({self.omega:g})" + self.remarks("omega")

    @property
    def promises(self) -> Mapping[str, str]:
        """The head starts as soon as it fits, and whoever does not delay it by more than it may be."""
        latest = "latest = earliest shadow time as the head + omega x (first shadow time - submit), or the shadow time if later"
        return {
            "head_waits": HEAD_STARTS,
            "left_waiting": "in backfill order, every job behind the head starts that has procs <= free, and now + believed <= latest or "
            f"procs <= processors that are left beside the head at that time; {latest}",
            "reservation_delayed": "no other job starts ahead of the head",
            "reserved_start_differs": FIRST_OF_HEAD,
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """One reservation, for the head, and a later time until which it may be delayed."""
        return PassSpec("relaxed", 1, omega=self.omega)
