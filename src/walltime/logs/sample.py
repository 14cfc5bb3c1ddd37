"""The first rows of a table in any form, as texts: what is recognised is recognised by them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from walltime.lazy import LaterModule
from walltime.logs.cells import NUMBER, STAMP, plain_numbers, plain_texts
from walltime.logs.input import LogFile
from walltime.logs.objects import frame_of, holds_objects
from walltime.logs.table_file import PARQUET

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

ROWS = 2000
MOSTLY = 0.95
LEAST_UNTITLED = 4
"""A table without titles has so many columns."""
DELIMITERS = (",", ";", "\t", "|", " ")


@dataclass(frozen=True)
class Sample:
    """The first rows of a table as texts, by title; and how the file separates them."""

    columns: Mapping[str, list[str]]
    delimiter: str = ","
    comment: str | None = None
    untitled: bool = False
    """whether the table has no titles, and its columns are called column1, column2, ..."""


def sample_of(file: LogFile, titles: Sequence[str] = (), delimiter: str | None = None) -> Sample | None:
    """The first rows of a table; None if the file is none. `titles, delimiter`: of a file without a heading."""
    if file.head.startswith(PARQUET) or holds_objects(file.head):
        frame = frame_of(file, ROWS)
        plain = {one.name: one for one in frame if not one.dtype.is_nested() and one.dtype != pl.Binary}
        texts = {name: plain_texts(one).to_list() for name, one in plain.items()}
        return Sample(texts) if texts and len(frame) else None
    whole = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace").splitlines()[: ROWS + 50]
    first = next((line.lstrip() for line in whole if line.strip()), "")
    comment = first[:1] if first[:1] in ("#", ";") else None
    lines = [line for line in whole if line.strip() and not (comment and line.lstrip().startswith(comment))][:ROWS]
    for sign in DELIMITERS if delimiter is None else (delimiter,):
        rows = _rows(lines, sign)
        heading = [title.strip() for title in (titles or (rows[0] if rows else ()))]
        good = [row for row in rows if len(row) == len(heading)]
        if len(rows) < 2 or len(heading) < 3 or len(good) < MOSTLY * len(rows):
            continue
        if titles or (
            len(set(heading)) == len(heading) and not any(NUMBER.fullmatch(title) or STAMP.fullmatch(title) for title in heading)
        ):
            good = good if titles else good[1:]
            cells = {title: pl.Series([row[k].strip() for row in good], dtype=pl.String) for k, title in enumerate(heading)}
            return Sample({title: plain_numbers(texts, sign).to_list() for title, texts in cells.items()}, sign, comment)
    return None if titles else _untitled(lines, comment)


def _untitled(lines: Sequence[str], comment: str | None) -> Sample | None:
    """The first rows of a table that has no titles; None if these are no rows of one table, or their beginning is no row of it."""
    for sign in DELIMITERS:
        rows = _rows(lines, sign)
        width = len(rows[0]) if rows else 0
        good = [row for row in rows if len(row) == width]
        if width < LEAST_UNTITLED or len(rows) < 2 or len(good) < MOSTLY * len(rows):
            continue
        cells = {f"column{k + 1}": pl.Series([row[k].strip() for row in good], dtype=pl.String) for k in range(width)}
        return Sample({title: plain_numbers(texts, sign).to_list() for title, texts in cells.items()}, sign, comment, untitled=True)
    return None


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []
