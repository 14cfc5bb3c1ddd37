"""Policies with other rules for reservations or backfilling: LOS, selective, multiple-queue, slack-like and plan-based."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.policy.base import (
    FIRST_OF_ALL,
    FIRST_OF_HEAD,
    HEAD,
    HEAD_STARTS,
    KINDS,
    NOT_COMPILED,
    Backfilling,
    PassSpec,
    Policy,
    Reservations,
    Support,
    pass_promises,
)
from walltime.policy.randomness import generator

ONE_NUMBER = "use another policy, or a single-pool machine"


@dataclass(frozen=True)
class Lookahead(Backfilling):
    """EASY backfilling that starts the set of jobs with the most processors: LOS, lookahead optimizing scheduler.

    The first `lookahead` waiting jobs, in backfill order, that could be backfilled alone are considered together; this is repeated with
    the remaining jobs until none fits. A lookahead of 1 is EASY.

    Source: Shmueli and Feitelson, JPDC 2005; the program pyss for the other objective.
    """

    display_name: ClassVar[str] = "LOS"
    reservations = HEAD
    on_pools = Support("", ONE_NUMBER)
    variants: ClassVar[tuple[str, ...]] = ("", "ties=slowdown")
    lookahead: Annotated[int, Field(least=1, most=1000)] = 50
    """number of jobs considered together"""
    ties: Literal["head", "slowdown"] = "head"
    """the preferred one of equally good sets: jobs closest to the head of the queue, or the highest sum of expected slowdowns"""
    objective: Literal["procs", "procseconds"] = "procs"
    """objective of a set, maximised: processors, or the sum of processors x planned runtimes"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties == "slowdown" and self.objective != "procs":
            raise PolicyError("ties=slowdown of LOS needs objective=procs")

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: the head starts as soon as it fits; then the best sets of jobs that do not delay it."""
        return {**combination(self.lookahead, "procs, then slowdown" if self.ties == "slowdown" else self.objective, True), **KINDS}

    @property
    def passes(self) -> PassSpec:
        """Return the passes: one reservation, for the head; jobs behind it are chosen together."""
        objective = "slowdown" if self.ties == "slowdown" else self.objective
        return PassSpec("lookahead", 1, ahead=self.lookahead, objective=objective)


def combination(ahead: int, objective: str, reserves: bool) -> dict[str, str]:
    """Return the guarantees of backfilling sets of jobs; `reserves`: whether the head has a reservation."""
    may = " and (now + planned runtime <= shadow time or procs <= extra processors)" if reserves else ""
    return {
        "head_waits": HEAD_STARTS,
        "left_waiting": f"candidates are the first {ahead} jobs in backfill order with procs <= free{may}. Among all sets that fit "
        f"together, the one with the most {objective} starts; ties go to the set with jobs closest to the head. This is repeated until no "
        "job can start",
        "reservation_delayed" if reserves else "out_of_turn": "no other job starts ahead of the head",
        "reserved_start_differs": FIRST_OF_HEAD if reserves else "no job has a reservation",
    }


@dataclass(frozen=True)
class Selective(Backfilling):
    """Backfilling with reservations for the jobs whose expansion factor exceeds a `threshold`.

    The expansion factor is 1 + wait / planned runtime. Every pass makes reservations for these jobs, in queue order; then all others that
    delay none of them start, in backfill order. With a threshold of 0 it is conservative backfilling from scratch.

    Source: Srinivasan, Kettimuthu, Subramani and Sadayappan, JSSPP 2002; the threshold 2 is an assumption.
    """

    display_name: ClassVar[str] = "Selective ({threshold})"
    on_pools = NOT_COMPILED
    variants: ClassVar[tuple[str, ...]] = ("", "threshold=adaptive")
    threshold: Annotated[float | Literal["adaptive"], Field(least=0)] = 2.0
    """a job has a reservation above this expansion factor; `adaptive`: the mean bounded slowdown (threshold 10 s) of the jobs that
    have ended so far, 1 before the first end"""

    @property
    def reservations(self) -> Reservations:
        """Return which jobs have reservations: jobs that have waited long."""
        if self.threshold != "adaptive" and self.threshold < 1:
            return Reservations("all")
        limit = "the mean bounded slowdown of the jobs that have ended" if self.threshold == "adaptive" else f"{self.threshold:g}"
        return Reservations("some", f"only jobs with an expansion factor over {limit} have one")

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: jobs with a reservation for now start, and so do jobs that delay no reservation."""
        least = "the mean bounded slowdown so far" if self.threshold == "adaptive" else f"{self.threshold:g}"
        return pass_promises(
            "the same holds for every other job; those without a reservation follow in backfill order",
            head=f"reservations are made in every pass, in queue order, for jobs with 1 + wait / planned runtime > {least}; "
            "the head starts if it has one for now, or if it has none and fits next to them",
            others="no other job starts",
            first=FIRST_OF_ALL,
        )

    @property
    def passes(self) -> PassSpec:
        """Reservations for some jobs, recomputed in every pass."""
        return PassSpec("selective", adapts=True) if self.threshold == "adaptive" else PassSpec("selective", factor=self.threshold)


MAX_BOUNDS = 60


@dataclass(frozen=True)
class MultiQueue(Backfilling):
    """Backfilling with several queues: the first job of each has a reservation, and a job starts if it delays none of these.

    A job's planned runtime decides its queue: below the first of the `bounds` (s), below the second, ..., or the rest; on the command
    line `bounds=100/1000/10000`. Every pass makes reservations for the first jobs, in queue order; if such a job starts, the next of its
    queue gets one. Processors are not divided among the queues.

    Source: the abstract of Lawson and Smirni, JSSPP 2002; the bounds and the lack of partitions are assumptions.
    """

    display_name: ClassVar[str] = "Multiple queues"
    on_pools = NOT_COMPILED
    bounds: Annotated[tuple[int, ...], Field(least=1)] = (100, 1000, 10_000)
    """rising bounds of the queues' planned runtimes, s"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bounds or self.bounds != tuple(sorted(set(self.bounds))) or len(self.bounds) > MAX_BOUNDS:
            raise PolicyError(f"bounds must be at most {MAX_BOUNDS} rising numbers of seconds, not {self.bounds!r}")

    @property
    def reservations(self) -> Reservations:
        """Return which jobs have reservations: the first job of each queue."""
        return Reservations("some", f"only the first job of each of the {len(self.bounds) + 1} queues (runtime classes) has one")

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: jobs with a reservation for now start, and so do jobs that delay no reservation."""
        return pass_promises(
            "every pass makes reservations, in queue order, for the first job of each queue, and for the next one if the "
            "first starts. Jobs with one for now start, and then, in backfill order, every job that fits next to the reservations",
            others="no other job starts",
            first=FIRST_OF_ALL,
        )

    @property
    def passes(self) -> PassSpec:
        """Return the passes: a reservation for the first job of each queue, recomputed in every pass."""
        return PassSpec("multiqueue", bounds=self.bounds)


@dataclass(frozen=True)
class Slack(Policy):
    """Slack-like backfilling: every job has a reservation on arrival, and later jobs may delay it by its slack.

    The slack is `factor` times the mean wait of the `recent` latest starts, at least 1 s. The waiting jobs have an order. An arriving job
    is inserted at the first position at which it delays no job behind it too much; at the end it delays none. All jobs behind it are then
    planned again in this order: none may be delayed beyond its first reservation plus slack, or delayed at all if it is already past that
    time. Every event recomputes the reservations in this order. With exact estimates and a factor of 0, this is conservative backfilling.

    Source: the idea of Talby and Feitelson, IPPS 1999. Their slack depends on priorities, and they compare schedules by a cost function;
    formula, factor and the number of recent jobs are assumptions here.
    """

    display_name: ClassVar[str] = "Slack-like"
    own_order = "orders the waiting jobs itself; leave the order out"
    reservations = Reservations("all", kept=True)
    on_pools = Support("", "the policy has a single queue, without partitions and limits")
    factor: Annotated[float, Field(least=0)] = 1.0
    """ratio of the slack to the mean wait of the `recent` jobs, which counts as at least 1 s"""
    recent: Annotated[int, Field(least=1, most=1_000_000)] = 100
    """number of latest starts whose waits count"""

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: every job starts where it is planned; arriving jobs delay no job beyond its slack."""
        return {
            "reserved_start_missed": "waiting jobs are planned in their order, each at its earliest place; jobs planned for now start",
            "out_of_turn": "no other job starts. An arriving job is inserted at the first position that plans no job behind it later "
            "than both now and first reservation + slack; slack = factor x mean wait of the recent starts, at least factor seconds",
            "reserved_start_differs": "a job's first reservation is its planned start on arrival",
            **KINDS,
        }

    @property
    def passes(self) -> PassSpec:
        """Return the passes: a reservation for every job, recomputed in every pass."""
        return PassSpec("slack", factor=self.factor, recent=self.recent)


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
