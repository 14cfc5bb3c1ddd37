"""Scheduling policies as data: what a scheduler reserves, and in which order it looks at the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from walltime.errors import PolicyError
from walltime.policy.orders import FCFS, Order


@dataclass(frozen=True)
class Policy:
    """What every policy has: the order of the queue."""

    order: Order = FCFS

    def __post_init__(self) -> None:
        if not isinstance(self.order, Order):
            raise PolicyError(f"order must be a queue order such as walltime.SJF, not {self.order!r}")

    @property
    def name(self) -> str:
        """What the policy is called on the command line."""
        return type(self).__name__.lower()

    @property
    def label(self) -> str:
        """The name, with the orders where they are not first come, first served."""
        return self.name if self.order == FCFS else f"{self.name}[{self.order.name}]"


@dataclass(frozen=True)
class Fcfs(Policy):
    """Start jobs from the head of the queue while they fit; no backfilling.

    Source: P1 section 1 (SPEC A-02). With another `order` it is that order without backfilling.
    """


@dataclass(frozen=True)
class Backfilling(Policy):
    """A policy that lets jobs jump ahead; `backfill_order` (default: `order`) is the order in which candidates are tried."""

    backfill_order: Order | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backfill_order is not None and not isinstance(self.backfill_order, Order):
            raise PolicyError(f"backfill_order must be a queue order such as walltime.SJF, not {self.backfill_order!r}")

    @property
    def label(self) -> str:
        """The name, with the orders where they are not first come, first served."""
        backfill = self.backfill_order or self.order
        if backfill == self.order:
            return super().label
        return f"{self.name}[{self.order.name}, backfill {backfill.name}]"


@dataclass(frozen=True)
class Easy(Backfilling):
    """EASY backfilling: a job may jump ahead if it does not delay the job at the head of the queue.

    Source: P2 section 2.2 (SPEC A-03).
    """


@dataclass(frozen=True)
class Hybrid(Backfilling):
    """Backfilling with reservations for the first `depth` blocked jobs, made afresh at every event.

    0 reserves for nobody, 1 is EASY, a depth over the length of the queue is conservative backfilling from scratch.
    Source: SPEC L-13 (reservation depth).
    """

    depth: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 0:
            raise PolicyError(f"the depth of a hybrid must be a whole number from 0 on, not {self.depth!r}")

    @property
    def name(self) -> str:
        """What the policy is called on the command line."""
        return f"hybrid:{self.depth}"


@dataclass(frozen=True)
class Conservative(Policy):
    """Conservative backfilling: every job gets a reservation when it arrives, nobody may delay it.

    `compress` (default) keeps the reservations and moves each one forward, in queue order, when a job ends early (P2
    section 2.1; SPEC A-04, A-05); no job starts later than it was first promised. `scratch` makes all reservations
    afresh, in queue order, at every event (P1 Fig. 1); promises may be broken.
    """

    variant: Literal["compress", "scratch"] = "compress"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("compress", "scratch"):
            raise PolicyError(f"the variant of conservative must be compress or scratch, not {self.variant!r}")

    @property
    def name(self) -> str:
        """What the policy is called on the command line."""
        return "conservative" if self.variant == "compress" else "conservative-scratch"


@dataclass(frozen=True)
class PlainPolicy(Policy):
    """A policy of your own in plain Python: subclass it and say which waiting jobs start.

    It runs on the reference engine, which is slow; the built-in policies and orders run in the compiled kernel.
    """

    def choose(self, now: int, waiting: Sequence[Any], running: Sequence[Any], free: int) -> Iterable[Any]:
        """The jobs of `waiting` (in order of arrival) that start now, in this order.

        Called after the events of an instant. Jobs have `index, submit, believed, procs`, running ones also `start` and
        `expected_end`; times in seconds. Raises PolicyError at run time if a chosen job does not fit the `free` processors.
        """
        raise NotImplementedError
