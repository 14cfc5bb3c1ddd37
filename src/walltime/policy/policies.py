"""Scheduling policies as data: what a scheduler reserves, and in which order it looks at the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        """The name, with the orders where they are not first come, first served, and the readings that are not the default."""
        orders = () if self.order == FCFS else (self.order.name,)
        said = ", ".join((*orders, *self.readings))
        return f"{self.name}[{said}]" if said else self.name

    @property
    def readings(self) -> tuple[str, ...]:
        """Where a paper can be read in several ways and this policy takes another than the default; only the reference engine can."""
        return ()


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
        return f"{self.name}[{', '.join((self.order.name, f'backfill {backfill.name}', *self.readings))}]"


@dataclass(frozen=True)
class Easy(Backfilling):
    """EASY backfilling: a job may jump ahead if it does not delay the job at the head of the queue.

    `extra`: the extra nodes at the shadow time are `all` that are free then (default), or `literal`, those counted when the
    walk over the running jobs stops at the first that is sufficient; of jobs with one expected end the last started comes first.
    `shadow`: shadow time and extra nodes are found `afresh` whenever a job to backfill is looked for (default), or `kept`
    until a job terminates or another one is at the head, whatever extra nodes jobs have taken meanwhile; the head may then be
    delayed. Other values than the default run on the reference engine.

    Source: P2 section 2.2 (SPEC A-03, Q-06).
    """

    extra: Literal["all", "literal"] = "all"
    shadow: Literal["afresh", "kept"] = "afresh"

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("extra", self.extra, ("all", "literal"))
        _one_of("shadow", self.shadow, ("afresh", "kept"))

    @property
    def readings(self) -> tuple[str, ...]:
        """The readings that are not the default."""
        given = (("literal extra nodes", self.extra == "literal"), ("shadow time kept", self.shadow == "kept"))
        return tuple(name for name, other in given if other)


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

    `compression`: `once` moves each job forward once when a job ends early (default); `fixpoint` begins again until no job
    moves; `always` does it once at every event (SPEC Q-07, Q-07b). Other values than the default run on the reference engine.
    """

    variant: Literal["compress", "scratch"] = "compress"
    compression: Literal["once", "fixpoint", "always"] = "once"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("compress", "scratch"):
            raise PolicyError(f"the variant of conservative must be compress or scratch, not {self.variant!r}")
        _one_of("compression", self.compression, ("once", "fixpoint", "always"))
        if self.variant == "scratch" and self.compression != "once":
            raise PolicyError("conservative from scratch does not compress, so it has no compression to choose")

    @property
    def name(self) -> str:
        """What the policy is called on the command line."""
        return "conservative" if self.variant == "compress" else "conservative-scratch"

    @property
    def readings(self) -> tuple[str, ...]:
        """The readings that are not the default."""
        return () if self.compression == "once" else (f"compression {self.compression}",)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PolicyError(f"{name} must be {' or '.join(known)}, not {value!r}")
