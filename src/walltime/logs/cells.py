"""The cells of tables that other programs wrote: what is blank, times, lengths of time, numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from walltime.lazy import LaterModule
from walltime.logs.slurm.fields import durations
from walltime.logs.zones import ABBREVIATIONS, ZONE_WORD, offset_of
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray
BLANK: tuple[str, ...] = (
    "",
    "NULL",
    "null",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NaT",
    "<NA>",
    "None",
    "none",
    "NONE",
    "Unknown",
    "unknown",
    "\\N",
    "-",
    "--",
)
BLANK += ("(null)", "INVALID", "Partition_Limit", "0000-00-00 00:00:00", "0000-00-00T00:00:00")
"""What stands for nothing."""
NO_LIMITS = ("unlimited", "infinite", "infinity", "inf", "no limit", "nolimit", "4294967295", "4294967294")
"""What stands for a request without a limit, in small letters; the last two are Slurm's INFINITE and NO_VAL."""
STAMP = re.compile(
    r"([0-9]{4}-[0-9][0-9]-[0-9][0-9])[T ]([0-9][0-9]:[0-9][0-9])(:[0-9][0-9])?(?:[.,][0-9]{1,9})?\s?("
    rf"Z|z|UTC|GMT|{ZONE_WORD}|[+-][0-9][0-9](?::?[0-9][0-9])?)?"
)
"""A time as ISO 8601 has it: the day, hour and minute, the second, the zone."""
SAID_ZONE = rf"\b(UTC|GMT|{ZONE_WORD})\b"
"""The zone in a time of another form."""
NUMBER = re.compile(r"\+?[0-9]{1,19}(?:\.[0-9]*)?(?:[eE]\+?[0-9]{1,2})?")
JOB_NUMBER = r"([0-9]{1,15})(?:[\[_.(:+].*)?"
"""A job's number, with or without that of a part or the name of a server behind it."""
_DAYS = r"^([0-9]{1,6}) days?,? \+?([0-9]{1,2}:[0-9][0-9]:[0-9][0-9])(?:\.[0-9]+)?$"
_UNITS = (
    r"(?i)^(?:([0-9]{1,9}(?:\.[0-9]+)?)\s*d(?:ays?)?)?\s*(?:([0-9]{1,9}(?:\.[0-9]+)?)\s*h(?:ours?|rs?)?)?"
    r"\s*(?:([0-9]{1,9}(?:\.[0-9]+)?)\s*m(?:in(?:ute)?s?)?)?\s*(?:([0-9]{1,12}(?:\.[0-9]+)?)\s*s(?:ec(?:ond)?s?(?:\(s\))?)?)?$"
)


_OF_HOST = r"^([0-9]{1,9}(?:\.[0-9]+)?)/[A-Za-z][\w.-]*$"
"""A limit as `bjobs` prints it: minutes, and the host or model by whose speed they count."""


def blank(texts: pl.Series) -> Array:
    """Which cells say that nothing is known."""
    return texts.is_in((*BLANK, str(MISSING), f"{MISSING}.0")).to_numpy()


def spans(texts: pl.Series) -> tuple[Array, Array]:
    """Lengths of time with their own units, s, float64, -1 where blank; and which of the cells are none.

    They are read as 1-02:03:04, 02:03, `1 day, 2:03:04`, `0 days 00:10:27`, `PT1H2M`, `1h 30m`, `90 min`, and, in
    minutes, `60.0/host`.
    """
    parts = texts.str.extract_groups(_DAYS).struct.unnest()
    said = texts.str.contains(_DAYS)
    usual = (parts.to_series(0).fill_null("0") + "-" + parts.to_series(1).fill_null("0:00:00")).zip_with(said, texts)
    values, odd = durations(usual)
    values = values.astype(np.float64)
    if odd.any():
        worded = texts.str.replace(r"^P(?:T|([0-9]+D)T?)", "$1").str.replace(_OF_HOST, "$1 min")
        fits = (worded.str.contains(_UNITS) & worded.str.contains(r"[0-9]")).to_numpy()
        pieces = worded.str.extract_groups(_UNITS).struct.unnest()
        total = np.zeros(len(texts))
        for place, unit in enumerate((86_400.0, 3600.0, 60.0, 1.0)):
            total += pieces.to_series(place).cast(pl.Float64, strict=False).fill_null(0.0).to_numpy() * unit
        values = np.where(odd & fits, total, values)
        odd &= ~fits
    return values, odd & ~blank(texts)


def without_limit(texts: pl.Series) -> Array:
    """Which requests say that there is no limit."""
    free: Array = texts.str.to_lowercase().str.strip_suffix(".0").is_in(NO_LIMITS).to_numpy() & ~blank(texts)
    return free


def zone_offsets(zones: pl.Series, site: str | None = None) -> Array:
    """The offsets from UTC, s, of zones such as `Z`, `+01`, `+01:00` and `MST`; 0 where there is none.

    `site`: its zone, which tells what an abbreviation with several meanings means. Raises LogError, a question, where that is unknown.
    """
    parts = zones.str.extract_groups(r"^([+-])([0-9][0-9])(?::?([0-9][0-9]))?$").struct.unnest()
    size = parts.to_series(1).cast(pl.Int64) * 3600 + parts.to_series(2).cast(pl.Int64).fill_null(0) * 60
    sign = parts.to_series(0).replace_strict(["+", "-"], [1, -1], default=0, return_dtype=pl.Int64)
    offsets: Array = (size.fill_null(0) * sign.fill_null(0)).to_numpy().copy()
    for word in zones.unique().drop_nulls().to_list():
        if word in ABBREVIATIONS:
            offsets[(zones == word).fill_null(False).to_numpy()] = offset_of(word, site)
    return offsets


def plain_numbers(texts: pl.Series, delimiter: str) -> pl.Series:
    """Numbers as programs write them, without what stands between thousands: blanks, apostrophes, commas, or points before a comma.

    Where columns are separated by something else than commas, a comma may be a point. It stands between thousands if all of the column's
    commas may, and no number of four digits is written without; and so do points where one number has two, or smaller ones have none.

    >>> import polars as pl
    >>> [plain_numbers(pl.Series(one), ";").to_list() for one in (["3,600", "59"], ["3,600", "5999"], ["1.234.567", "3.600"], ["1.234,5"])]
    [['3600', '59'], ['3.600', '5999'], ['1234567', '3600'], ['1234.5']]
    """
    grouped = texts.str.contains(r"^[0-9]{1,3}(?:([ \u00a0\u2009\u202f'\u2019])[0-9]{3})+(?:\.[0-9]+)?$")
    if grouped.any():
        texts = texts.str.replace_all(r"[ \u00a0\u2009\u202f'\u2019]", "").zip_with(grouped, texts)
    if delimiter == ",":
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
    """A column as texts, empty where there is nothing; times as ISO 8601, lengths of time in s."""
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
