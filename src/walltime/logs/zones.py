"""Abbreviations of time zones, such as the MST in `2026-11-20 21:33:45 MST`, and the offsets from UTC for which they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from walltime.errors import LogError

ABBREVIATIONS: Mapping[str, tuple[float, ...]] = {
    **{"ACDT": (10.5,), "ACST": (9.5,), "ADT": (-3,), "AEDT": (11,), "AEST": (10,), "AKDT": (-8,), "AKST": (-9,), "AST": (-4,)},
    **{"AWDT": (9,), "AWST": (8,), "BST": (1,), "CAT": (2,), "CDT": (-5, -4), "CEST": (2,), "CET": (1,), "CST": (-6, 8, -5)},
    **{"EAT": (3,), "EDT": (-4,), "EEST": (3,), "EET": (2,), "EST": (-5,), "HDT": (-9,), "HKT": (8,), "HST": (-10,), "IDT": (3,)},
    **{"IST": (5.5, 2, 1), "JST": (9,), "KST": (9, 8.5), "MDT": (-6,), "MEST": (2,), "MET": (1,), "MSD": (4,), "MSK": (3, 4)},
    **{"MST": (-7,), "NDT": (-2.5,), "NST": (-3.5,), "NZDT": (13,), "NZST": (12,), "PDT": (-7,), "PKST": (6,), "PKT": (5,)},
    **{"PST": (-8, 8), "SAST": (2,), "SST": (-11,), "WAT": (1,), "WEST": (1,), "WET": (0,), "WIB": (7,), "WIT": (9,), "WITA": (8,)},
}
"""Hours from UTC, the commonest first, by the IANA files of 2000 to 2026; a test compares them with those of the machine."""
ZONE_WORD = "|".join(sorted(ABBREVIATIONS, key=len, reverse=True))
"""A regular expression of them all."""
_YEARS = range(2000, 2027)


def offset_of(word: str, zone: str | None) -> int:
    """The offset from UTC, s, of an abbreviation; `zone`: that of the site, as from `parse_zone`, which tells where there are several.

    Raises LogError, a question, where it does not.

    >>> offset_of("MST", None), offset_of("IST", "Asia/Kolkata")
    (-25200, 19800)
    """
    hours = ABBREVIATIONS[word]
    if len(hours) > 1 and zone is not None:
        said = _of_zone(word, zone)
        hours = tuple(one for one in hours if one in said) or hours
    if len(hours) > 1:
        *others, last = (f"{'-' if one < 0 else '+'}{int(abs(one)):02d}:{round(abs(one) % 1 * 60):02d}" for one in hours)
        raise LogError(f"is {word} {', '.join(others)} or {last}? Name the zone of the site with time_zone=ZONE")
    return round(hours[0] * 3600)


def _of_zone(word: str, zone: str) -> set[float]:
    """The hours from UTC that an abbreviation has stood for in a zone."""
    if re.fullmatch(r"[+-]?[0-9]+", zone):
        return {int(zone) / 3600}
    local = (datetime(year, month, 15, 12, tzinfo=UTC).astimezone(ZoneInfo(zone)) for year in _YEARS for month in range(1, 13))
    return {offset.total_seconds() / 3600 for one in local if one.tzname() == word and (offset := one.utcoffset()) is not None}
