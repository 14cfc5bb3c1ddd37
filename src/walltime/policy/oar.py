"""The scheduler of the resource manager OAR: conservative backfilling on individual nodes, in passes that take time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from walltime.declared import Field
from walltime.policy.base import ON_NODES, PassSpec, Policy, Reservations

STREAM = 6
"""Number of the stream of random numbers for the times of events."""


class Latencies(NamedTuple):
    """Durations in OAR, ms; a single server performs all steps except launches, one after the other.

    * `step`: update of the nodes' states before a pass; `clock`: from the beginning of a pass until it reads the clock
    * `idle`, `busy`: a pass without and with waiting jobs; `start`: additional time per started job
    * `launch`: from the end of a pass until its jobs are launched, which triggers another pass
    * `period`: longest time without a pass while jobs wait; 0 for no limit
    * `noticed`: range of the random delay after which a submission is noticed
    * `phase`: range of the random time of an end within its second; `end`: delay until the end is noticed
    * `tick`: from the time that a pass has read to the starts that it decides, s
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


MEASURED = Latencies(150, 170, 370, 1020, 50, 650, 350, 60_000, (60, 1050), (0, 1000), 1)
"""Measured in the logs of real runs of OAR 2.5.4 with the scheduler kamelot."""


@dataclass(frozen=True)
class Oar(Policy):
    """OAR's conservative scheduler (kamelot): each pass plans all jobs by number, each when the same nodes first stay free long enough.

    It allocates whole nodes, the first free ones in order, and needs a machine of nodes (`--machine`).
    """

    display_name: ClassVar[str] = "OAR"
    own_order = "considers jobs by number; leave the order out"
    reservations = Reservations("all")
    machines = ON_NODES
    passes = PassSpec("oar")
    security_time: Annotated[int, Field(least=0)] = 60
    """seconds added to a job's request in the plan"""
    slots: Literal["2016", "2023"] = "2016"
    """the version of OAR's planning code: in 2016, a running job that ends before the slot of the previous one blocked only the first slot,
    so later slots wrongly showed its nodes as free; fixed in 2023"""
    latencies: Literal["measured", "none"] = "measured"
    """duration of passes; with `none`, a pass at each arrival and end takes no time"""
    seed: Annotated[int, Field(least=0)] = 0
    """seed of the random moments within seconds"""

    @property
    def durations(self) -> Latencies:
        """Return the duration of each step."""
        return MEASURED if self.latencies == "measured" else Latencies()

    @property
    def without(self) -> Mapping[str, str]:
        """Return the unsupported features: predictions, and most features of a machine file."""
        machine = "OAR's policy does not model this; leave it out of the machine file, or use another policy"
        reasons = dict.fromkeys(("windows", "overheads", "limits", "outages", "tiers", "second"), machine)
        return {**super().without, **reasons, **dict.fromkeys(("predictor", "plain"), "OAR plans by limits; leave the predictor out")}
