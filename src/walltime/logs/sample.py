"""The first rows of a table in any format, as texts, from which the table is recognised; comparisons of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from walltime.dataframes import pl
from walltime.logs.cells import NUMBER, STAMP, plain_numbers, plain_texts
from walltime.logs.csv_rows import Records
from walltime.logs.input import LogFile
from walltime.logs.mapping import UNITS
from walltime.logs.objects import frame_of, holds_objects
from walltime.logs.reader import ReaderState
from walltime.logs.rules import NEWLINE_IN_TEXT
from walltime.logs.table_file import PARQUET

ROWS = 2000
MOSTLY = 0.95
LEAST_UNTITLED = 4
"""Smallest number of columns of a table without titles."""
DELIMITERS = (",", ";", "\t", "|", " ")


@dataclass(frozen=True)
class Sample:
    """The first rows of a table as texts, by title; its delimiter, and the character that begins comments."""

    columns: Mapping[str, list[str]]
    delimiter: str = ","
    comment: str | None = None
    untitled: bool = False
    """Whether the table has no titles; its columns are then named column1, column2, ..."""


def sample_of(file: LogFile, titles: Sequence[str] = (), delimiter: str | None = None) -> Sample | None:
    """Return the first rows of a table; None if the file is not a table. `titles, delimiter`: for files without titles."""
    if file.head.startswith(PARQUET) or holds_objects(file.head):
        return sample_of_frame(frame_of(file, ROWS))
    lines = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").splitlines()[: ROWS + 50]
    first = next((line.lstrip() for line in lines if line.strip()), "")
    comment = first[:1] if first[:1] in ("#", ";") else None
    lines = [line for line in lines if line.strip() and not (comment and line.lstrip().startswith(comment))][:ROWS]
    widest: Sample | None = None
    for sign in DELIMITERS if delimiter is None else (delimiter,):  # a list of resources such as cpu=8,mem=16G has commas, too
        rows = _rows(lines, sign)
        heading = [title.strip() for title in (titles or (rows[0] if rows else ()))]
        good = [row for row in rows if len(row) == len(heading)]
        if len(rows) < 2 or len(heading) < 3 or len(good) < MOSTLY * len(rows):
            continue
        if titles or (len(set(heading)) == len(heading) and not any(NUMBER.fullmatch(one) or STAMP.search(one) for one in heading)):
            return Sample(_columns(heading, good if titles else good[1:], sign), sign, comment)
        width = len(heading)
        if width >= LEAST_UNTITLED and (widest is None or (sign != " " and width > len(widest.columns))):
            widest = Sample(_columns([f"column{k + 1}" for k in range(width)], good, sign), sign, comment, untitled=True)
    return widest


def sample_of_frame(frame: pl.DataFrame) -> Sample | None:
    """Return the first rows of a table; None if it has no rows or usable columns."""
    plain = [one for one in frame.head(ROWS) if not one.dtype.is_nested() and one.dtype != pl.Binary]
    return Sample({one.name: plain_texts(one).to_list() for one in plain}) if plain and len(frame) else None


def items_of(state: ReaderState) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the number and the values by title of each row of a table in any format; sets the state's unit.

    Lines with a wrong number of fields have no values.
    """
    if state.file.head.startswith(PARQUET) or holds_objects(state.file.head):
        state.unit = "record"
        yield from enumerate(frame_of(state.file).iter_rows(named=True), 1)
        return
    sample = sample_of(state.file)
    records = Records("," if sample is None else sample.delimiter)
    titles: list[str] | None = None
    for number, _, fields in records.of(state.lines()):
        if titles is not None:
            yield number, dict(zip(titles, fields, strict=True)) if fields is not None and len(fields) == len(titles) else {}
        titles = titles or fields
    state.count(NEWLINE_IN_TEXT, records.joined)


def _columns(titles: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> dict[str, list[str]]:
    columns = (pl.Series([row[k].strip() for row in rows], dtype=pl.String) for k in range(len(titles)))
    return {title: plain_numbers(texts, delimiter).to_list() for title, texts in zip(titles, columns, strict=True)}


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the fields of each record; lines that lack a closing quote are left out."""
    return [fields for _, _, fields in Records(delimiter).of(enumerate(lines)) if fields is not None]


Relation = Literal["exact", "limit"]


def agreeing(values: np.ndarray, others: np.ndarray, how: Relation) -> dict[str, float]:
    """Return, for each unit, the share of `values` that equal `others` (s), or that are limits of them."""
    there = np.isfinite(values) & np.isfinite(others) & (values > 0) & (others > 0)
    if not there.any():
        return {}
    values, others = values[there], others[there]
    if how == "limit":
        return {unit: float((others <= 1.05 * values * UNITS[unit] + 60).mean()) for unit in ("s", "ms", "min", "h")}
    coarse = 60.0 if (others % 60 == 0).all() or (values % 60 == 0).all() else 0.0  # times are given without seconds
    middle = 0.01 * float(np.median(others))
    return {
        unit: float((np.abs(values * UNITS[unit] - others) <= max(UNITS[unit], coarse, middle)).mean()) for unit in ("s", "ms", "min", "h")
    }


def middle_of(texts: Sequence[str]) -> float:
    """Return the median of the numbers among texts."""
    return median(float(text) for text in texts if NUMBER.fullmatch(text))


def share(texts: Sequence[str], pattern: re.Pattern[str]) -> float:
    """Return the share of texts that match a pattern; 0 without texts."""
    return sum(pattern.fullmatch(text) is not None for text in texts) / max(len(texts), 1)
