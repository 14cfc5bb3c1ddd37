"""Local times in logs as Unix times, across daylight saving time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from walltime.errors import PolicyError
from walltime.lazy import LaterModule
from walltime.logs.rules import Rule
from walltime.wording import shown
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray

ZONE_UNKNOWN = Rule(
    "zone_unknown",
    "notice",
    "The log has local times and does not say of which zone: they are taken as UTC. Name the zone with `--time-zone`, such as "
    "Europe/Stockholm.",
)
AMBIGUOUS = Rule(
    "ambiguous_time",
    "change",
    "A local time occurs twice, in the hour before clocks are set back, and the job's other times do not tell which is meant: the first "
    "is taken.",
)
SKIPPED = Rule("skipped_time", "change", "A local time does not exist, as clocks were set forward over it: it is moved forward by an hour.")
RULES = (ZONE_UNKNOWN, AMBIGUOUS, SKIPPED)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?", re.IGNORECASE)
_HOUR = 3600


def parse_zone(text: str) -> str:
    """A time zone as the header of a log has it: a name, or an offset from UTC in seconds. Raises PolicyError for anything else.

    >>> parse_zone("Europe/Stockholm"), parse_zone("+05:30"), parse_zone("UTC")
    ('Europe/Stockholm', '19800', 'UTC')
    """
    if match := _OFFSET.fullmatch(text.strip()):
        seconds = int(match[2]) * _HOUR + int(match[3] or 0) * 60
        if seconds < 86_400:
            return str(-seconds if match[1] == "-" else seconds)
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PolicyError(
            f"{shown(text)} is no time zone; name one such as Europe/Stockholm, or an offset such as +01:00", "unknown_time_zone"
        ) from None
    return text


@dataclass
class Local:
    """Times in local clock time, as Unix times, int64 s, -1 where unknown.

    `first, last`: the two times that an hour which occurs twice can mean, elsewhere the same. `skipped`: bool, those that the clock
    never showed.
    """

    first: Array
    last: Array
    skipped: Array

    @property
    def ambiguous(self) -> Array:
        """Which times can mean two."""
        return self.first != self.last

    @classmethod
    def exact(cls, times: Array) -> Local:
        """Times that are Unix times already."""
        return cls(times, times, np.zeros(len(times), bool))


def to_unix(clock: pl.Series, zone: str | None) -> Local:
    """Unix times of local ones (a series of datetimes without zone, null if unknown) in a zone as from `parse_zone`; None is UTC."""
    naive = clock.dt.epoch("s").fill_null(MISSING).to_numpy().copy()
    known = clock.is_not_null().to_numpy()
    none = np.zeros(len(naive), bool)
    if zone is None or zone.upper() in ("UTC", "GMT") or not known.any():
        return Local(naive, naive, none)
    if zone.lstrip("+-").isdecimal():
        times = np.where(known, naive - int(zone), MISSING)
        return Local(times, times, none)
    try:
        first = clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        last = clock.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    except pl.exceptions.PolarsError:  # such as a link of this machine's own, localtime
        raise PolicyError(f"{shown(zone)} is no time zone that is known everywhere; name one such as Europe/Stockholm") from None
    skipped = known & first.is_null().to_numpy()
    early, late = (times.dt.epoch("s").fill_null(MISSING).to_numpy().copy() for times in (first, last))
    if skipped.any():  # as if the clock had not been set forward: the offset of an earlier day
        moved = naive[skipped] - _offsets(naive[skipped], ZoneInfo(zone))
        early[skipped] = late[skipped] = moved
    return Local(early, late, skipped)


def _offsets(naive: Array, zone: ZoneInfo) -> Array:
    """The offset from UTC, s, that was in force before a clock was set forward over each of these times."""
    offsets = []
    for seconds in naive.tolist():
        local = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=zone, fold=0)
        offset = local.utcoffset() or timedelta(0)
        offsets.append(int(offset.total_seconds()))
    return np.array(offsets, np.int64)


def settle(submit: Local, eligible: Local, start: Local, end: Local, elapsed: Array) -> tuple[dict[str, Array], Array]:
    """Which of two possible times is meant, from the order submit <= eligible <= start <= end and from the time elapsed.

    `elapsed`: int64 s, -1 if unknown. Returns the times by name, and a mask of the jobs for which it remains open (the first is taken).
    """
    times = {"submit": submit.first, "eligible": eligible.first, "start": start.first, "end": end.first}
    ambiguous = submit.ambiguous | eligible.ambiguous | start.ambiguous | end.ambiguous
    rows = np.flatnonzero(ambiguous)
    if not len(rows):
        return times, ambiguous
    ways = np.array([[(k >> bit) & 1 for bit in range(4)] for k in range(16)], bool)
    choices = [(local.first[rows], local.last[rows]) for local in (submit, eligible, start, end)]
    penalty = np.zeros((len(ways), len(rows)))
    candidates = []
    for k, way in enumerate(ways):
        s, el, st, e = (pair[int(late)] for pair, late in zip(choices, way, strict=True))
        candidates.append((s, el, st, e))
        for before, after in ((s, el), (el, st), (s, st), (st, e), (s, e)):
            penalty[k] += 1e6 * ((before >= 0) & (after >= 0) & (before > after))
        known = (st >= 0) & (e >= 0) & (elapsed[rows] >= 0)
        penalty[k] += np.where(known, np.abs(e - st - elapsed[rows]), 0)
    best = penalty.min(axis=0)
    chosen = np.argmin(penalty, axis=0)
    several = np.zeros(len(rows), bool)
    for k in range(len(ways)):
        differs = np.logical_or.reduce([candidates[k][column] != np.choose(chosen, [f[column] for f in candidates]) for column in range(4)])
        several |= (penalty[k] == best) & differs
    for column, name in enumerate(times):
        times[name] = times[name].copy()
        times[name][rows] = np.choose(chosen, [f[column] for f in candidates])
    is_open = np.zeros(len(ambiguous), bool)
    is_open[rows] = several
    return times, is_open
