"""What every policy declares: its names and options, the rules it guarantees, and the passes that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from walltime.declared import DeclaredKey, Key
from walltime.policy.orders import FCFS, Order
from walltime.specification import Specification, name_of, spell

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


COMPILED_FOR_POOLS = ("head", "fresh", "kept")
"""The kinds of passes that the compiled engine for machines of several pools makes, with plain readings of the papers."""


class PassSpec(NamedTuple):
    """The kind of passes that a policy makes, and what they read: the engines and the auditor know the kinds, and not the policies."""

    kind: str
    """`head`: at most one reservation (easy.py in kernel/number/ of the engine); `fresh`: reservations recomputed in every
    pass (scratch.py); `kept`: reservations kept (conservative.py); `python`: those of a policy in plain Python; `unknown`: those of other
    programs; others: as the policy of this name, or the first that made them"""
    depth: int | None = None
    """how many waiting jobs have a reservation; None for all"""
    compiled: bool = True
    """whether the compiled engine makes them, with these options"""
    backfills: bool = True
    """whether a job may overtake another"""
    window: int = 0
    """how many waiting jobs, the first to arrive, are in the queue; 0 for all"""
    committed: bool = False
    """whether a job that has come to the head stays there until it starts"""
    every_arrival: bool = True
    """whether every arrival brings a pass, where runtimes are predicted, or only that of a job that fits"""
    extra: str = "all"
    """which processors are extra, as the option of EASY"""
    shadow: str = "afresh"
    """when the shadow time is found, as the option of EASY"""
    ends: str = "by"
    """when backfilled jobs must end, as the option of EASY"""
    head_runtime_factor: int = 1
    """by what factor a job that starts at the head of the queue is expected to run for longer than it was planned"""
    compression: str = "once"
    """when reservations that are kept move forward, as the option of conservative backfilling"""
    ahead: int = 0
    """how many jobs are considered together in backfilling; 0 for one after the other"""
    objective: str = "procs"
    """what the jobs considered together are to have the most of: `procs`, `seconds`, `procseconds`, or `slowdown`, procs and then that"""
    omega: float = 0.0
    """by how many of its expected waits the head may be delayed"""
    factor: float = 0.0
    """from which expansion factor on a job has a reservation, and how many mean waits the slack is"""
    adapts: bool = False
    """whether that expansion factor is the mean slowdown of the jobs that have ended"""
    bounds: tuple[int, ...] = ()
    """bounds of the lengths of the queues, s"""
    recent: int = 0
    """how many of the jobs that started last count for the slack"""


class Reservations(NamedTuple):
    """Which of the jobs that wait have a reservation after a pass."""

    of: Literal["nobody", "head", "some", "all", "unknown"]
    """`head`: who comes first in the queue; `some`: others too, or instead; `unknown`: it cannot be told"""
    said: str = ""
    """why a job that waits may have none, as a clause"""
    kept: bool = False
    """whether a reservation stays until the job starts or gets a better one; otherwise each pass makes them anew"""


class Support(NamedTuple):
    """Which engine runs something: `kernel`, `reference` where only that one does, or none (empty); and why not the kernel, as a clause."""

    engine: str = "kernel"
    why: str = ""


KERNEL = Support()
NO_NODES = Support("", "it takes the nodes of a pool as a number of processors, and only slurm and oar plan single nodes")
NEEDS_NODES = "it needs a machine of nodes: a file like machine.toml (--machine; in Python machine=...), see the guide on machines"
ON_NODES: Mapping[str, Support] = {"number": Support("", NEEDS_NODES), "pools": Support("", NEEDS_NODES), "nodes": KERNEL}
PLAIN_ON_POOLS = Support("reference", "its passes on several pools are not compiled")
OWN_ORDER = "it orders the waiting jobs itself"

NOBODY = Reservations("nobody", "under this policy nobody has one")
HEAD = Reservations("head", "only the head of the queue has one")


@dataclass(frozen=True)
class Policy(Specification):
    """Which jobs get reservations, and in which order the queue is considered: a declaration, without state.

    A subclass is a frozen dataclass. Its fields are its options, spelled `NAME:option=value,...` on the command line and in plans.
    """

    called: ClassVar[str] = ""
    """Its name in text and figures, where that is not the name in specifications."""
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
        """The policy's name in text and figures, with its options."""
        return (self.called or self.name) + self.remarks()

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
    def without(self) -> Mapping[str, str]:
        """What it does not run with, of `FEATURES` of engine/interface/choice.py, and why, as a clause."""
        reasons = dict[str, str]()
        if self.passes.kind not in ("head", "fresh", "kept", "python", "unknown"):
            reasons["effects"] = "these are effects on one head of the queue"
        if self.passes.kind not in ("head", "relaxed", "lookahead", "unknown"):
            reasons["threshold"] = "it is for policies with at most one reservation"
        return reasons

    @property
    def machines(self) -> Mapping[str, Support]:
        """Which engine runs it on a machine that is a `number` of processors, of `pools`, and of `nodes` that are planned singly."""
        compiled = KERNEL if self.passes.compiled else Support("reference", "its passes are not compiled with these options")
        return {"number": compiled, "pools": self.on_pools, "nodes": NO_NODES}

    @property
    def on_pools(self) -> Support:
        """Which engine runs it on a machine of several pools; the default is that of policies that read the papers plainly."""
        passes = self.passes
        if passes.kind in COMPILED_FOR_POOLS and passes.compiled and passes.every_arrival and not passes.window:
            return KERNEL
        return Support("", "these readings are for a machine that is a number of processors")

    @property
    def on_numbers(self) -> bool:
        """Whether it runs on a machine that is a number of processors."""
        return bool(self.machines["number"].engine)

    @property
    def plans_nodes(self) -> bool:
        """Whether it plans the nodes of a machine one by one."""
        return bool(self.machines["nodes"].engine)

    @property
    def shortens_limits(self) -> bool:
        """Whether jobs may be started under shorter limits than they asked for."""
        return False

    def settings(self, machine: Mapping[str, str] | None = None) -> Any:
        """The settings of Slurm that it runs with, with those that a machine's file gives; None where it reads none."""

    @property
    def backfills(self) -> bool:
        """Whether a job may overtake another waiting job."""
        return self.passes.backfills

    @property
    def passes(self) -> PassSpec:
        """The passes that it makes."""
        return PassSpec("unknown", compiled=False)

    @property
    def reads(self) -> set[str]:
        """The columns of the log that this policy and its orders read."""
        return {name for order in (self.order, getattr(self, "backfill_order", None) or self.order) for name in order.reads}


@dataclass(frozen=True)
class HeadPolicy(Policy):
    """A policy for which the head of the queue is special.

    With other values of its options than the default it runs on the reference engine, but for a window without backfilling.
    """

    decisions: Literal["revised", "committed"] = field(default="revised", kw_only=True)
    """the head is whoever comes first in every pass, or, with `committed`, the job that was chosen, until it starts"""
    window: Annotated[int, Key(least=0)] = field(default=0, kw_only=True)
    """only so many waiting jobs, the first to arrive, are in the queue; 0 for all"""


@dataclass(frozen=True)
class Backfilling(Policy):
    """A policy that backfills."""

    backfill_order: Order | None = None
    """the order in which jobs are tried for backfilling; none is that of the queue"""

    def says(self, option: DeclaredKey) -> bool:
        """An order of backfilling that is that of the queue goes without saying."""
        return super().says(option) and not (option.field == "backfill_order" and self.backfill_order == self.order)
