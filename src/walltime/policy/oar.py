"""The scheduler of the resource manager OAR: conservative backfilling on single nodes, planned anew in passes that take time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.policy.base import ON_NODES, OWN_ORDER, PassSpec, Policy, Reservations
from walltime.policy.orders import FCFS

STREAM = 6
"""Of the random numbers that jobs have."""


class Latencies(NamedTuple):
    """What takes how long in OAR, ms; one server does all but the launches, one after the other.

    `step`: to bring the states of nodes up to date before a pass; `clock`: from the begin of a pass to its reading the clock; `idle`,
    `busy`: a pass with nobody waiting, and with somebody; `start`: more for each job that it starts; `launch`: from the end of a pass until
    its jobs are launched, which brings another pass. `period`: without any event there is a pass after so long, while jobs wait; 0 for
    never. `noticed`, `phase`: a submission is noticed after its second so late, from the first to the second number, at random; an end
    happens at a random moment of its second, and is noticed `end` later. `tick`: jobs start so many seconds after the clock that a pass has
    read.
    """

    step: int = 0
    clock: int = 0
    idle: int = 0
    busy: int = 0
    start: int = 0
    launch: int = 0
    end: int = 0
    period: int = 0
    noticed: tuple[int, int] = (0, 0)
    phase: tuple[int, int] = (0, 0)
    tick: int = 0


NO_LATENCIES = Latencies()
MEASURED = Latencies(150, 170, 370, 1020, 50, 650, 350, 60_000, (60, 1050), (0, 1000), 1)
"""As in the logs of real runs of OAR 2.5.4 with the scheduler kamelot."""


@dataclass(frozen=True)
class Oar(Policy):
    """OAR's conservative scheduler (kamelot): each pass plans all waiting jobs anew, by number, as early as the same nodes are free.

    It gives whole nodes, the first in order that are free, and needs a machine of nodes (`--machine`).
    """

    called: ClassVar[str] = "OAR"
    reservations = Reservations("all")
    machines = ON_NODES
    passes = PassSpec("oar")
    security_time: Annotated[int, Key(least=0)] = 60
    """so long, s, a job is planned beyond its request"""
    slots: Literal["2016", "mended"] = "2016"
    """how running jobs are put into the plan: as in 2016, where one that ends before the slot that the one before it has reached is taken
    out of the first slot only, so that later ones wrongly show its nodes free; or mended, as since 2023"""
    latencies: Literal["measured", "none"] = "measured"
    """how long passes take; with none there is a pass at each arrival and end, which takes no time"""
    seed: Annotated[int, Key(least=0)] = 0
    """of the random moments within seconds"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order != FCFS:
            raise PolicyError("oar takes jobs by number; leave the order out")

    @property
    def takes(self) -> Latencies:
        """How long everything takes."""
        return MEASURED if self.latencies == "measured" else NO_LATENCIES

    @property
    def without(self) -> Mapping[str, str]:
        """Most of what a machine's file may say, and predictions."""
        out = "it is modelled without; leave them out of the machine's file, or take another policy"
        these = dict.fromkeys(("windows", "overheads", "limits", "outages", "tiers", "second"), out)
        these |= dict.fromkeys(("history", "threshold"), OWN_ORDER)
        return {**super().without, **these, **dict.fromkeys(("predictor", "plain"), "OAR plans by limits; leave the predictor out")}
