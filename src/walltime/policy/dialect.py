"""Dialects: named sets of readings, one for each published simulator whose schedules differ from those of the papers as read here.

A reading is what a program does where the papers leave a point open, or what it does instead. Readings that concern the whole run are
fields of `Dialect`; those of policies are options of these policies, and a dialect sets them for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, TypeVar

from walltime.declared import DeclaredKey, Key, keys_of
from walltime.policy.base import Policy
from walltime.policy.orders import FCFS
from walltime.specification import Family, Specification, Variant, spell

Coincident = Literal["batch", "sequential", "arrivals-first", "one-by-one"]
Expiry = Literal["pass", "silent"]
P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class Dialect(Specification):
    """A set of readings; the default of each is that of the papers.

    `coincident` and `expiry` concern the whole run, the others are options of policies that have them.

    >>> Dialect.of("predictsim").expiry, Dialect.of("papers:coincident=sequential").label
    ('silent', 'pyss')
    """

    coincident: Coincident = "batch"
    """simultaneous events: one pass after all of them, or one after each"""
    expiry: Expiry = "pass"
    """when a running job outlives its prediction: a pass at once, or at the next event"""
    arrivals: Literal["all", "fitting"] = "all"
    """EASY with predictions, backfilling in queue order: a pass at all arrivals, or of jobs that fit"""
    decisions: Literal["revised", "committed"] = "revised"
    """the head of the queue: found in every pass, or kept until it starts"""
    window: Annotated[int, Key(least=0)] = 0
    """how many of the waiting jobs, the first to arrive, are in the queue; 0 for all"""
    extra: Literal["all", "literal", "none"] = "all"
    """extra nodes of EASY: all, until the first job that suffices, none"""
    shadow: Literal["afresh", "kept", "once"] = "afresh"
    """shadow time of EASY: found for each backfilled job, until a job ends, once for a head"""
    ends: Literal["by", "before"] = "by"
    """backfilled jobs of EASY end by the shadow time, or before it"""
    backfill_order: Literal["order", "fcfs"] = "order"
    """order in which EASY tries jobs: that of the queue, or of arrival"""
    compression: Literal["once", "fixpoint", "always"] = "once"
    """when conservative backfilling moves its reservations forward"""

    @staticmethod
    def of(dialect: Dialect | str, coincident: str | None = None) -> Dialect:
        """The dialect of this name, or a name with readings that differ: `papers:coincident=sequential,shadow=kept`.

        `coincident`: in place of the dialect's own. Raises PolicyError for an unknown name, reading or value.
        """
        chosen = DIALECTS.parse(dialect)
        return chosen if coincident is None else chosen.but(coincident=coincident)

    @property
    def changed(self) -> dict[str, str]:
        """The readings that are not those of the papers, as specifications have them."""
        return {name: spell(getattr(self, name), one) for name, one in READINGS.items() if getattr(self, name) != one.default}

    def but(self, **readings: Any) -> Dialect:
        """The dialect with other readings."""
        return replace(self, **readings)

    def apply(self, policy: P) -> P:
        """The policy with the dialect's readings, where it has such options and they are at their defaults."""
        mine = {field.name: field.default for field in fields(policy)}
        own = {name: getattr(self, name) for name in self.changed if name in mine and getattr(policy, name) == mine[name]}
        if "backfill_order" in own:
            own["backfill_order"] = FCFS
        return replace(policy, **own) if own else policy


READINGS: Mapping[str, DeclaredKey] = keys_of(Dialect)
"""Every reading that a dialect can set."""
DIALECTS = Family(
    Dialect,
    "dialect",
    {
        "papers": Variant(Dialect, meaning="feitelson98, mualem01, tsafrir06 and tang13, as docs/background/dialects.md reads them"),
        "pyss": Variant(Dialect, start={"coincident": "sequential"}, meaning="the program pyss of the group behind mualem01 and tsafrir06"),
        "predictsim": Variant(
            Dialect,
            start={"coincident": "sequential", "expiry": "silent", "arrivals": "fitting"},
            meaning="the program predictsim of gaussier15, a fork of pyss",
        ),
        "rlscheduler": Variant(
            Dialect,
            start={
                "coincident": "arrivals-first",
                "backfill_order": "fcfs",
                "decisions": "committed",
                "ends": "before",
                "extra": "none",
                "shadow": "once",
            },
            meaning="the program RLScheduler of zhang20",
        ),
        "sc17": Variant(
            Dialect,
            start={"window": 32},
            meaning="the program of carastan17, whose policies order the first 32 jobs that have arrived and wait",
        ),
        "mualem01-measured": Variant(
            Dialect,
            start={"coincident": "one-by-one", "extra": "literal", "shadow": "kept"},
            meaning="the monthly rows of Table 1 of mualem01",
        ),
    },
)
"""The dialects by name, each with what it was read from."""
CHECKED: Mapping[str, str] = {
    "pyss": "EASY on KTH-SP2 and SDSC-SP2 equals the published schedules of a program derived from it, job for job",
    "predictsim": "EASY, EASY with exact runtimes, with and without shortest job backfilled first, EASY++, and shortest job backfilled "
    "first with learned predictions on KTH-SP2 and SDSC-SP2 equal the published schedules, job for job",
    "rlscheduler": "if jobs run as long as in the log, the twenty means of Table V of zhang20 for its formulas, to the last digit",
    "sc17": "medians on a reconstruction of SDSC-BLUE-2000 are near the printed ones, and without the window far from them",
    "mualem01-measured": "with jobs that run as long as in the log, five months of EASY on KTH-SP2 agree to the last printed digit",
}
"""How a dialect was checked, by its name."""
PAPERS = Dialect()
