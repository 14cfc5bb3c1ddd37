"""Convert local times in logs to Unix times, across changes to and from summer time; abbreviations of time zones such as MST."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError, PolicyError
from walltime.wording import shown
from walltime.workload import MISSING, Array

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?", re.IGNORECASE)
_HOUR = 3600
_YEARS = range(2000, 2027)
ABBREVIATIONS: Mapping[str, tuple[float, ...]] = {
    **{"ACDT": (10.5,), "ACST": (9.5,), "ADT": (-3,), "AEDT": (11,), "AEST": (10,), "AKDT": (-8,), "AKST": (-9,), "AST": (-4,)},
    **{"AWDT": (9,), "AWST": (8,), "BST": (1,), "CAT": (2,), "CDT": (-5, -4), "CEST": (2,), "CET": (1,), "CST": (-6, 8, -5)},
    **{"EAT": (3,), "EDT": (-4,), "EEST": (3,), "EET": (2,), "EST": (-5,), "HDT": (-9,), "HKT": (8,), "HST": (-10,), "IDT": (3,)},
    **{"IST": (5.5, 2, 1), "JST": (9,), "KST": (9, 8.5), "MDT": (-6,), "MEST": (2,), "MET": (1,), "MSD": (4,), "MSK": (3, 4)},
    **{"MST": (-7,), "NDT": (-2.5,), "NST": (-3.5,), "NZDT": (13,), "NZST": (12,), "PDT": (-7,), "PKST": (6,), "PKT": (5,)},
    **{"PST": (-8, 8), "SAST": (2,), "SST": (-11,), "WAT": (1,), "WEST": (1,), "WET": (0,), "WIB": (7,), "WIT": (9,), "WITA": (8,)},
}
"""Abbreviations of time zones with their hours from UTC, the most common first, from the IANA data of 2000 to 2026."""
ZONE_WORD = "|".join(sorted(ABBREVIATIONS, key=len, reverse=True))
"""A regular expression that matches any of these abbreviations."""


def parse_zone(text: str) -> str:
    """Check a time zone, and return it as in the header of a log: a name, or an offset from UTC in seconds. Raises PolicyError.

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
            f"{shown(text)} is not a time zone; give one such as Europe/Stockholm, or an offset such as +01:00", "unknown_time_zone"
        ) from None
    return text


@dataclass
class Local:
    """Local times as Unix times, int64 s, -1 where unknown.

    `first, last`: both possible times in an hour that occurs twice, otherwise equal. `skipped`: bool, times that do not exist because
    the clock was set forward.
    """

    first: Array
    last: Array
    skipped: Array

    @classmethod
    def exact(cls, times: Array) -> Local:
        """Return Unix times as unambiguous local times."""
        return cls(times, times, np.zeros(len(times), bool))


def to_unix(clock: pl.Series, zone: str | None) -> Local:
    """Convert local times (datetimes without a zone, null if unknown) in a zone from `parse_zone` (None: UTC) to Unix times."""
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
    except pl.exceptions.PolarsError:  # such as localtime, a link that this machine has
        raise PolicyError(f"{shown(zone)} is not a standard time zone; use an IANA name such as Europe/Stockholm") from None
    skipped = known & first.is_null().to_numpy()
    early, late = (times.dt.epoch("s").fill_null(MISSING).to_numpy().copy() for times in (first, last))
    if skipped.any():  # use the offset from before the clock was set forward
        local = (datetime.fromtimestamp(seconds, UTC).replace(tzinfo=ZoneInfo(zone)) for seconds in naive[skipped].tolist())
        offsets = np.array([int((time.utcoffset() or timedelta(0)).total_seconds()) for time in local], np.int64)
        early[skipped] = late[skipped] = naive[skipped] - offsets
    return Local(early, late, skipped)


def settle(local: Sequence[Local], elapsed: Array) -> tuple[dict[str, Array], Array]:
    """Choose between the two possible times, by the order submit <= eligible <= start <= end and by the elapsed time.

    `local`: submission, eligible time, start and end. `elapsed`: int64 s, -1 if unknown. Returns the times by name, and which jobs remain
    ambiguous (bool; they get the first time).
    """
    times = {name: one.first for name, one in zip(("submit", "eligible", "start", "end"), local, strict=True)}
    unclear = np.logical_or.reduce([one.first != one.last for one in local])
    rows = np.flatnonzero(unclear)
    if not len(rows):
        return times, unclear
    candidates, penalties = [], []
    for choice in product((False, True), repeat=len(local)):
        chosen = [(one.last if last else one.first)[rows] for one, last in zip(local, reversed(choice), strict=True)]
        candidates.append(chosen)
        s, el, st, e = chosen
        penalty = np.where((st >= 0) & (e >= 0) & (elapsed[rows] >= 0), np.abs(e - st - elapsed[rows]), 0).astype(np.float64)
        for before, after in ((s, el), (el, st), (s, st), (st, e), (s, e)):
            penalty += 1e6 * ((before >= 0) & (after >= 0) & (before > after))
        penalties.append(penalty)
    best = np.argmin(penalties, axis=0)
    settled = np.take_along_axis(np.array(candidates), best[None, None], axis=0)[0]
    others = (np.array(candidates) != settled).any(axis=1)
    several = (others & (np.array(penalties) == np.min(penalties, axis=0))).any(axis=0)
    for name, values in zip(times, settled, strict=True):
        times[name] = times[name].copy()
        times[name][rows] = values
    unclear[rows] = several
    return times, unclear


def offset_of(word: str, zone: str | None) -> int:
    """Return the offset from UTC, s, of an abbreviation of a time zone.

    `zone`: the site's time zone, from `parse_zone`, which decides between several meanings. Raises LogError if it does not.

    >>> offset_of("MST", None), offset_of("IST", "Asia/Kolkata")
    (-25200, 19800)
    """
    hours = ABBREVIATIONS[word]
    if len(hours) > 1 and zone is not None:
        fixed = re.fullmatch(r"[+-]?[0-9]+", zone)
        months = (datetime(year, month, 15, 12, tzinfo=UTC) for year in _YEARS for month in range(1, 13) if not fixed)
        local = (time.astimezone(ZoneInfo(zone)) for time in months)
        known = {(time.utcoffset() or timedelta(0)).total_seconds() / 3600 for time in local if time.tzname() == word}
        known |= {int(zone) / 3600} if fixed else set()
        hours = tuple(one for one in hours if one in known) or hours
    if len(hours) > 1:
        *others, last = (f"{'-' if one < 0 else '+'}{int(abs(one)):02d}:{round(abs(one) % 1 * 60):02d}" for one in hours)
        raise LogError(f"{word} may be {', '.join(others)} or {last}; give the time zone of the site with time_zone=ZONE")
    return round(hours[0] * 3600)
