"""Plan-based scheduling: the plan of all waiting jobs is improved by a local search over orders of the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from walltime.declared import Field
from walltime.policy.base import FIRST_OF_ALL, KINDS, PassSpec, Policy, Reservations, Support
from walltime.policy.randomness import generator


@dataclass(frozen=True)
class PlanBased(Policy):
    """Plan-based scheduling: every pass searches for the queue order whose plan has the lowest waits, by simulated annealing.

    The plan of an order gives each job in turn the earliest start next to the running jobs and the jobs planned before. The search begins
    with the best of five orders: by arrival, and by smallest and largest number of processors and planned runtime, ties by arrival. Its
    temperature is the difference between the worst and the best of them, or a tenth of the best if they are equal, and falls by a tenth
    after every six swaps. A swap of two random jobs is kept if it is better, or with probability exp(-increase / temperature). The jobs
    that the best plan starts now start. Results depend on the seed of the run.

    Source: Kopanski and Rzadca, Euro-Par 2021, without burst buffers; after Zheng et al., CLUSTER 2016. Unlike there, short queues are
    searched in the same way, and the search is limited to `lookahead` jobs.
    """

    display_name: ClassVar[str] = "Plan-based"
    variants: ClassVar[tuple[str, ...]] = ()  # it is too slow for a first look at a log
    own_order = "searches for the best order itself; leave the order out"
    draws = True
    reservations = Reservations("all")
    on_pools = Support("", "the policy has a single queue, without partitions and limits")
    objective: Literal["square", "sum"] = "square"
    """objective, minimised: the `sum` of the waits until the planned starts, or the sum of their squares, which prevents long waits"""
    iterations: Annotated[int, Field(least=0, most=10_000)] = 180
    """number of swaps that each pass tries"""
    lookahead: Annotated[int, Field(least=1, most=10_000)] = 100
    """number of waiting jobs, by arrival, whose order is searched; later jobs are planned behind them by arrival"""
    seed: Annotated[int, Field(least=0)] = 0
    """additional seed: runs with the same seed but different values here are independent"""

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: every job that the plan starts now starts."""
        return {
            "head_waits": "the first job by arrival starts if the best plan found starts it now",
            "left_waiting": f"every job that starts now in the best plan of {self.iterations:,} swaps with the given seed starts",
            "reservation_delayed": "no other job starts",
            "reserved_start_differs": FIRST_OF_ALL,
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """Return the passes: a reservation for every job, in the best order found in every pass."""
        power = 2 if self.objective == "square" else 1
        return PassSpec("plan", ahead=self.lookahead, iterations=self.iterations, power=power, seed=self.seed)


def first_random(passes: PassSpec) -> int:
    """Return the first state of the search's random number generator, from 1 to 2**31 - 2, for the seed of this run."""
    return int(generator(f"plan {passes.seed}").integers(1, 2**31 - 1))
