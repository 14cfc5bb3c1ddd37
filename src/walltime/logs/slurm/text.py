"""Read the text output of Slurm's sacct: any columns in any order, of any version, with separators, as CSV, or of a fixed width."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.csv_rows import parsed_block
from walltime.logs.guess import Guess
from walltime.logs.input import in_advance
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.sample import Sample, sample_of
from walltime.logs.slurm.adapted import FIELDS_OF, Adapted, adapted
from walltime.logs.slurm.fields import state_word
from walltime.logs.slurm.fixed import fixed_rows, found_titles
from walltime.logs.slurm.jobs import RULES
from walltime.logs.slurm.records import KINDS, TEXTS, RecordReader, RecordTable, suffice
from walltime.logs.slurm.rows import (
    NEEDED,
    RULES as LINE_RULES,
    Heading,
    Rows,
    SimpleRows,
    blocks_of,
    first_lines,
    found_heading,
    is_printed,
    rows_of,
)

_LIST = re.compile(r"[a-z]+(?:/[a-z:0-9_.-]+)?=[^,]*,[a-z]")
_TESTED_ROWS = 50
"""Number of rows from which output of sacct is recognised."""


def _table(heading: Heading, rows: Rows | SimpleRows) -> RecordTable:
    """Return the fields that are needed from a block of rows."""
    places = {name: place for place, name in reversed([*enumerate(heading.fields)]) if name in KINDS or name in TEXTS}
    found = None
    if isinstance(rows, SimpleRows):
        found = parsed_block(rows.block, heading.delimiter, len(heading.fields) + heading.ends, places.values())
    split = pl.Series("", rows.texts if found is None else [], pl.String).str.split(heading.delimiter)
    columns: dict[str, pl.Series] = {}
    for name, place in places.items():
        column = split.list.get(place, null_on_oob=True) if found is None else found[place].fill_null("")
        if isinstance(rows, Rows) and rows.fields:
            column = column.scatter([row for row, _ in rows.fields], [values[place] for _, values in rows.fields])
        columns[name] = column.str.strip_chars() if heading.is_csv else column
    return RecordTable(columns, KINDS)


def _text(rows: Rows | SimpleRows, place: int) -> str:
    """Return the text of a row."""
    return rows.texts[place]


def _is_text(head: bytes) -> bool:
    lines = first_lines(head)
    if found_titles(lines) is not None:
        return True
    found = found_heading(lines)
    if found is None:
        return False
    place, heading = found
    if not suffice(set(heading.fields)):
        return heading.delimiter == "|"
    return place < 0 or is_printed(heading, lines[place + 1 : place + 1 + _TESTED_ROWS])


def untitled(sample: Sample, guess: Guess) -> LogFormat | None:
    """Return the format of a table without titles if the columns recognised by their values are Slurm's; None otherwise."""
    mapping = guess.mapping
    names = {source.column: FIELDS_OF[name] for name, source in mapping.columns.items() if source.column and name in FIELDS_OF}
    if mapping.status is None or any(state_word(text) is None for text in sample.columns[mapping.status.column]):
        return None
    names[mapping.status.column] = "state"
    lists = [title for title, texts in sample.columns.items() if any(texts) and all(not text or _LIST.match(text) for text in texts)]
    names |= dict(zip(reversed(lists), ("alloctres", "reqtres"), strict=False))
    fields = tuple(names.get(title, title) for title in sample.columns)
    if not suffice(set(fields)):
        return None
    forms = {FIELDS_OF[name]: mapping.columns[name] for name in ("requested", "runtime") if name in mapping.columns}
    heading = Heading(fields, tuple(sample.columns), sample.delimiter, False)
    return replace(SLURM, read=partial(_read, untitled=(heading, Adapted({}, forms, guess.reading))))


def _read(state: ReaderState, untitled: tuple[Heading, Adapted] | None = None) -> JobLog:
    file, lines = state.file, first_lines(state.file.head)
    place, meaning = found_titles(lines), Adapted({}) if untitled is None else untitled[1]
    if place is not None:
        heading, rows = fixed_rows(state, place, KINDS)
    else:
        found = (-1, untitled[0]) if untitled is not None else found_heading(lines)
        if found is None:
            raise LogError(f"{file.where}:1: the column titles are missing; print them, as walltime slurm sacct-command does")
        place, heading = found
        if place >= 0 and len(heading.delimiter) == 1 and suffice(set(heading.fields)):
            titles = dict(reversed([pair for pair in zip(heading.fields, heading.titles, strict=True) if pair[0] in (*KINDS, *TEXTS)]))
            meaning = adapted(titles, sample_of(file, delimiter=heading.delimiter), file.where)
            names = {title: name for name, title in meaning.titles.items()}
            heading = replace(heading, fields=tuple(map(names.get, heading.titles, heading.fields)))
        rows = rows_of(state, place, heading, KINDS)
    if not suffice(set(heading.fields)):
        raise LogError(f"{file.where}:1: a job log needs the columns {NEEDED}; see walltime slurm sacct-command")
    reader = RecordReader(state, meaning.forms)
    titles = dict(zip(reversed(heading.fields), reversed(heading.titles), strict=True))
    blocks = ((_table(heading, block), block) for block in blocks_of(rows, state))
    for table, block in blocks if file.stored is None else in_advance(blocks, 1):
        reader.add(table, block.lines, partial(_text, block), titles)
    return replace(reader.log(), reading=meaning.reading)


SLURM = LogFormat("slurm", "Slurm's sacct -P", (".sacct",), re.compile(b""), _read, (*RULES, *LINE_RULES), _is_text)
"""The output of `sacct`, as text."""
