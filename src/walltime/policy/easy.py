"""Policies with at most one reservation, for the head of the queue: FCFS, EASY, and variants of EASY."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from walltime.declared import DeclaredField, Field
from walltime.errors import PolicyError
from walltime.policy.base import (
    HEAD,
    HEAD_STARTS,
    KINDS,
    NO_RESERVATIONS,
    NOT_COMPILED,
    PARTICULAR,
    Backfilling,
    BoundedBackfilling,
    HeadPolicy,
    PassSpec,
    Reservations,
    pass_promises,
)
from walltime.policy.orders import FCFS


@dataclass(frozen=True)
class NoBackfilling(HeadPolicy):
    """Start jobs from the head of the queue while they fit: first come, first served, or another `order` without backfilling.

    Source: feitelson98, section 1.
    """

    reservations = NO_RESERVATIONS

    @property
    def title(self) -> str:
        """Name in text and figures."""
        return "FCFS" if self.order == FCFS else "No backfilling" + self.options_text()

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: no job is overtaken, and the head of the queue starts as soon as it fits."""
        head = HEAD_STARTS
        if self.window:
            head += f"; the head is the first, in queue order, of the {self.window} waiting jobs that arrived first"
        if self.decisions == "committed":
            head += "; a job that has reached the head stays there until it starts"
        others = {"out_of_turn": "no other job starts", "reserved_start_differs": "no job has a reservation"}
        return {"head_waits": head, **others, **KINDS}

    @property
    def passes(self) -> PassSpec:
        """Return the passes: only the head of the queue starts."""
        committed = self.decisions == "committed"
        return PassSpec("head", 0, compiled=not committed, backfills=False, window=self.window, committed=committed)


@dataclass(frozen=True)
class Easy(HeadPolicy, BoundedBackfilling):
    """EASY backfilling: a job may be backfilled if it does not delay the head of the queue.

    Values of `extra`, `shadow`, `ends` and `decisions` other than the default run on the reference engine.

    Source: mualem01, section 2.2; feitelson98, Fig. 2; `fitting`: the program predictsim of gaussier15.
    """

    display_name: ClassVar[str] = "EASY"
    variants: ClassVar[tuple[str, ...]] = (
        *("", "order=*", "order=saf:starvation=86400"),
        *("backfill-order=sjf", "backfill-order=saf", "backfill-order=lxf"),
    )
    extra: Literal["all", "literal", "none"] = "all"
    """the extra processors: `all` that are free at the shadow time and that the head does not need; `none`; or `literal`, a literal
    reading of the papers. If several jobs are expected to end at the shadow time, `literal` counts only as many as the head needs"""
    shadow: Literal["always", "kept", "once"] = "always"
    """how often shadow time and extra processors are computed: before each backfilled job (`always`), once for each head (`once`), or when
    a job has ended or the head has changed (`kept`). With `kept`, backfilled jobs may use the same extra processors twice and delay the
    head"""
    ends: Literal["by", "before"] = "by"
    """a backfilled job that uses no extra processors must be expected to end `by` the shadow time, or `before` it"""
    arrivals: Literal["all", "fitting"] = "all"
    """the arrivals that trigger a scheduling pass: `all`, or `fitting`, only those of jobs that fit into the free processors. They differ
    only with predictions, backfilling in queue order, and a dialect that makes no pass when a job exceeds its prediction"""

    processors: Literal["counted", "particular"] = "counted"
    """the head reserves a number of processors (`counted`), or the lowest-numbered processors that are free then (`particular`), as in
    Batsim's batsched"""

    def __post_init__(self) -> None:
        super().__post_init__()
        readings = (self.extra, self.shadow, self.ends, self.decisions, self.window, self.overtakes)
        if self.processors == "particular" and not (self._in_queue_order and readings == ("all", "always", "by", "revised", 0, None)):
            message = "easy with particular processors has only the options order and arrivals; leave out the others"
            raise PolicyError(message, "conflicting_options")

    @property
    def reservations(self) -> Reservations:
        """Return which jobs have reservations: only the head of the queue."""
        return HEAD._replace(kept=self.processors == "particular")

    @property
    def _in_queue_order(self) -> bool:
        return self.backfill_order in (None, self.order)

    def is_written(self, option: DeclaredField) -> bool:
        """Leave out `arrivals` unless jobs are backfilled in queue order, as it has no effect."""
        return super().is_written(option) and (option.field != "arrivals" or self._in_queue_order)

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: the head starts as soon as it fits; other jobs start if they fit and do not delay it."""
        if self.processors == "particular":
            tried = "after the end of a job, every waiting job is tried in queue order; otherwise, only new jobs are"
            return pass_promises(
                f"{tried}; a job starts if enough processors stay free for its whole length; it takes {PARTICULAR}, and so does the head's "
                "reservation"
            )
        by = "<" if self.ends == "before" else "<="
        when = {"always": "for each backfilled job", "kept": "when a job has ended or the head has changed", "once": "once for each head"}
        counted = ", counted up to the first running job that suffices" if self.extra == "literal" else ""
        delays = f"now + planned runtime {by} shadow time"
        delays = f"({delays} or procs <= extra processors{counted})" if self.extra != "none" else delays
        computed = f"{'the shadow time is' if self.extra == 'none' else 'both are'} computed {when[self.shadow]}"
        text = f"in backfill order, every job behind the head starts if procs <= free and {delays}; {computed}"
        return self.bounded(pass_promises(text))

    @property
    def passes(self) -> PassSpec:
        """Return the passes: one reservation, for the head."""
        if self.processors == "particular":
            return PassSpec("particular", 1, compression="scratch")
        every_arrival = self.arrivals == "all" or not self._in_queue_order
        default = self.decisions == "revised" and not self.window and (self.extra, self.shadow, self.ends) == ("all", "always", "by")
        readings: dict[str, Any] = {
            "extra": self.extra,
            "shadow": self.shadow,
            "ends": self.ends,
            "committed": self.decisions == "committed",
            "overtakes": self.overtakes,
        }
        return PassSpec("head", 1, compiled=default, window=self.window, every_arrival=every_arrival, **readings)


@dataclass(frozen=True)
class Double(Backfilling):
    """EASY backfilling that doubles the planned runtime of each job that starts at the head of the queue.

    The next head's shadow time is then later, so more jobs are backfilled before it. Backfilled jobs keep their planned runtime; to double
    it for all jobs, use EASY with the estimates `double`.

    Source: `HeadDoubleEasyScheduler` of the program pyss.
    """

    display_name: ClassVar[str] = "EASY, heads doubled"
    reservations = HEAD
    on_pools = NOT_COMPILED
    passes = PassSpec("head", 1, head_runtime_factor=2)
    variants: ClassVar[tuple[str, ...]] = ("", "backfill-order=sjf")

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: the head starts as soon as it fits; other jobs start if they do not delay it, given doubled heads."""
        return pass_promises(
            "in backfill order, every job behind the head starts if procs <= free and (now + planned runtime <= shadow time "
            "or procs <= extra processors); both are recomputed for each backfilled job",
            head=f"{HEAD_STARTS}; a job that starts as the head is planned with twice its planned runtime",
        )


@dataclass(frozen=True)
class Relaxed(Backfilling):
    """EASY backfilling that may delay the head of the queue by up to `omega` times its expected wait.

    The expected wait lasts until the head's first reservation; the delay counts from its earliest reservation. An omega of 0 is EASY.

    Source: Ward, Mahood and West, JSSPP 2002, who try several values; omega 0.5 is an assumption.
    """

    display_name: ClassVar[str] = "Relaxed ({omega})"
    reservations = HEAD
    on_pools = NOT_COMPILED
    omega: Annotated[float, Field(least=0)] = 0.5
    """largest delay of the head, in units of its expected wait"""

    @property
    def promises(self) -> Mapping[str, str]:
        """Return the guarantees: the head starts as soon as it fits; other jobs start unless they delay it too much."""
        latest = "latest = earliest shadow time as the head + omega x (first shadow time - submit), or the shadow time if later"
        return pass_promises(
            "in backfill order, every job behind the head starts if procs <= free and (now + planned runtime <= latest or "
            f"procs <= processors that the head leaves free at that time); {latest}"
        )

    @property
    def passes(self) -> PassSpec:
        """Return the passes: one reservation, for the head, with a latest start."""
        return PassSpec("relaxed", 1, omega=self.omega)


def find_shadow(running: Iterable[tuple[int, int]], free: int, wanted: int, now: int, literal: bool = False) -> tuple[int, int]:
    """Return EASY's shadow time (s), when `wanted` processors are free if no other job starts, and the extra processors then.

    `running`: (expected end, s, and processors) of each running job. With `literal`, the walk over them stops at the first job that
    suffices; by default all that end at the shadow time count. Source: mualem01, section 2.2.

    >>> find_shadow([(10, 2), (20, 3)], free=1, wanted=4, now=5)
    (20, 2)
    """
    shadow, by_end = now, sorted(running, key=lambda one: one[0])
    while by_end and (free < wanted or (not literal and by_end[0][0] <= shadow)):
        end, procs = by_end.pop(0)
        free += procs
        shadow = max(end, now)
    return shadow, free - wanted
