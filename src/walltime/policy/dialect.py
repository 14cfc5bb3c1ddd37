"""Dialects: named sets of readings, one for each published simulator whose schedules differ from those of the papers as read here.

A reading is what a program does where the papers leave a point open, or what it does instead. Readings that concern the whole run are
fields of `Dialect`; those of policies are options of these policies, and a dialect sets them for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

from walltime.errors import PolicyError
from walltime.policy.base import Policy
from walltime.policy.orders import FCFS

Coincident = Literal["batch", "sequential", "arrivals-first", "one-by-one"]
Expiry = Literal["pass", "silent"]
P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class Reading:
    """A point that programs read differently: its `values`, the default first, and what it is about."""

    name: str
    values: tuple[str, ...]
    about: str
    number: bool = False
    """whether any whole number is a value"""

    def knows(self, value: str) -> bool:
        """Whether this is one of the values."""
        return value in self.values or (self.number and value.isdecimal())


READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("coincident", get_args(Coincident), "simultaneous events: one pass after all of them, or one after each"),
        Reading("expiry", get_args(Expiry), "when a running job outlives its prediction: a pass at once, or at the next event"),
        Reading(
            "arrivals", ("all", "fitting"), "EASY with predictions, backfilling in queue order: a pass at all arrivals, or of jobs that fit"
        ),
        Reading("decisions", ("revised", "committed"), "the head of the queue: found in every pass, or kept until it starts"),
        Reading("window", ("0",), "how many of the waiting jobs, the first to arrive, are in the queue; 0 for all", number=True),
        Reading("extra", ("all", "literal", "none"), "extra nodes of EASY: all, until the first job that suffices, none"),
        Reading(
            "shadow", ("afresh", "kept", "once"), "shadow time of EASY: found for each backfilled job, until a job ends, once for a head"
        ),
        Reading("ends", ("by", "before"), "backfilled jobs of EASY end by the shadow time, or before it"),
        Reading("backfill_order", ("order", "fcfs"), "order in which EASY tries jobs: that of the queue, or of arrival"),
        Reading("compression", ("once", "fixpoint", "always"), "when conservative backfilling moves its reservations forward"),
    )
}
"""Every reading that a dialect can set. Those that are no field of `Dialect` are options of policies, of the same name."""


@dataclass(frozen=True)
class Dialect:
    """A set of readings.

    `name`: empty for one that has none. `coincident`: simultaneous events (see `walltime.simulate`). `expiry`: whether the expiry of a
    running job's prediction brings a scheduling `pass`, or only moves the job's expected end, which the next pass sees (`silent`).
    `options`: readings of policies: names of options of theirs, and values. `source`: what it was read from. `checked`: how.

    >>> Dialect.of("predictsim").expiry, Dialect.of("papers:coincident=sequential").label
    ('silent', 'pyss')
    """

    name: str = ""
    coincident: Coincident = "batch"
    expiry: Expiry = "pass"
    options: tuple[tuple[str, str], ...] = ()
    source: str = ""
    checked: str = ""

    def __post_init__(self) -> None:
        for name, value in self.readings().items():
            if name not in READINGS:
                raise PolicyError(f"unknown reading {name!r}; known are {', '.join(READINGS)}")
            if not READINGS[name].knows(value):
                what = "way to handle simultaneous events" if name == "coincident" else f"reading of {name}"
                raise PolicyError(f"unknown {what} {value!r}; known are {', '.join(READINGS[name].values)}")

    @staticmethod
    def of(dialect: Dialect | str, coincident: str | None = None) -> Dialect:
        """The dialect of this name, or a name with readings that differ: `papers:coincident=sequential,shadow=kept`.

        `coincident`: in place of the dialect's own. Raises PolicyError for an unknown name, reading or value.
        """
        chosen = dialect if isinstance(dialect, Dialect) else _parse(dialect)
        return chosen if coincident is None or coincident == chosen.coincident else chosen.but(coincident=coincident)

    def readings(self) -> dict[str, str]:
        """The readings that it sets, by name."""
        return {"coincident": self.coincident, "expiry": self.expiry, **dict(self.options)}

    def but(self, **readings: str) -> Dialect:
        """The dialect with other readings; it has the name of the one that has the same, or none."""
        own = {name: readings.pop(name) for name in ("coincident", "expiry") if name in readings}
        options = tuple(sorted((dict(self.options) | readings).items()))
        other = replace(self, name="", source="", checked="", options=options, **own)  # type: ignore[arg-type]
        return next((known for known in DIALECTS.values() if known._differing() == other._differing()), other)

    def _differing(self) -> dict[str, str]:
        return {name: value for name, value in self.readings().items() if value != READINGS[name].values[0]}

    @property
    def label(self) -> str:
        """Its name, or `papers:` and the readings that differ."""
        return self.name or "papers:" + ",".join(f"{name}={value}" for name, value in sorted(self._differing().items()))

    def apply(self, policy: P) -> P:
        """The policy with the dialect's readings, where it has such options and they are at their defaults."""
        mine = {field.name: field.default for field in fields(policy)}
        own = {name: value for name, value in self.options if name in mine and getattr(policy, name) == mine[name]}
        changes = {name: _as_option(name, value) for name, value in own.items()}
        return replace(policy, **changes) if changes else policy


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("papers", source="feitelson98, mualem01, tsafrir06 and tang13, as docs/background/interpretations.md reads them"),
        Dialect(
            "pyss",
            coincident="sequential",
            source="the program pyss of the group behind mualem01 and tsafrir06",
            checked="EASY on KTH-SP2 and SDSC-SP2 equals the published schedules of a program derived from it, job for job",
        ),
        Dialect(
            "predictsim",
            coincident="sequential",
            expiry="silent",
            options=(("arrivals", "fitting"),),
            source="the program predictsim of gaussier15, a fork of pyss",
            checked="EASY, EASY with exact runtimes, with and without shortest job backfilled first, EASY++, and shortest job backfilled "
            "first with learned predictions on KTH-SP2 and SDSC-SP2 equal the published schedules, job for job",
        ),
        Dialect(
            "rlscheduler",
            coincident="arrivals-first",
            options=(("backfill_order", "fcfs"), ("decisions", "committed"), ("ends", "before"), ("extra", "none"), ("shadow", "once")),
            source="the program RLScheduler of zhang20",
            checked="if jobs run as long as in the log, the twenty means of Table V of zhang20 for its formulas, to the last digit",
        ),
        Dialect(
            "sc17",
            options=(("window", "32"),),
            source="the program of carastan17, whose policies order the first 32 jobs that have arrived and wait",
            checked="medians on a reconstruction of SDSC-BLUE-2000 are near the printed ones, and without the window far from them",
        ),
        Dialect(
            "mualem01-measured",
            coincident="one-by-one",
            options=(("extra", "literal"), ("shadow", "kept")),
            source="the monthly rows of Table 1 of mualem01",
            checked="with jobs that run as long as in the log, five months of EASY on KTH-SP2 agree to the last printed digit",
        ),
    )
}
"""The dialects by name."""


def _as_option(name: str, value: str) -> Any:
    """A reading's value as the option of policies has it."""
    if READINGS[name].number:
        return int(value)
    if name == "backfill_order":
        return FCFS if value == "fcfs" else None
    return value


def _parse(text: str) -> Dialect:
    name, _, rest = text.strip().lower().partition(":")
    if name not in DIALECTS:
        raise PolicyError(f"unknown dialect {text!r}; known are {', '.join(DIALECTS)}")
    readings = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key.strip() not in READINGS or not value:
            raise PolicyError(f"{part!r} is no reading of the dialect {text!r}; its readings are {', '.join(READINGS)}")
        readings[key.strip()] = value.strip()
    return DIALECTS[name].but(**readings) if readings else DIALECTS[name]


PAPERS = DIALECTS["papers"]
