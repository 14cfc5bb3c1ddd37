"""Relaxed backfilling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from walltime.errors import PolicyError
from walltime.policy.base import FIRST_OF_HEAD, HEAD, HEAD_STARTS, KINDS, Backfilling, Passes, Reservations


@dataclass(frozen=True)
class Relaxed(Backfilling):
    """EASY backfilling that may delay the head of the queue by up to `omega` times its expected wait.

    The expected wait is that until the head's first reservation. The head may start so much later than the earliest reservation that it
    has had since it became the head, and no later; 0 is EASY.

    Source: Ward, Mahood and West, JSSPP 2002; omega 0.5 is an assumption, they try several.
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"relaxed": {}}

    omega: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.omega, bool) or not isinstance(self.omega, int | float) or not 0 <= self.omega < math.inf:
            raise PolicyError(f"the omega of relaxed backfilling must be a number of at least 0, not {self.omega!r}")

    @property
    def reservations(self) -> Reservations:
        """One, of the head of the queue."""
        return HEAD

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
    def passes(self) -> Passes:
        """One reservation, for the head, and a later time until which it may be delayed."""
        return Passes("relaxed", 1)
