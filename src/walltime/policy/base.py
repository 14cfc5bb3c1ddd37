"""What every policy declares: its names and options, the rules it guarantees, and how the compiled engine runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, ClassVar, Literal, NamedTuple

from walltime.declared import DeclaredKey, Key
from walltime.errors import PolicyError
from walltime.policy.orders import FCFS, Order
from walltime.specification import Specified, name_of, spell

HEAD_STARTS = "the head of the queue starts in the first pass in which procs <= free; then the next is the head"
FIRST_OF_HEAD = "that of a job is its first shadow time as the head; a job that never waits at the head has none"
FIRST_OF_ALL = "that of a job is the start at which it is first planned"
KINDS = {
    "kind_wrong": "a job that starts while one ahead of it waits is backfilled; of the others, one that starts on arrival is immediate"
}
"""What policies promise of the head, of first reservations and of the labels of starts."""


class Kind(IntEnum):
    """How a job started. Backfilled jobs are counted as in feitelson98, Fig. 3, mualem01, Fig. 5, and tsafrir06, Fig. 5."""

    IMMEDIATE = 0
    """on arrival, with no job ahead of it waiting"""
    RESERVED = 1
    """after a wait, with no job ahead of it waiting"""
    BACKFILLED = 2
    """while a job ahead of it in the queue was waiting"""


class Passes(NamedTuple):
    """How the compiled engine runs a policy."""

    kind: str
    """`head`: at most one reservation (easy.py in kernel/number/ of the engine); `fresh`: reservations recomputed in every
    pass (scratch.py); `kept`: reservations kept (conservative.py); `relaxed`, `lookahead`, `selective`, `multiqueue`, `slack`: as the
    policy of this name"""
    depth: int | None
    """how many waiting jobs have a reservation; None for all"""
    backfills: bool = True
    """whether a job may overtake another"""
    window: int = 0
    """how many waiting jobs, the first to arrive, are in the queue; 0 for all; without backfilling only"""
    every_arrival: bool = True
    """whether every arrival brings a pass, where runtimes are predicted, or only that of a job that fits"""
    ahead: int = 0
    """how many jobs are considered together in backfilling; 0 for one after the other"""
    objective: str = "procs"
    """what the jobs considered together are to have the most of: `procs`, `seconds`, `procseconds`, or `slowdown`, procs and then that"""


class Reservations(NamedTuple):
    """Which of the jobs that wait have a reservation after a pass."""

    of: Literal["nobody", "head", "some", "all", "unknown"]
    """`head`: who comes first in the queue; `some`: others too, or instead; `unknown`: it cannot be told"""
    said: str = ""
    """why a job that waits may have none, as a clause"""
    kept: bool = False
    """whether a reservation stays until the job starts or gets a better one; otherwise each pass makes them anew"""


NOBODY = Reservations("nobody", "under this policy nobody has one")
HEAD = Reservations("head", "only the head of the queue has one")


@dataclass(frozen=True)
class Policy(Specified):
    """Which jobs get reservations, and in which order the queue is considered: a declaration, without state.

    A subclass is a frozen dataclass. Its fields are its options, spelled `NAME:option=value,...` on the command line and in plans.
    """

    variants: ClassVar[tuple[str, ...]] = ("",)
    """Usual options, such as `order=sjf`, with which it is tried in a first look at a log and in trials; empty for the defaults, `order=*`
    for all orders."""

    order: Order = FCFS
    """the queue order"""

    @property
    def name(self) -> str:
        """The policy's name in specifications, without options."""
        return name_of(self)

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        return self.name + self.remarks()

    def remarks(self, *hidden: str) -> str:
        """The options that differ from the default, in brackets, except those in `hidden`."""
        options = [(one.field, spell(getattr(self, one.field), one)) for one in self.differing().values() if one.field not in hidden]
        said = [value if name == "order" else f"{name.removesuffix('_order')} {value}" for name, value in options]
        return f" [{', '.join(said)}]" if said else ""

    @property
    def promises(self) -> Mapping[str, str]:
        """Rules of `walltime.auditor.CHECKS` that its schedules satisfy on a machine that is a number of processors, as they read for it.

        Their words are those of a pass: `now`, `believed`, `procs`, `free`.
        """
        return {}

    @property
    def reservations(self) -> Reservations:
        """Which of the jobs that wait have a reservation."""
        return Reservations("unknown")

    @property
    def on_numbers(self) -> bool:
        """Whether it runs on a machine that is a number of processors."""
        return True

    @property
    def backfills(self) -> bool:
        """Whether a job may overtake another waiting job."""
        return self.passes is None or self.passes.backfills

    @property
    def passes(self) -> Passes | None:
        """How the compiled engine runs it; None if only the reference engine can."""
        return None

    @property
    def reads(self) -> set[str]:
        """The columns of the log that this policy and its orders read."""
        return {name for order in (self.order, getattr(self, "backfill_order", None) or self.order) for name in order.reads}


@dataclass(frozen=True)
class Heading(Policy):
    """A policy for which the head of the queue is special.

    With other values of its options than the default nothing is promised, and but for a window without backfilling they run on the
    reference engine.
    """

    decisions: Literal["revised", "committed"] = field(default="revised", kw_only=True)
    """the head is whoever comes first in every pass, or, with `committed`, the job that was chosen, until it starts"""
    window: Annotated[int, Key(least=0)] = field(default=0, kw_only=True)
    """only so many waiting jobs, the first to arrive, are in the queue; 0 for all"""

    @property
    def reads_as_papers(self) -> bool:
        """Whether the head is found as in the papers."""
        return self.decisions == "revised" and self.window == 0


@dataclass(frozen=True)
class Backfilling(Policy):
    """A policy that backfills."""

    backfill_order: Order | None = None
    """the order in which jobs are tried for backfilling; none is that of the queue"""

    def says(self, option: DeclaredKey) -> bool:
        """An order of backfilling that is that of the queue goes without saying."""
        return super().says(option) and not (option.field == "backfill_order" and self.backfill_order == self.order)


def needs_nodes(policy: Policy) -> PolicyError:
    """The error where a policy that schedules nodes has only a number of processors."""
    return PolicyError(
        f"{policy.name} needs a machine of nodes: a file like cluster.toml (--cluster; in Python machine=...), see the guide on machines"
    )
