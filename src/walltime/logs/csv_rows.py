"""Read the rows of CSV files in tables of some hundred thousand rows: simple blocks at once, others line by line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.input import LogFile, decoded, without_panics
from walltime.logs.mapping import TableMapping
from walltime.logs.reader import ReaderState
from walltime.logs.rules import NEWLINE_IN_TEXT
from walltime.wording import counted, quoted

Array = np.ndarray
ROWS_AT_ONCE = 400_000
_MOST_LINES = 1000
"""Maximum number of lines of a record; if it has more, a closing quote is missing."""
_CONTROL = bytes(code for code in (*range(32), 127) if code not in b"\t\n")
_BLANK_LINE = re.compile(rb"(?m)^[ \t]*$")


Table = tuple["pl.DataFrame", Array]
"""Some rows of a table: the columns that a mapping uses, as texts, numbers or times, and the line or record number of each row."""


def places_of(file: LogFile, titles: Sequence[str], wanted: Sequence[str], name: str) -> list[int]:
    """Return the indices of the wanted columns among the titles; raises LogError if one is missing. `name`: the mapping in messages."""
    for column in wanted:
        if column not in titles:
            known = ", ".join(titles[:40])
            raise LogError(
                f"{file.where}: {name} refers to the column {quoted(column)}, but the table has the columns {known}; correct the mapping"
            )
    return [list(titles).index(column) for column in wanted]


def csv_tables(state: ReaderState, wanted: Sequence[str], mapping: TableMapping, name: str, numbers: Sequence[str] = ()) -> Iterator[Table]:
    """Yield the wanted columns of a CSV file in tables of about `ROWS_AT_ONCE` rows, at least one.

    Without commas as delimiters, there is one table of all rows. A column holds texts; a column in `numbers` may hold whole numbers, int64,
    null where the cell is empty. `name`: the name of the mapping in messages. Lines that are not records are added to the bad lines. Raises
    LogError for a missing column.
    """
    rows = _Rows(list(wanted), set(numbers), mapping.delimiter)
    records = Records(mapping.delimiter)
    blocks = Blocks(mapping.delimiter, mapping.comment)
    most = ROWS_AT_ONCE if mapping.delimiter == "," else math.inf  # all rows of a column decide the meaning of commas in numbers
    if mapping.titles:
        rows.chosen, blocks.fields = places_of(state.file, mapping.titles, wanted, name), len(mapping.titles)

    def good(found: Iterable[tuple[int, str, list[str] | None]]) -> Iterator[tuple[int, list[str]]]:
        for place, text, row in found:
            if not blocks.fields:
                titles = [title.strip() for title in row or ()]
                rows.chosen, blocks.heading, blocks.fields = places_of(state.file, titles, wanted, name), text, len(titles)
            elif row is None or len(row) != blocks.fields:
                fault = "a closing quote is missing" if row is None else f"{counted(len(row), 'field')} instead of {blocks.fields}"
                state.add_bad(place, fault, text)
            elif text != blocks.heading:  # a heading is repeated where files were concatenated
                yield place, row

    for first, block in state.file.text_blocks():
        plain = None if records.waiting else blocks.plain(block)
        if plain is None or not rows.add_block(first, *plain):
            lines: Iterable[tuple[int, str]] = state.lines_in(first, block)
            if mapping.comment:
                lines = ((place, text) for place, text in lines if not text.lstrip().startswith(str(mapping.comment)))
            rows.add(good(chain.from_iterable(records.add(place, text) for place, text in lines)))
        if len(rows) >= most:
            yield rows.table()
    rows.add(good(records.rest()))
    state.count(NEWLINE_IN_TEXT, records.joined)
    if len(rows) or not rows.has_given:
        yield rows.table()


class _Rows:
    """The rows since the last table. `chosen`: the indices of the wanted columns. `has_given`: whether there has been a table."""

    def __init__(self, wanted: Sequence[str], numbers: set[str], delimiter: str) -> None:
        self.chosen: list[int] = []
        self.has_given = False
        self._wanted, self._delimiter = wanted, delimiter
        self._numbers = numbers  # columns that held only whole numbers and empty cells so far
        self._frames: list[pl.DataFrame] = []
        self._places: list[Array] = []

    def __len__(self) -> int:
        return sum(map(len, self._places))

    def add(self, rows: Iterable[tuple[int, list[str]]]) -> None:
        """Add rows with all their fields."""
        if found := list(rows):
            columns = {title: [row[k] for _, row in found] for k, title in zip(self.chosen, self._wanted, strict=True)}
            self._store(pl.DataFrame(columns), [place for place, _ in found])

    def add_block(self, first: int, block: bytes, fields: int, has_quotes: bool) -> bool:
        """Add the rows of a block of simple lines, from line `first`; return False if they must be read one by one."""
        count = block.count(b"\n") + 1
        table = None
        for numbers in (self._numbers, set[str]()) if self._numbers else (self._numbers,):
            whole = [place for column, place in zip(self._wanted, self.chosen, strict=True) if column in numbers]
            table = parsed_block(block, self._delimiter, fields, self.chosen, has_quotes, whole)
            if table is not None:
                break
        if table is None:
            return False
        named = pl.DataFrame({column: table[place] for column, place in zip(self._wanted, self.chosen, strict=True)})
        if len(named) != count:
            return False
        self._store(named, np.arange(first, first + count))
        return True

    def _store(self, table: pl.DataFrame, places: Sequence[int] | Array) -> None:
        """Keep rows, with blanks around texts removed; columns that have held only whole numbers so far become numbers."""
        texts = table.with_columns(pl.col(pl.String).str.strip_chars().fill_null(""))
        self._numbers = {one for one in self._numbers if texts[one].dtype == pl.Int64 or texts[one].str.contains(r"^[0-9]{0,18}$").all()}
        self._frames.append(texts.with_columns(pl.col(*self._numbers).cast(pl.Int64, strict=False)) if self._numbers else texts)
        self._places.append(np.asarray(places, np.int64))

    def table(self) -> Table:
        """Return the rows since the last table."""
        frames = self._frames or [pl.DataFrame(schema=dict.fromkeys(self._wanted, pl.String))]
        table, places = pl.concat(frames, how="vertical_relaxed"), np.concatenate([np.zeros(0, np.int64), *self._places])
        self._frames, self._places, self.has_given = [], [], True
        return table, places


def parsed_block(
    block: bytes, delimiter: str, fields: int, chosen: Collection[int], has_quotes: bool = False, whole: Collection[int] = ()
) -> dict[int, pl.Series] | None:
    """Return the chosen columns of a simple block by their indices, null where empty; None if polars cannot read it.

    `whole`: the indices of the columns with whole numbers, int64; the others are texts.
    """
    names = [f"column_{place + 1}" for place in range(fields)]  # the names that polars gives to columns without titles
    schema = {name: pl.Int64 if place in whole else pl.String for place, name in enumerate(names)}
    used = [names[place] for place in sorted(set(chosen))]
    quote = '"' if has_quotes else None
    try:
        with without_panics():
            table = pl.read_csv(io.BytesIO(block), has_header=False, separator=delimiter, quote_char=quote, schema=schema, columns=used)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return {place: table[names[place]] for place in set(chosen)}


class Blocks:
    """Finds simple blocks: each line is a whole record, and there are no comments, headings or control characters.

    `fields`: the number of fields; no block is simple while it is 0. `quotes`: whether fields may be in quotes.
    """

    def __init__(self, delimiter: str, comment: str | None = None, quotes: bool = True) -> None:
        self.fields = 0
        self.heading = ""
        self._delimiter = delimiter
        self._quotes = quotes
        self._control = bytes(code for code in _CONTROL if code != ord(delimiter[:1]))
        self._comment = None if comment is None else re.compile(rb"(?m)^\s*" + re.escape(comment.encode()))

    def plain(self, block: bytes) -> tuple[bytes, int, bool] | None:
        """Return a simple block with its number of fields and whether it has quotes; None for other blocks."""
        if not self.fields or not self._delimiter.isascii() or len(self._delimiter) > 1:
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if len(block.translate(None, self._control)) != len(block) or (self._comment is not None and self._comment.search(block)):
            return None
        if self._delimiter == "\t" and _BLANK_LINE.search(block):  # elsewhere such a line has too few fields
            return None
        if (self.heading and self.heading.encode() in block) or not (block.isascii() or decoded(block)[1]):
            return None
        if self._delimiter == " ":
            if b'"' in block or not block.isascii():
                return None
            block = b"\n".join(b" ".join(line.split()) for line in block.split(b"\n"))
        has_quotes = self._quotes and b'"' in block
        return (block, self.fields, has_quotes) if self._has_whole_records(block, has_quotes) else None

    def _has_whole_records(self, block: bytes, has_quotes: bool) -> bool:
        """Return whether each line is a record with the right number of fields, some of them in quotes."""
        if not has_quotes:
            signs = np.frombuffer(block + b"\n", np.uint8)
            ends, between = np.flatnonzero(signs == ord("\n")), np.flatnonzero(signs == ord(self._delimiter))
            if len(between) != len(ends) * (self.fields - 1):
                return False
            rows = between.reshape(len(ends), self.fields - 1)  # those of each line, if all lines have the same number
            return self.fields < 2 or bool((rows[:, -1] < ends).all() and (rows[1:, 0] > ends[:-1]).all())
        lines = pl.Series(block.decode().split("\n"), dtype=pl.String)
        sign = re.escape(self._delimiter)
        field = rf'(?:"(?:[^"]|"")*"|[^"{sign}]*)'
        return bool(lines.str.contains(rf"^{field}(?:{sign}{field}){{{self.fields - 1}}}$").all())


class Records:
    """Joins lines to records; yields the number of a record's first line, its text and its fields, None if a closing quote is missing.

    A quoted text may continue on the next lines, but a line that is a whole record is never part of another one. `joined`: the number of
    multi-line records so far.
    """

    def __init__(self, delimiter: str) -> None:
        self.waiting: list[tuple[int, str]] = []  # lines of a record that may continue
        self.joined = 0
        self._delimiter = delimiter
        self._fields = 0

    def of(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, list[str] | None]]:
        """Yield the records in these lines."""
        for place, text in lines:
            yield from self.add(place, text)
        yield from self.rest()

    def add(self, place: int, text: str) -> Iterator[tuple[int, str, list[str] | None]]:
        """Yield the records that end with this line."""
        row = fields_of(text, self._delimiter)
        if self.waiting and not (row is not None and len(row) == self._fields):
            joined = "\n".join([*(part for _, part in self.waiting), text])
            whole = fields_of(joined, self._delimiter)
            if whole is not None and len(whole) == self._fields:
                self.joined += 1
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
        """Yield the lines of a record that has not ended."""
        waiting, self.waiting = self.waiting, []
        yield from ((at, part, None) for at, part in waiting)


def fields_of(text: str, delimiter: str) -> list[str] | None:
    """Return the fields of a record; None if a closing quote is missing, or a quote is in the wrong place."""
    if delimiter == " ":
        return text.split()
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True), None)
    except csv.Error:
        return None
