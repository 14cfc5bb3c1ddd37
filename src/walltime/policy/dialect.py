"""Dialects: named sets of interpretations, one for each published simulator that differs from our interpretation of the papers.

An interpretation is a program's choice where the papers leave a point open, or its deviation from them. `coincident` and `expiry` concern
the whole run; the others are options of policies, which a dialect sets for all policies that have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

from walltime.declared import DeclaredField, Field, keys_of
from walltime.errors import PolicyError
from walltime.policy.base import Policy
from walltime.policy.orders import FCFS
from walltime.specification import Family, Specification, Variant, spell
from walltime.wording import shown

Coincident = Literal["batch", "sequential", "arrivals-first", "one-by-one"]
Expiry = Literal["pass", "silent"]
P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class Dialect(Specification):
    """A set of interpretations; the defaults are our interpretation of the papers.

    >>> Dialect.of("predictsim").expiry, Dialect.of("papers:coincident=sequential").label
    ('silent', 'pyss')
    """

    coincident: Coincident = "batch"
    """simultaneous events: one pass after all of them, or one after each"""
    expiry: Expiry = "pass"
    """when a running job exceeds its prediction: an immediate pass, or none until the next event"""
    arrivals: Literal["all", "fitting"] = "all"
    """EASY with predictions and backfilling in queue order: a pass at all arrivals, or only if the job fits"""
    decisions: Literal["revised", "committed"] = "revised"
    """head of the queue: determined in every pass, or kept until it starts"""
    window: Annotated[int, Field(least=0)] = 0
    """number of waiting jobs that are considered, by arrival; 0 for all"""
    extra: Literal["all", "literal", "none"] = "all"
    """extra processors of EASY: all, counted up to the first running job that suffices, or none"""
    shadow: Literal["always", "kept", "once"] = "always"
    """shadow time of EASY: computed before each backfilled job, when a job has ended or the head has changed, or once for each head"""
    ends: Literal["by", "before"] = "by"
    """backfilled jobs of EASY end by the shadow time, or before it"""
    backfill_order: Literal["order", "fcfs"] = "order"
    """backfill order of EASY: the queue order, or arrival"""
    compression: Literal["once", "fixpoint", "always"] = "once"
    """when conservative backfilling moves its reservations forward"""
    processors: Literal["counted", "particular"] = "counted"
    """reservations of EASY and conservative backfilling: of a number of processors, or of particular ones"""

    @staticmethod
    def of(dialect: Dialect | str, coincident: str | None = None) -> Dialect:
        """Return the dialect with this specification, such as `papers:coincident=sequential,shadow=kept`.

        `coincident` overrides the dialect's. Raises PolicyError for an unknown name, interpretation or value.
        """
        chosen = DIALECTS.parse(dialect)
        if coincident is not None and coincident not in (known := get_args(Coincident)):
            handling = f"unknown value {shown(coincident)} of coincident (simultaneous events). Valid options: {', '.join(known)}"
            raise PolicyError(handling, "wrong_value")
        changes: dict[str, Any] = {} if coincident is None else {"coincident": coincident}
        return replace(chosen, **changes)

    @property
    def changed(self) -> dict[str, str]:
        """Return the interpretations that differ from the papers', by name, as in specifications."""
        return {name: spell(getattr(self, name), one) for name, one in INTERPRETATIONS.items() if getattr(self, name) != one.default}

    def apply(self, policy: P) -> P:
        """Return the policy with the dialect's interpretations in place of its default options."""
        mine = {field.name: field.default for field in fields(policy)}
        own = {name: getattr(self, name) for name in self.changed if name in mine and getattr(policy, name) == mine[name]}
        if "backfill_order" in own:
            own["backfill_order"] = FCFS
        return replace(policy, **own) if own else policy


INTERPRETATIONS: Mapping[str, DeclaredField] = keys_of(Dialect)
"""The interpretations, by name."""


def _form(meaning: str, **interpretations: Any) -> Variant:
    return Variant(Dialect, start=interpretations, meaning=meaning)


DIALECTS = Family(
    Dialect,
    "dialect",
    {
        "papers": _form("feitelson98, mualem01, tsafrir06 and tang13, with the interpretations in docs/background/dialects.md"),
        "pyss": _form("the program pyss by the authors of mualem01 and tsafrir06", coincident="sequential"),
        "predictsim": _form(
            "the program predictsim of gaussier15, derived from pyss", coincident="sequential", expiry="silent", arrivals="fitting"
        ),
        "rlscheduler": _form(
            "the program RLScheduler of zhang20",
            coincident="arrivals-first",
            backfill_order="fcfs",
            decisions="committed",
            ends="before",
            extra="none",
            shadow="once",
        ),
        "sc17": _form("the program of carastan17, whose policies order the first 32 waiting jobs by arrival", window=32),
        "batsched": _form("Batsim's scheduler batsched, which reserves particular processors", processors="particular"),
        "mualem01-measured": _form(
            "reproduces the monthly rows of Table 1 of mualem01", coincident="one-by-one", extra="literal", shadow="kept"
        ),
    },
)
"""The dialects by name, each with its source."""
VALIDATION: Mapping[str, str] = {
    "pyss": "EASY on KTH-SP2 and SDSC-SP2 equals the published schedules of a derived program, job for job",
    "predictsim": "on KTH-SP2 and SDSC-SP2, five schedules equal the published ones, job for job: EASY with requests; EASY with exact "
    "runtimes, in queue order and shortest jobs first; EASY++; and EASY with learned predictions, shortest jobs first",
    "rlscheduler": "with the log's runtimes, the twenty means of Table V of zhang20 for its formulas agree to the last digit",
    "sc17": "medians on a reconstruction of SDSC-BLUE-2000 are near the published ones, and far from them without the window",
    "batsched": "EASY on a published workload of 801 jobs on 32 machines equals batsched's schedule: all starts and all sets of machines",
    "mualem01-measured": "with the log's runtimes, five months of EASY on KTH-SP2 agree to the last published digit",
}
"""How each dialect was validated, by name."""
PAPERS = Dialect()
