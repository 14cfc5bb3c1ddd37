"""The rows of CSV files, in tables of some hundred thousand: blocks of plain lines at once, others line by line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.batch_systems import NEWLINE_IN_TEXT, Counts, lines_in
from walltime.logs.input import LogFile, without_panics
from walltime.logs.joblog import BadLines
from walltime.logs.mapping import TableMapping
from walltime.wording import quoted

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray
ROWS_AT_ONCE = 400_000
_MOST_LINES = 1000
"""A record with more lines is none: a quote was lost."""
_CONTROL = bytes(code for code in (*range(32), 127) if code not in b"\t\n")
_BLANK_LINE = re.compile(rb"(?m)^[ \t]*$")


@dataclass
class CsvTable:
    """Some rows of a table: the columns that a mapping uses, as texts, numbers or times, and the line or record of each row."""

    columns: dict[str, pl.Series]
    places: Array

    def __len__(self) -> int:
        return len(self.places)


def heading_of(file: LogFile, delimiter: str = ",") -> list[str]:
    """The titles of a CSV file, from its first bytes."""
    head = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    try:
        return [title.strip() for title in next(csv.reader(io.StringIO(head), delimiter=delimiter), [])]
    except csv.Error:
        return []


def places_of(file: LogFile, titles: Sequence[str], wanted: Sequence[str], name: str) -> list[int]:
    """The place of each column that is wanted among the titles; raises LogError for one that is not there. `name`: of the mapping."""
    for column in wanted:
        if column not in titles:
            known = ", ".join(titles[:40])
            raise LogError(f"{file.where}: {name} names the column {quoted(column)}, which is not there; the columns are {known}")
    return [list(titles).index(column) for column in wanted]


def csv_tables(
    file: LogFile, wanted: Sequence[str], mapping: TableMapping, name: str, bad: BadLines, counts: Counts, numbers: Sequence[str] = ()
) -> Iterator[CsvTable]:
    """The columns of a CSV file that are wanted, in tables of `ROWS_AT_ONCE` rows or a few more; one at least.

    A column is of texts; or, if it is among `numbers`, perhaps of whole numbers, int64, null where the cell is empty. `name`: what
    messages call the mapping. Lines that are no records are added to `bad`. Raises LogError for a column that is not there.
    """
    rows = _Rows(list(wanted), set(numbers), mapping.delimiter)
    records = _Records(mapping.delimiter, counts)
    blocks = _Blocks(mapping.delimiter, mapping.comment)
    if mapping.titles:
        rows.chosen, blocks.fields = places_of(file, mapping.titles, wanted, name), len(mapping.titles)

    def take(place: int, text: str, row: list[str] | None) -> None:
        if not blocks.fields:
            titles = [title.strip() for title in row or ()]
            rows.chosen, blocks.heading, blocks.fields = places_of(file, titles, wanted, name), text, len(titles)
        elif row is None or len(row) != blocks.fields:
            bad.add(place, "a quote is open" if row is None else f"{len(row)} fields instead of {blocks.fields}", text)
        elif text != blocks.heading:  # else it is the heading of a further file that was appended
            rows.add(place, row)

    for first, block in file.text_blocks():
        plain = None if records.waiting else blocks.plain(block)
        if plain is None or not rows.add_block(first, *plain):
            lines: Iterable[tuple[int, str]] = lines_in(first, block.split(b"\n"), counts)
            if mapping.comment:
                lines = ((place, text) for place, text in lines if not text.lstrip().startswith(str(mapping.comment)))
            for place, text in lines:
                for record in records.of(place, text):
                    take(*record)
        if len(rows) >= ROWS_AT_ONCE:
            yield rows.table()
    for record in records.rest():
        take(*record)
    if len(rows) or not rows.given:
        yield rows.table()


class _Rows:
    """The rows since the last table. `chosen`: the places of the columns that are wanted."""

    def __init__(self, wanted: Sequence[str], numbers: set[str], delimiter: str) -> None:
        self.chosen: list[int] = []
        self.given = False
        """whether there has been a table"""
        self._wanted, self._delimiter = wanted, delimiter
        self._numbers = numbers
        """columns that have been empty or whole numbers so far"""
        self._parts: dict[str, list[pl.Series]] = {column: [] for column in wanted}
        self._places: list[Array] = []
        self._single: list[list[str]] = []
        self._single_places: list[int] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, place: int, row: Sequence[str]) -> None:
        """Add one row with all of its fields."""
        self._single.append([row[k].strip() for k in self.chosen])
        self._single_places.append(place)
        self._rows += 1

    def add_block(self, first: int, block: bytes, fields: int, has_quotes: bool) -> bool:
        """Add the rows of a block of plain lines with so many fields, which begins at this line; False if they have to be read singly."""
        count = block.count(b"\n") + 1
        self._store_single()  # first, as it may tell that a column has other cells than whole numbers
        table = self._parsed(block, fields, has_quotes, self._numbers)
        if table is None and self._numbers:
            table = self._parsed(block, fields, has_quotes, set())
            self._numbers = {column for column in self._numbers if table is not None and _are_whole(table[column])}
        if table is None or len(table) != count:
            return False
        for column in self._wanted:
            series = table[column]
            self._parts[column].append(series.str.strip_chars() if series.dtype == pl.String else series)
        self._places.append(np.arange(first, first + count))
        self._rows += count
        return True

    def _parsed(self, block: bytes, fields: int, has_quotes: bool, numbers: Collection[str]) -> pl.DataFrame | None:
        """The columns of a block, those of numbers as such; None where polars cannot read it so."""
        whole = {_named(place) for place, column in zip(self.chosen, self._wanted, strict=True) if column in numbers}
        kinds = {name: pl.Int64 if name in whole else pl.String for name in map(_named, range(fields))}
        used = [_named(place) for place in sorted(set(self.chosen))]
        sign = '"' if has_quotes else None
        try:
            with without_panics():
                table = pl.read_csv(
                    io.BytesIO(block), has_header=False, separator=self._delimiter, quote_char=sign, schema=kinds, columns=used
                )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        parsed = {column: table[_named(place)] for place, column in zip(self.chosen, self._wanted, strict=True)}
        return pl.DataFrame({name: one.fill_null("") if one.dtype == pl.String else one for name, one in parsed.items()})

    def _store_single(self) -> None:
        if not self._single:
            return
        for k, column in enumerate(self._wanted):
            texts = pl.Series(column, [row[k] for row in self._single], pl.String)
            self._parts[column].append(texts)
            if column in self._numbers and not _are_whole(texts):
                self._numbers.discard(column)
        self._places.append(np.array(self._single_places, np.int64))
        self._single, self._single_places = [], []

    def table(self) -> CsvTable:
        """The rows since the last table."""
        self._store_single()
        columns = {}
        for column, parts in self._parts.items():
            if len({part.dtype for part in parts}) > 1:
                parts = [part.cast(pl.String).fill_null("") for part in parts]
            columns[column] = pl.concat(parts) if parts else pl.Series(column, [], pl.String)
            self._parts[column] = []
        places = np.concatenate(self._places) if self._places else np.zeros(0, np.int64)
        self._places, self._rows, self.given = [], 0, True
        return CsvTable(columns, places)


class _Blocks:
    """Which blocks of lines are plain: each line a whole record, without comments, headings and control characters."""

    def __init__(self, delimiter: str, comment: str | None) -> None:
        self.fields = 0
        self.heading = ""
        self._sign = delimiter.encode()
        self._delimiter = delimiter
        self._comment = None if comment is None else re.compile(rb"(?m)^\s*" + re.escape(comment.encode()))
        self._quoted: re.Pattern[str] | None = None

    def plain(self, block: bytes) -> tuple[bytes, int, bool] | None:
        """The block as it can be read at once, the number of fields, and whether it has quotes; None for others."""
        if not self.fields or len(self._sign) != 1:
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if len(block.translate(None, _CONTROL)) != len(block) or (self._comment is not None and self._comment.search(block)):
            return None
        if self._delimiter == "\t" and _BLANK_LINE.search(block):  # elsewhere such a line has too few fields
            return None
        if (self.heading and self.heading.encode() in block) or not _is_utf8(block):
            return None
        if self._delimiter == " ":
            if b'"' in block or not block.isascii():
                return None
            block = b"\n".join(b" ".join(line.split()) for line in block.split(b"\n"))
        has_quotes = b'"' in block
        fits = self._has_whole_records(block) if has_quotes else self._has_right_counts(block)
        return (block, self.fields, has_quotes) if fits else None

    def _has_right_counts(self, block: bytes) -> bool:
        """Whether each line has as many signs as separate the fields."""
        content = np.frombuffer(block, np.uint8)
        ends = np.append(np.flatnonzero(content == ord("\n")), len(content))
        signs = np.flatnonzero(content == self._sign[0])
        if len(signs) != len(ends) * (self.fields - 1):
            return False
        by_line = signs.reshape(len(ends), self.fields - 1)
        return bool((by_line < ends[:, None]).all() and (by_line[1:] > ends[:-1, None]).all())

    def _has_whole_records(self, block: bytes) -> bool:
        """Whether each line is a record with the right number of fields, some of them in quotes."""
        sign = re.escape(self._delimiter)
        field = rf'(?:"(?:[^"]|"")*"|[^"{sign}]*)'
        lines = pl.Series(block.decode().split("\n"), dtype=pl.String)
        return bool(lines.str.contains(rf"^{field}(?:{sign}{field}){{{self.fields - 1}}}$").all())


def _named(place: int) -> str:
    """A column as polars lets those be called that have no title."""
    return f"column_{place + 1}"


def _are_whole(texts: pl.Series) -> bool:
    """Whether these are whole numbers, or empty."""
    return bool(texts.str.contains(r"^[0-9]{0,18}$").all())


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Records:
    """Records of one line or several, with the number of their first line, and their fields; None where a quote is open.

    A text in quotes may go on in the next lines; but a line that is a whole record is never taken for a part of another one.
    """

    def __init__(self, delimiter: str, counts: Counts) -> None:
        self.waiting: list[tuple[int, str]] = []
        """lines of a record that may go on"""
        self._delimiter, self._counts = delimiter, counts
        self._fields = 0

    def of(self, place: int, text: str) -> Iterator[tuple[int, str, list[str] | None]]:
        """The records that this line ends."""
        row = fields_of(text, self._delimiter)
        if self.waiting and not (row is not None and len(row) == self._fields):
            joined = "\n".join([*(part for _, part in self.waiting), text])
            whole = fields_of(joined, self._delimiter)
            if whole is not None and len(whole) == self._fields:
                self._counts.add(NEWLINE_IN_TEXT, 1)
                begin = self.waiting[0][0]
                self.waiting = []
                yield begin, joined, whole
            else:
                self.waiting.append((place, text))
                if len(self.waiting) > _MOST_LINES:
                    yield from self.rest()
            return
        yield from self.rest()
        if row is None and self._fields:
            self.waiting = [(place, text)]
        else:
            self._fields = self._fields or len(row or ())
            yield place, text, row

    def rest(self) -> Iterator[tuple[int, str, None]]:
        """The lines of a record that did not end."""
        waiting, self.waiting = self.waiting, []
        yield from ((at, part, None) for at, part in waiting)


def fields_of(text: str, delimiter: str) -> list[str] | None:
    """The fields of a record; None if it ends within quotes, or has quotes where none may be."""
    if delimiter == " ":
        return text.split()
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True), None)
    except csv.Error:
        return None
