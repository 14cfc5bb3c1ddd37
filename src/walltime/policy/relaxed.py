"""Relaxed backfilling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from walltime.errors import PolicyError
from walltime.policy.base import Backfilling, Passes


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
    def title(self) -> str:
        """The policy's name in text and figures."""
        return f"Relaxed ({self.omega:g})" + self.remarks("omega")

    @property
    def promises(self) -> tuple[str, ...]:
        """The head of the queue starts as soon as it fits, and by its reserved start and what it may be delayed."""
        return ("head_waits", "head_delayed")

    @property
    def tolerance(self) -> float:
        """Omega."""
        return self.omega

    @property
    def passes(self) -> Passes:
        """One reservation, for the head, and a later time until which it may be delayed."""
        return Passes("relaxed", 1)
