"""Base classes of policies: names and options, promised rules, reservations, and passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from walltime.declared import DeclaredField, Field
from walltime.errors import PolicyError
from walltime.policy.orders import FCFS, Order
from walltime.specification import Specification, name_of, spell

HEAD_STARTS = "the head of the queue starts in the first pass in which procs <= free; then the next job becomes the head"
FIRST_OF_HEAD = "a job's first reservation is its first shadow time as the head; a job that never waits at the head has none"
FIRST_OF_ALL = "a job's first reservation is the start at which it is first planned"
PARTICULAR = "the lowest-numbered processors that stay free for its whole length, which no other job may use then"
"""The processors of a job or a reservation under policies that choose particular processors."""
KINDS = {"kind_wrong": "a job that starts while a job ahead of it waits is backfilled; any other job that starts on arrival is immediate"}
"""Guarantees that several policies share: on the head, on first reservations, and on the labels of starts."""


def pass_promises(
    left_waiting: str, *, head: str = HEAD_STARTS, others: str = "no other job starts ahead of the head", first: str = FIRST_OF_HEAD
) -> dict[str, str]:
    """Return the guarantees of passes that start the head of the queue first, and then the jobs that `left_waiting` describes."""
    return {"head_waits": head, "left_waiting": left_waiting, "reservation_delayed": others, "reserved_start_differs": first, **KINDS}


class Kind(IntEnum):
    """How a job started. Backfilled jobs are counted as in feitelson98 (Fig. 3), mualem01 (Fig. 5) and tsafrir06 (Fig. 5)."""

    IMMEDIATE = 0
    """on arrival, with no job ahead of it waiting"""
    RESERVED = 1
    """after a wait, with no job ahead of it waiting"""
    BACKFILLED = 2
    """while a job ahead of it in the queue was waiting"""


COMPILED_FOR_POOLS = ("head", "fresh", "kept")
"""Kinds of passes that the compiled engine for several pools supports, with the papers' default readings."""


class PassSpec(NamedTuple):
    """The scheduling passes of a policy: their kind and its parameters. Engines and auditor interpret kinds, not policies."""

    kind: str
    """`head`: at most one reservation. `fresh`: reservations recomputed in every pass. `kept`: reservations kept. `python`: a policy in
    plain Python. `unknown`: another program. Otherwise the name of the first policy with such passes"""
    depth: int | None = None
    """number of waiting jobs with a reservation; None for all"""
    compiled: bool = True
    """whether the compiled engine supports them with these options"""
    backfills: bool = True
    """whether a job may overtake another"""
    window: int = 0
    """number of waiting jobs that are considered, by arrival; 0 for all"""
    committed: bool = False
    """whether a job that has reached the head stays there until it starts"""
    every_arrival: bool = True
    """with predicted runtimes: whether each arrival triggers a pass, or only the arrival of a job that fits"""
    extra: str = "all"
    """which processors are extra, as in EASY's option"""
    shadow: str = "always"
    """when the shadow time is computed, as in EASY's option"""
    ends: str = "by"
    """when backfilled jobs must end, as in EASY's option"""
    head_runtime_factor: int = 1
    """ratio of expected to planned runtime of a job that starts at the head of the queue"""
    compression: str = "once"
    """when kept reservations move forward, as in the option of conservative backfilling; `scratch`: all are recomputed at each end"""
    ahead: int = 0
    """number of jobs considered together in backfilling; 0 for one after the other"""
    objective: str = "procs"
    """objective of a set of jobs: `procs`, `seconds`, `procseconds`, or `slowdown` (procs, then slowdown)"""
    omega: float = 0.0
    """largest delay of the head, in units of its expected wait"""
    factor: float = 0.0
    """the expansion factor above which a job has a reservation, or the slack in mean waits"""
    adapts: bool = False
    """whether that expansion factor is the mean slowdown of the jobs that have ended"""
    bounds: tuple[int, ...] = ()
    """bounds of the runtime classes, s"""
    recent: int = 0
    """number of latest starts that determine the slack"""
    overtakes: int | None = None
    """number of jobs that may start before a waiting job that arrived earlier; None for any number"""
    iterations: int = 0
    """number of orders that a search for the best plan tries"""
    power: int = 1
    """the power of the planned waits that it minimises, 1 or 2"""
    seed: int = 0
    """a number that its random numbers depend on, besides the seed of the run"""


class Reservations(NamedTuple):
    """The waiting jobs that have a reservation after a pass."""

    of: Literal["none", "head", "some", "all", "unknown"]
    """`head`: the first job of the queue; `some`: other jobs too, or instead"""
    reason: str = ""
    """why a waiting job may have none, as a clause"""
    kept: bool = False
    """whether a reservation is kept until the job starts or gets a better one; otherwise each pass recomputes them"""


class Support(NamedTuple):
    """The engine that supports a kind of machine: `kernel`, only `reference`, or none (empty); and a clause on why the kernel does not."""

    engine: str = "kernel"
    why: str = ""


KERNEL = Support()
NO_NODES = Support("", "the policy only counts the processors of a pool")
NOT_COMPILED = Support("reference", "not compiled")
NEEDS_NODES = "the policy needs a machine of nodes; pass a machine file (--machine; in Python machine=...), see docs/guides/machines.md"
ON_NODES: Mapping[str, Support] = {"number": Support("", NEEDS_NODES), "pools": Support("", NEEDS_NODES), "nodes": KERNEL}
OWN_ORDER = "the policy orders the waiting jobs itself"

NO_RESERVATIONS = Reservations("none", "under this policy no job has one")
HEAD = Reservations("head", "only the head of the queue has one")


@dataclass(frozen=True)
class Policy(Specification):
    """A scheduling policy: which jobs get reservations, and in which order the queue is considered. It has no state.

    A subclass is a frozen dataclass. Its fields are its options, spelled `NAME:option=value,...` on the command line and in plans.
    """

    display_name: ClassVar[str] = ""
    """Its name in text and figures, in which `{omega}` stands for the value of an option; empty for the name in specifications."""
    variants: ClassVar[tuple[str, ...]] = ("",)
    """Options to try in a first look at a log and in trials, such as `order=sjf`; empty for the defaults, `order=*` for all orders."""
    own_order: ClassVar[str] = ""
    """A clause for the error about an order: the policy's own order, and the remedy; empty if the policy takes an order."""

    draws: ClassVar[bool] = False
    """Whether its compiled passes draw random numbers, so that results depend on the seed of the run."""

    order: Order = FCFS
    """the queue order"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_order and self.order != FCFS:
            raise PolicyError(f"{self.name} {self.own_order}", "conflicting_options")

    @property
    def name(self) -> str:
        """Name in specifications, without options."""
        return name_of(self)[0]

    @property
    def title(self) -> str:
        """Name in text and figures, with its options."""
        named = {name: spell(getattr(self, name)) for _, name, _, _ in Formatter().parse(self.display_name) if name}
        return (self.display_name.format_map(named) or self.name) + self.options_text(*named)

    def options_text(self, *hidden: str) -> str:
        """Return the options that differ from the default, in brackets, except those in `hidden`."""
        options = [(one.field, spell(getattr(self, one.field), one)) for one in self.differing().values() if one.field not in hidden]
        texts = [value if name == "order" else f"{name.removesuffix('_order')} {value}" for name, value in options]
        return f" [{', '.join(texts)}]" if texts else ""

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the rules of `walltime.auditor.CHECKS` that its schedules satisfy on a single-pool machine, as clauses.

        They use the values of a pass: now, planned runtime, procs, free.
        """
        return {}

    @property
    def reservations(self) -> Reservations:
        """The waiting jobs that have a reservation."""
        return Reservations("unknown")

    @property
    def without(self) -> Mapping[str, str]:
        """Return the unsupported `FEATURES` of engine/interface/choice.py, each with the reason as a clause."""
        reasons = dict.fromkeys(("history", "threshold"), OWN_ORDER) if self.own_order or self.passes.kind == "python" else {}
        if self.passes.kind not in ("head", "fresh", "kept", "python", "unknown"):
            reasons["effects"] = "these effects need a policy with a single head of the queue"
        if self.passes.kind not in ("head", "relaxed", "lookahead", "unknown"):
            reasons.setdefault("threshold", "a threshold needs a policy with at most one reservation")
        if self.passes.kind == "particular":
            reasons |= dict.fromkeys(
                ("predictor", "events"), "batsched plans with requests, and makes one pass after all events of an instant"
            )
        return reasons

    @property
    def machines(self) -> Mapping[str, Support]:
        """Return the engine for a machine that is a `number` of processors, `pools`, or single `nodes`."""
        compiled = KERNEL if self.passes.compiled else Support("reference", "these options have no compiled code")
        return {"number": compiled, "pools": self.on_pools, "nodes": self.on_nodes}

    @property
    def on_pools(self) -> Support:
        """Return the engine for a machine of several pools; by default the kernel if all interpretations are the papers'."""
        passes = self.passes
        if passes.kind in COMPILED_FOR_POOLS and passes.compiled and passes.every_arrival and not passes.window:
            return KERNEL
        return Support("", "leave out all options except order, backfill-order and depth, or use a single-pool machine")

    @property
    def on_nodes(self) -> Support:
        """Return the engine for individual nodes: none if pools are unsupported; the kernel if jobs are backfilled in queue order."""
        if not self.on_pools.engine:
            return NO_NODES
        in_order = getattr(self, "backfill_order", None) in (None, self.order)
        compiled = self.on_pools == KERNEL and (in_order or self.passes.depth == 1)
        return KERNEL if compiled else NOT_COMPILED

    @property
    def plans_nodes(self) -> bool:
        """Return whether the policy plans individual nodes on every machine."""
        return bool(self.machines["nodes"].engine) and not self.machines["number"].engine

    @property
    def shortens_limits(self) -> bool:
        """Return whether jobs may start with a shorter limit than requested."""
        return False

    def settings(self, machine: Mapping[str, str] | None = None) -> Any:
        """Return the Slurm settings of this policy and a machine file; None for policies without Slurm settings."""

    @property
    def passes(self) -> PassSpec:
        """Return its scheduling passes."""
        return PassSpec("unknown", compiled=False)

    @property
    def reads(self) -> dict[str, str]:
        """Return the log columns that its orders read; for each, the name of the order in error messages."""
        return {**(getattr(self, "backfill_order", None) or self.order).reads, **self.order.reads}


@dataclass(frozen=True)
class HeadPolicy(Policy):
    """A policy that treats the head of the queue specially.

    Other option values than the default run on the reference engine, except a window without backfilling.
    """

    decisions: Literal["revised", "committed"] = field(default="revised", kw_only=True)
    """the head is determined in every pass (`revised`), or stays the same until it starts (`committed`)"""
    window: Annotated[int, Field(least=0)] = field(default=0, kw_only=True)
    """number of waiting jobs that are considered, by arrival; 0 for all"""


@dataclass(frozen=True)
class Backfilling(Policy):
    """A policy that backfills."""

    backfill_order: Order | None = None
    """the order in which jobs are tried for backfilling; default: the queue order"""

    def is_written(self, option: DeclaredField) -> bool:
        """Leave out a backfill order that equals the queue order."""
        return super().is_written(option) and not (option.field == "backfill_order" and self.backfill_order == self.order)


@dataclass(frozen=True)
class BoundedBackfilling(Backfilling):
    """A policy that backfills a bounded number of jobs ahead of each waiting job.

    Source: feitelson98, section 1, "allow only a limited number of jobs to leapfrog a job that cannot be serviced".
    """

    overtakes: Annotated[int | None, Field(least=0)] = field(default=None, kw_only=True)
    """number of later arrivals that may start before a waiting job; after that, processors are kept free for the job. Needs the queue order
    fcfs"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overtakes is not None and self.order != FCFS:
            message = f"overtakes={self.overtakes} counts later arrivals, so it needs the queue order fcfs, not {self.order.label}"
            raise PolicyError(f"{message}; leave one of the two options out", "conflicting_options")

    @property
    def on_pools(self) -> Support:
        """Return the engine for several pools; none with a bound, because each pool has its own head."""
        return super().on_pools if self.overtakes is None else Support("", "leave out the option overtakes, or use a single-pool machine")

    def bounded(self, promises: Mapping[str, str]) -> dict[str, str]:
        """Return the promises of the policy with the bound."""
        if self.overtakes is None:
            return dict(promises)
        bound = f"no job starts before an earlier arrival that {self.overtakes:,} later arrivals have already overtaken"
        if not self.overtakes:
            bound = "no job starts while a job that arrived earlier waits"
        left = f"{promises['left_waiting']}; this ends where the bound on overtaking jobs is reached"
        return {**promises, "left_waiting": left, "overtaken_too_often": bound}
