"""Parse cells of tables that other programs wrote: blanks, times, durations and numbers."""

from __future__ import annotations

import re

import numpy as np

from walltime.dataframes import pl
from walltime.logs.clock import ABBREVIATIONS, ZONE_WORD, Local, offset_of, to_unix
from walltime.workload import MISSING, Array

_WORDS_OF_TABLES = "NULL null NA N/A n/a NaN nan NaT <NA> None none NONE Unknown unknown \\N - -- (null) INVALID Partition_Limit"
BLANK_WORDS = (*_WORDS_OF_TABLES.split(), "0000-00-00 00:00:00", "0000-00-00T00:00:00")
"""Texts that mean an unknown value."""
BLANK = ("", *BLANK_WORDS)
"""The same, and an empty text."""
NO_LIMITS = ("unlimited", "infinite", "infinity", "inf", "no limit", "nolimit", "4294967295", "4294967294")
"""Texts that mean a request without a limit, in lower case; the last two are Slurm's INFINITE and NO_VAL."""
STAMP = re.compile(
    r"([0-9]{4}-[0-9][0-9]-[0-9][0-9])[T ]([0-9][0-9]:[0-9][0-9])(:[0-9][0-9])?(?:[.,][0-9]{1,9})?\s?("
    rf"Z|z|UTC|GMT|{ZONE_WORD}|[+-][0-9][0-9](?::?[0-9][0-9])?)?"
)
"""A time in ISO 8601: the day, hour and minute, second, zone."""
ZONE_IN_TEXT = rf"\b(UTC|GMT|{ZONE_WORD})\b"
"""The zone in a time of another format."""
FORMATS: tuple[str, ...] = ("%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M:%S")
"""Other formats of times, in Python's notation; where several fit, the earlier one is used, and reported as doubtful."""
FORMATS += ("%d/%m/%Y %H:%M", "%d-%m-%Y %H:%M:%S", "%d-%m-%Y %H:%M", "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S")
FORMATS += ("%a %d %b %Y %I:%M:%S %p", "%a, %d %b %Y %H:%M:%S")
FORMATS += ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p", "%d/%m/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M %p")
FORMATS += ("%m/%d/%y %H:%M:%S", "%m/%d/%y %H:%M", "%d/%m/%y %H:%M:%S", "%d/%m/%y %H:%M", "%m-%d-%Y %H:%M:%S", "%m-%d-%Y %H:%M")
FORMATS += ("%b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Z %Y", "%Y%m%d%H%M%S", "%Y%m%d-%H%M%S", "%Y%m%dT%H%M%S")
NUMBER = re.compile(r"\+?[0-9]{1,19}(?:\.[0-9]*)?(?:[eE]\+?[0-9]{1,2})?")
JOB_NUMBER = r"([0-9]{1,15})(?:[\[_.(:+].*)?"
"""A job's number, perhaps followed by the number of a part or the name of a server."""
CLOCKS = ("mm:ss", "hh:mm")
"""Meanings of a duration with one colon, such as 24:00: the first in Slurm and PBS, the second in LSF and qstat -a."""
ONE_COLON = re.compile(r"[0-9]{1,9}:[0-9]{1,4}(?:\.[0-9]+)?")
_CLOCK = r"^(?:([0-9]{1,6})\s?(-|\+|d(?:ays?)?,?\s?\+?)\s?)?([0-9]{1,9})(?::([0-9]{1,4}))?(?::([0-9]{1,4}))?(?::([0-9]{1,4}))?(\.[0-9]+)?$"
"""Days and the sign after them, up to four parts between colons, and a fraction."""
_WEIGHTS = {(False, 3): (3600, 60, 1), (False, 4): (86_400, 3600, 60, 1), **{(True, k): (3600, 60, 1)[:k] for k in (1, 2, 3)}}
"""Seconds of each part of a duration, by whether days precede them and by the number of parts."""
_AMOUNT = r"([0-9]{1,12}(?:\.[0-9]+)?)\s*"
_WORDS = ("w(?:eeks?)?", "d(?:ays?)?", "h(?:ou)?(?:rs?)?", "m(?:in(?:ute)?s?)?", r"s(?:ec(?:ond)?s?(?:\(s\))?)?")
_UNITS = "(?i)^" + "".join(rf"(?:{_AMOUNT}{word},?)?\s*" for word in _WORDS) + "$"
_THOUSANDS = r"^[1-9][0-9]{0,2},[0-9]{3}$"
_MINUTES_OF_HOST = r"^([0-9]{1,9}(?:\.[0-9]+)?)/[A-Za-z][\w.-]*$"
"""A limit as `bjobs` prints it: minutes, and the host or model to whose speed they refer."""


def blank(texts: pl.Series) -> Array:
    """Return a mask (bool) of the cells with an unknown value."""
    return texts.is_in((*BLANK, str(MISSING), f"{MISSING}.0")).to_numpy()


def spans(texts: pl.Series, clock: str = CLOCKS[0]) -> tuple[Array, Array]:
    """Parse durations with units of their own; return s (float64, -1 where blank), and which cells are not durations (bool).

    Formats: 1-02:03:04, 3-0, 0+01:02:03, `1 day, 2:03:04`, 2:03:04, `PT1H2M`, `1h 30m`, `90 min`, and, in minutes, `60.0/host` or
    `1:00/host`. `clock`: the meaning of 02:03, see `CLOCKS`.
    """
    pieces = texts.str.extract_groups(_CLOCK).struct.unnest()
    days, *parts, fraction = (pieces.to_series(place).cast(pl.Float64, strict=False).to_numpy() for place in (0, 2, 3, 4, 5, 6))
    with_days, count = ~np.isnan(days), np.sum(~np.isnan(parts), axis=0)
    values = np.full(len(texts), float(MISSING))
    for (has_days, several), weights in (_WEIGHTS | {(False, 2): (60, 1) if clock == CLOCKS[0] else (3600, 60)}).items():
        rows = (with_days == has_days) & (count == several)
        total = sum(weight * part[rows] for weight, part in zip(weights, parts, strict=False))
        values[rows] = total + 86_400 * np.nan_to_num(days[rows]) + np.nan_to_num(fraction[rows])
    odd = values < 0
    if odd.any():
        worded = texts.str.replace(r"^([0-9]+):([0-9][0-9])/[A-Za-z][\w.-]*$", "${1}h ${2}min")
        worded = worded.str.replace(r"^P([0-9]+W)?([0-9]+D)?T?", "$1$2").str.replace(_MINUTES_OF_HOST, "$1 min")
        fits = odd & (worded.str.contains(_UNITS) & worded.str.contains(r"[0-9]")).to_numpy()
        amounts = worded.str.extract_groups(_UNITS).struct.unnest()
        units = (604_800.0, 86_400.0, 3600.0, 60.0, 1.0)
        total = sum(amounts.to_series(k).cast(pl.Float64, strict=False).fill_null(0.0).to_numpy() * unit for k, unit in enumerate(units))
        values = np.where(fits, total, values)
        odd &= ~fits
    return values, odd & ~blank(texts)


def without_limit(texts: pl.Series) -> Array:
    """Return a mask (bool) of the requests without a limit."""
    free: Array = texts.str.to_lowercase().str.strip_suffix(".0").is_in(NO_LIMITS).to_numpy() & ~blank(texts)
    return free


def zone_offsets(zones: pl.Series, site: str | None = None) -> Array:
    """Return the offsets from UTC, int64 s, of zones such as `Z`, `+01`, `+01:00` and `MST`; 0 where there is none.

    `site`: the site's zone, which decides between several meanings of an abbreviation. Raises LogError if it does not.
    """
    parts = zones.str.extract_groups(r"^([+-])([0-9][0-9])(?::?([0-9][0-9]))?$").struct.unnest()
    size = parts.to_series(1).cast(pl.Int64) * 3600 + parts.to_series(2).cast(pl.Int64).fill_null(0) * 60
    sign = parts.to_series(0).replace_strict(["+", "-"], [1, -1], default=0, return_dtype=pl.Int64)
    offsets: Array = (size.fill_null(0) * sign.fill_null(0)).to_numpy().copy()
    for word in zones.unique().drop_nulls().to_list():
        if word in ABBREVIATIONS:
            offsets[(zones == word).fill_null(False).to_numpy()] = offset_of(word, site)
    return offsets


def stamps(texts: pl.Series, site: str | None) -> tuple[Local, Array, Array]:
    """Parse times in ISO 8601; return Unix times, which cells are such times, and which of these have a zone of their own.

    `site`: the zone of the others; it also decides between several meanings of an abbreviation, see `zone_offsets`.
    """
    sign = " " if len(texts) and texts[0][10:11] == " " else "T"
    usual = texts.str.contains(f"^[0-9]{{4}}-[0-9][0-9]-[0-9][0-9]{sign}[0-9][0-9]:[0-9][0-9]:[0-9][0-9]$")
    own, offsets = np.zeros(len(texts), bool), np.zeros(len(texts), np.int64)
    if (usual | texts.is_in(BLANK)).all():
        plain = texts.set(~usual, None)
    else:
        sign = "T"
        parts = texts.str.extract_groups(f"^{STAMP.pattern}$").struct.unnest()
        plain = parts.to_series(0) + "T" + parts.to_series(1) + parts.to_series(2).fill_null(":00")
        own, offsets = parts.to_series(3).is_not_null().to_numpy(), zone_offsets(parts.to_series(3), site)
    clock = plain.str.to_datetime(f"%Y-%m-%d{sign}%H:%M:%S", strict=False)
    read = clock.is_not_null().to_numpy()
    local = to_unix(clock, site)
    exact = clock.dt.epoch("s").fill_null(MISSING).to_numpy() - offsets
    first, last = (np.where(own & read, exact, times) for times in (local.first, local.last))
    return Local(first, last, local.skipped & ~own), read, own & read


def times_as(texts: pl.Series, form: str) -> pl.Series:
    """Parse times in a format, in which `%Z` is a zone; return datetimes of their clocks, null where the format does not fit.

    LSF's letters for the kind of an end, as in `Mar 2 10:00:00 2026 L`, are ignored.
    """
    texts = texts.str.replace(r"([0-9]) [ELX]$", "$1")
    plain = texts.str.replace(ZONE_IN_TEXT, "UTC") if "%Z" in form else texts
    return plain.str.to_datetime(form.replace("%Z", "UTC"), strict=False)


def plain_numbers(texts: pl.Series, delimiter: str) -> pl.Series:
    """Return numbers with a decimal point and without separators of thousands (blanks, apostrophes, commas, points).

    In a table separated by commas, a comma is a decimal point if all numbers have one, and not all of them can be separators of thousands.
    In other tables, commas separate thousands if all of them can, and no number of four digits lacks one; otherwise they are decimal
    points. Points separate thousands if a number has two of them, or if smaller numbers have none.

    >>> import polars as pl
    >>> [plain_numbers(pl.Series(one), ";").to_list() for one in (["3,600", "59"], ["3,600", "5999"], ["1.234.567", "3.600"], ["1.234,5"])]
    [['3600', '59'], ['3.600', '5999'], ['1234567', '3600'], ['1234.5']]
    """
    texts = texts.str.replace(r"^-(0+(?:\.0*)?)$", "$1")
    grouped = texts.str.contains(r"^[0-9]{1,3}(?:([ \u00a0\u2009\u202f'\u2019])[0-9]{3})+(?:\.[0-9]+)?$")
    if grouped.any():
        texts = texts.str.replace_all(r"[ \u00a0\u2009\u202f'\u2019]", "").zip_with(grouped, texts)
    fraction = texts.str.contains(r"^[0-9]+,[0-9]+$")
    if delimiter == ",":
        if fraction.any() and (fraction | texts.is_in(BLANK)).all() and not texts.filter(fraction).str.contains(_THOUSANDS).all():
            return texts.str.replace(",", ".", literal=True)
        grouped = texts.str.contains(r"^[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$")
        return texts.str.replace_all(",", "", literal=True).zip_with(grouped, texts) if grouped.any() else texts
    for sign, point in ((",", "."), (".", ",")):
        both = texts.str.contains(rf"^[0-9]{{1,3}}(?:[{sign}][0-9]{{3}})+[{point}][0-9]+$")
        groups = texts.str.contains(rf"^[1-9][0-9]{{0,2}}(?:[{sign}][0-9]{{3}})+$")
        others = texts.str.contains(rf"^[0-9]+[{sign}][0-9]+$") & ~groups
        plain = texts.filter(texts.str.contains(r"^[0-9]+$"))
        may = (groups.any() and not others.any() and not (plain.str.len_chars() > 3).any()) or both.any()
        sure = sign == "," or both.any() or len(plain) > 0 or texts.str.contains(r"^[0-9]{1,3}(?:\.[0-9]{3}){2,}$").any()
        if may and sure:
            texts = texts.str.replace_all(sign, "", literal=True).zip_with(groups | both, texts)
    fraction = texts.str.contains(r"^[0-9]+,[0-9]+$")
    return texts.str.replace(",", ".", literal=True).zip_with(fraction, texts) if fraction.any() else texts


def plain_texts(series: pl.Series) -> pl.Series:
    """Return a column as texts, empty where unknown: times in ISO 8601, durations in s."""
    kind = series.dtype
    if kind == pl.Date:
        series = series.cast(pl.Datetime("us"))
    if isinstance(series.dtype, pl.Datetime):
        series = series.dt.convert_time_zone("UTC") if series.dtype.time_zone else series
        series = series.dt.strftime("%Y-%m-%d %H:%M:%S" + ("Z" if kind != pl.Date and series.dtype.time_zone else ""))  # type: ignore[attr-defined]
    elif isinstance(kind, pl.Duration):
        series = series.dt.total_microseconds() / 1e6
    elif kind == pl.Time:
        series = series.dt.strftime("%H:%M:%S")
    return series.cast(pl.String).fill_null("")
