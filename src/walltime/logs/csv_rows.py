"""The rows of CSV files, in tables of some hundred thousand rows: blocks of simple lines at once, others line by line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.batch_systems import NEWLINE_IN_TEXT, Counts, lines_in
from walltime.logs.input import LogFile, decoded, without_panics
from walltime.logs.joblog import BadLines
from walltime.logs.mapping import TableMapping
from walltime.wording import quoted

Array = np.ndarray
ROWS_AT_ONCE = 400_000
_MOST_LINES = 1000
"""Most lines of a record; in a longer one, a closing quote is missing."""
_CONTROL = bytes(code for code in (*range(32), 127) if code not in b"\t\n")
_BLANK_LINE = re.compile(rb"(?m)^[ \t]*$")


@dataclass
class CsvTable:
    """Some rows of a table: the columns that a mapping uses, as texts, numbers or times, and the number of each row's line or record."""

    columns: dict[str, pl.Series]
    places: Array

    def __len__(self) -> int:
        return len(self.places)


def places_of(file: LogFile, titles: Sequence[str], wanted: Sequence[str], name: str) -> list[int]:
    """Return the places of the wanted columns among the titles; raises LogError for a missing one. `name`: of the mapping, for messages."""
    for column in wanted:
        if column not in titles:
            known = ", ".join(titles[:40])
            raise LogError(f"{file.where}: {name} refers to the column {quoted(column)}, but the table has the columns {known}")
    return [list(titles).index(column) for column in wanted]


def csv_tables(
    file: LogFile, wanted: Sequence[str], mapping: TableMapping, name: str, bad: BadLines, counts: Counts, numbers: Sequence[str] = ()
) -> Iterator[CsvTable]:
    """Yield the wanted columns of a CSV file in tables of about `ROWS_AT_ONCE` rows, at least one.

    A column holds texts; a column among `numbers` may hold whole numbers, int64, null where the cell is empty. `name`: of the mapping,
    for messages. Lines that are not records are added to `bad`. Raises LogError for a missing column.
    """
    rows = _Rows(list(wanted), set(numbers), mapping.delimiter)
    records = Records(mapping.delimiter, counts)
    blocks = _Blocks(mapping.delimiter, mapping.comment)
    if mapping.titles:
        rows.chosen, blocks.fields = places_of(file, mapping.titles, wanted, name), len(mapping.titles)

    def take(place: int, text: str, row: list[str] | None) -> None:
        if not blocks.fields:
            titles = [title.strip() for title in row or ()]
            rows.chosen, blocks.heading, blocks.fields = places_of(file, titles, wanted, name), text, len(titles)
        elif row is None or len(row) != blocks.fields:
            bad.add(place, "a closing quote is missing" if row is None else f"{len(row)} fields instead of {blocks.fields}", text)
        elif text != blocks.heading:  # a heading is repeated where files were concatenated
            rows.add(place, row)

    for first, block in file.text_blocks():
        plain = None if records.waiting else blocks.plain(block)
        if plain is None or not rows.add_block(first, *plain):
            lines: Iterable[tuple[int, str]] = lines_in(first, block, counts)
            if mapping.comment:
                lines = ((place, text) for place, text in lines if not text.lstrip().startswith(str(mapping.comment)))
            for place, text in lines:
                for record in records.add(place, text):
                    take(*record)
        if len(rows) >= ROWS_AT_ONCE:
            yield rows.table()
    for record in records.rest():
        take(*record)
    if len(rows) or not rows.has_given:
        yield rows.table()


class _Rows:
    """The rows since the last table. `chosen`: the places of the wanted columns. `has_given`: whether there has been a table."""

    def __init__(self, wanted: Sequence[str], numbers: set[str], delimiter: str) -> None:
        self.chosen: list[int] = []
        self.has_given = False
        self._wanted, self._delimiter = wanted, delimiter
        self._numbers = numbers  # columns that held only whole numbers and empty cells so far
        self._parts: dict[str, list[pl.Series]] = {column: [] for column in wanted}
        self._places: list[Array] = []
        self._single: list[list[str]] = []
        self._single_places: list[int] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, place: int, row: Sequence[str]) -> None:
        """Add one row with all its fields."""
        self._single.append([row[k].strip() for k in self.chosen])
        self._single_places.append(place)
        self._rows += 1

    def add_block(self, first: int, block: bytes, fields: int, has_quotes: bool) -> bool:
        """Add the rows of a block of simple lines, from line `first`; return False if they must be read one by one."""
        count = block.count(b"\n") + 1
        self._store_single()  # before parsing, because it may find columns that are not numbers
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
        """The columns of a block, numbers as int64; None if polars cannot read it."""
        names = [f"column_{place + 1}" for place in range(fields)]  # the names that polars gives to columns without titles
        places = dict(zip(self._wanted, self.chosen, strict=True))
        whole = {places[column] for column in numbers}
        schema = {name: pl.Int64 if place in whole else pl.String for place, name in enumerate(names)}
        used = [names[place] for place in sorted(set(self.chosen))]
        quote = '"' if has_quotes else None
        try:
            with without_panics():
                table = pl.read_csv(
                    io.BytesIO(block), has_header=False, separator=self._delimiter, quote_char=quote, schema=schema, columns=used
                )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        parsed = {column: table[names[place]] for column, place in places.items()}
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
        self._places, self._rows, self.has_given = [], 0, True
        return CsvTable(columns, places)


class _Blocks:
    """Finds simple blocks: each line is a whole record, without comments, headings and control characters."""

    def __init__(self, delimiter: str, comment: str | None) -> None:
        self.fields = 0
        self.heading = ""
        self._delimiter = delimiter
        self._comment = None if comment is None else re.compile(rb"(?m)^\s*" + re.escape(comment.encode()))

    def plain(self, block: bytes) -> tuple[bytes, int, bool] | None:
        """Return a simple block, the number of fields, and whether it has quotes; None for other blocks."""
        if not self.fields or not self._delimiter.isascii():
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if len(block.translate(None, _CONTROL)) != len(block) or (self._comment is not None and self._comment.search(block)):
            return None
        if self._delimiter == "\t" and _BLANK_LINE.search(block):  # elsewhere such a line has too few fields
            return None
        if (self.heading and self.heading.encode() in block) or not (block.isascii() or decoded(block)[1]):
            return None
        if self._delimiter == " ":
            if b'"' in block or not block.isascii():
                return None
            block = b"\n".join(b" ".join(line.split()) for line in block.split(b"\n"))
        has_quotes = b'"' in block
        fits = self._has_whole_records(block) if has_quotes else self._has_right_counts(block)
        return (block, self.fields, has_quotes) if fits else None

    def _has_right_counts(self, block: bytes) -> bool:
        """Return whether each line has the right number of delimiters."""
        content = np.frombuffer(block, np.uint8)
        ends = np.append(np.flatnonzero(content == ord("\n")), len(content))
        signs = np.flatnonzero(content == ord(self._delimiter))
        if len(signs) != len(ends) * (self.fields - 1):
            return False
        by_line = signs.reshape(len(ends), self.fields - 1)
        return bool((by_line < ends[:, None]).all() and (by_line[1:] > ends[:-1, None]).all())

    def _has_whole_records(self, block: bytes) -> bool:
        """Return whether each line is a record with the right number of fields, some of them in quotes."""
        sign = re.escape(self._delimiter)
        field = rf'(?:"(?:[^"]|"")*"|[^"{sign}]*)'
        lines = pl.Series(block.decode().split("\n"), dtype=pl.String)
        return bool(lines.str.contains(rf"^{field}(?:{sign}{field}){{{self.fields - 1}}}$").all())


def _are_whole(texts: pl.Series) -> bool:
    """Return whether all texts are whole numbers or empty."""
    return bool(texts.str.contains(r"^[0-9]{0,18}$").all())


class Records:
    """Records of one line or several, with the number of their first line, and their fields; None if a closing quote is missing.

    A text in quotes may continue in the next lines; but a line that is a whole record is never a part of another one.
    """

    def __init__(self, delimiter: str, counts: Counts) -> None:
        self.waiting: list[tuple[int, str]] = []  # lines of a record that may continue
        self._delimiter, self._counts = delimiter, counts
        self._fields = 0

    def add(self, place: int, text: str) -> Iterator[tuple[int, str, list[str] | None]]:
        """Yield the records that end with this line."""
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
        """Yield the lines of a record that did not end."""
        waiting, self.waiting = self.waiting, []
        yield from ((at, part, None) for at, part in waiting)


def fields_of(text: str, delimiter: str) -> list[str] | None:
    """Return the fields of a record; None if a closing quote is missing, or a quote is in a wrong place."""
    if delimiter == " ":
        return text.split()
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True), None)
    except csv.Error:
        return None
