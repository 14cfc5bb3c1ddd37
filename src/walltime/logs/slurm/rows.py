"""Split the lines of `sacct -P`, or of the same table as CSV, into fields.

sacct escapes nothing, so job names and comments may contain its separator and line ends; in CSV, fields may be in quotes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, pairwise, zip_longest

from walltime.logs.cells import STAMP
from walltime.logs.csv_rows import Blocks, Records, fields_of
from walltime.logs.reader import ReaderState
from walltime.logs.rules import NEWLINE_IN_TEXT, Rule
from walltime.logs.slurm.fields import STATES, state_word
from walltime.slurm_values import BLANK, NO_LIMITS

FREE_TEXT = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "extra", "constraints", "container", "stdin", "stdout"}
    | {"stderr", "stdinexpanded", "stdoutexpanded", "stderrexpanded", "wckey", "licenses"}
)
"""Fields in which users can write free text."""
NEEDED = "JobIDRaw (or JobID), Submit, AllocCPUS (or ReqCPUS), and Elapsed (or Start and End)"
DELIMITER_IN_TEXT = Rule(
    "delimiter_in_text",
    "notice",
    "A job name, comment or command line contains the separator of the columns; the other fields of the line are certain, and texts whose "
    "ends are uncertain are unknown.",
)
CUT_TEXT = Rule(
    "cut_text",
    "notice",
    "The log has columns of a fixed width, and a value is cut, as `user_with_a+`: names with the same beginning are not distinguished, and "
    "long times lose their last seconds. Print the log with `sacct -P`.",
)
OTHER_LINE = Rule("other_line", "notice", "The line precedes the titles and is not a record, such as a message of sacct or a prompt.")
RULES = (DELIMITER_IN_TEXT, CUT_TEXT, OTHER_LINE)
ROWS_AT_ONCE = 25_000
MOST_OTHER = 10
"""Maximum number of lines before the titles."""
LAYOUTS = tuple(
    f"jobid jobidraw cluster partition {qos}account group gid user uid submit eligible start end elapsed exitcode state nnodes ncpus"
    f" reqcpus reqmem {resources}timelimit nodelist jobname"
    for qos, resources in (("qos ", "reqtres alloctres "), ("", "reqgres reqtres "), ("", "reqgres "), ("qos ", ""))
)
"""The fields of archives without titles, as written by the present and earlier versions of OpenXDMoD's Slurm helper."""
_HEADING = re.compile(r'(?i)("?)[a-z]*\1([^a-z0-9"]+)\1[a-z]')
_ROW = re.compile(rf"(?=\s*[0-9]+(?:[_.+]\S*)?\W)(?=.*\b(?:{'|'.join(STATES)})\b)(?=.*\b[0-9]{{4}}-[0-9][0-9]-[0-9][0-9][T ][0-9])")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FRAME = re.compile(rf"^(?:{_COLOURS.pattern})+|(?:{_COLOURS.pattern})+$")
_RECORD = re.compile(r"[0-9]{1,15}(?:[_+.][^\s]*)?")
_TIME = re.compile(rf"{STAMP.pattern}|[0-9]{{9,19}}(?:\.[0-9]*)?")
_SPENT = re.compile(r"(?:[0-9]+(?:-| days? ))?(?:[0-9]+:)?[0-9]+:[0-9][0-9](?:\.[0-9]+)?|[0-9]{1,9}(?:\.0*)?")
_WHOLE = re.compile(r"[0-9]+(?:\.[0-9]*)?[KMGTP]?")
_TRES = re.compile(r"(?:[a-z0-9/:._-]+=[^,|]*(?:,|$))*", re.IGNORECASE)
_QUOTED = r'(?:^|{0})"(?:[^"]|"")*(?:{0}|"")(?:[^"]|"")*"(?:{0}|$)'
"""A quoted field that contains the separator or doubled quotes."""


@dataclass(frozen=True)
class Heading:
    """The heading of a table: fields in lower case, titles, separator, and whether each line ends with a separator (`-p`)."""

    fields: tuple[str, ...]
    titles: tuple[str, ...]
    delimiter: str
    ends: bool
    is_csv: bool = False
    """Whether fields may be in quotes."""

    @property
    def free(self) -> list[int]:
        """Return the indices of the free-text fields."""
        return [k for k, name in enumerate(self.fields) if name in FREE_TEXT]


@dataclass
class Rows:
    """Some rows: the number of each row's first line, from 1, and its text."""

    lines: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    fields: list[tuple[int, list[str]]] = field(default_factory=list)
    """The fields of rows that cannot be split at the separator, with the indices of these rows."""


@dataclass
class SimpleRows:
    """The rows of consecutive simple blocks (`walltime.logs.csv_rows.Blocks`), from line `first`."""

    first: int
    block: bytes

    @property
    def lines(self) -> range:
        """Return the numbers of the lines."""
        return range(self.first, self.first + self.block.count(b"\n") + 1)

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts of the rows."""
        return self.block.decode().split("\n")


Line = tuple[int, str | bytes]
"""The number of a line and its text; or the number of the first line of a simple block, and the block."""
Row = tuple[int, str | bytes, list[str] | str | None]
"""A row or a block as in `Line`, and its fields: None if it can be split at each separator, a reason if they are uncertain."""


def heading_of(line: str) -> Heading | None:
    """Parse a line as the heading of `sacct -P`; return None for other lines."""
    line = _COLOURS.sub("", line.rstrip("\r"))
    match = _HEADING.match(line)
    if not match or not match[2].strip(" "):
        return None
    delimiter, is_csv = match[2], bool(match[1])
    if len(plain := delimiter.strip(" ")) == 1 and plain != delimiter:  # other programs put blanks around the separator
        delimiter, is_csv = plain, True
    if is_csv and len(delimiter) > 1:
        return None
    ends = line.endswith(delimiter)
    line = line.removesuffix(delimiter)
    titles = [title.strip() for title in (next(csv.reader([line], delimiter=delimiter)) if is_csv else line.split(delimiter))]
    fields = tuple(title.lower().split("%")[0] for title in titles)
    known = {"submit", "start", "end", "state", "elapsed", "elapsedraw", "alloccpus", "reqcpus", "eligible", "timelimit", "timelimitraw"}
    if {"jobid", "jobidraw"} & set(fields) and len(known & set(fields)) >= 2:
        return Heading(fields, tuple(titles), delimiter, ends, is_csv)
    return None


def first_lines(head: bytes) -> list[str]:
    """Return the first lines of a file that are not blank; the last one may be incomplete."""
    lines = head[: 1 << 17].removeprefix(b"\xef\xbb\xbf").decode(errors="replace").splitlines()[:200]
    return [line for line in lines if line.strip()]


def lacks_titles(head: bytes) -> bool:
    """Return whether most of the first lines have a job number, a time and a state of Slurm, as printed by sacct without titles."""
    lines = first_lines(head)[:50]
    return sum(_ROW.match(line) is not None for line in lines) > len(lines) / 2


def found_heading(lines: Sequence[str]) -> tuple[int, Heading] | None:
    """Return the heading among the first lines of a file and its index, or -1 and a known layout if there are no titles.

    None if there is neither.
    """
    for place, line in enumerate(lines[:MOST_OTHER]):
        heading = heading_of(line) if len(line) < 10_000 else None
        if heading is not None:
            rows = lines[place + 1 :]
            quoted = re.compile(_QUOTED.format(re.escape(heading.delimiter)))
            whole = ('"' in row and _has_whole_quotes(row.split(heading.delimiter), heading) for row in rows)
            is_csv = len(heading.delimiter) == 1 and (heading.is_csv or any(whole) or any(quoted.search(row) for row in rows))
            return place, replace(heading, is_csv=is_csv)
    for layout in LAYOUTS:
        titles = tuple(layout.split())
        heading = Heading(titles, titles, "|", False)
        if any(line.count("|") >= len(titles) - 1 and _looks_right(line.split("|"), heading) for line in lines):
            return -1, heading
    return None


def _has_whole_quotes(fields: Sequence[str], heading: Heading) -> bool:
    """Return whether a field that is not a free text is in quotes."""
    return any(re.fullmatch('"[^"]+"', text) and name not in FREE_TEXT for name, text in zip(heading.fields, fields, strict=False))


def _looks_right(row: Sequence[str], heading: Heading) -> bool:
    """Return whether a row has sacct's values in fields that other tables share, or times in any format and a state of Slurm."""
    looks: Mapping[str, Callable[[str], bool]] = {
        "jobid": partial(_is, _RECORD, BLANK),
        **dict.fromkeys(("submit", "start", "end", "eligible"), _LOOKS["time"]),
        **{name: _LOOKS[kind] for name, kind in (("elapsed", "spent"), ("state", "state"), ("nnodes", "whole"), ("alloctres", "tres"))},
    }
    right = {name: looks[name](row[k].strip()) for k, name in enumerate(heading.fields) if name in looks}
    others = [fits for name, fits in right.items() if looks[name] is not _LOOKS["time"]]
    states = [row[k].strip() for k, name in enumerate(heading.fields) if name == "state"]
    return all(right.values()) or (all(others) and any(text in STATES for text in states) and "alloctres" in right)


def is_printed(heading: Heading, lines: Sequence[str]) -> bool:
    """Return whether any of these rows is output of sacct; other tables with its titles have different values."""
    split = [fields_of(line, heading.delimiter) if heading.is_csv else line.split(heading.delimiter) for line in lines]
    rows = [row for row in split if row is not None and len(row) == len(heading.fields) + heading.ends]
    return not rows or any(_looks_right(row, heading) for row in rows)


def rows_of(state: ReaderState, place: int, heading: Heading, used: Mapping[str, str]) -> Iterator[Row]:
    """Return an iterator over the rows of a file.

    `place`: the index of the heading among the lines, -1 for a file without titles. `used`: the kinds of the fields that are read
    (`_LOOKS`).
    """
    blocks = Blocks(heading.delimiter, quotes=False)
    lines = _lines_and_blocks(state, blocks, heading)
    first = ""
    if place >= 0:
        *others, first = (str(text) for _, text in islice(lines, place + 1))
        first = first.removesuffix(heading.delimiter) if heading.ends else first
        state.count(OTHER_LINE, len(others))
    blocks.heading, blocks.fields = first, 0 if heading.is_csv else len(heading.fields) + heading.ends
    rows = _records(lines, heading, state) if heading.is_csv else _lines(lines, heading, used, state)
    return (row for row in rows if row[1] != first)  # the heading is repeated where files were concatenated


def _lines_and_blocks(state: ReaderState, blocks: Blocks, heading: Heading) -> Iterator[Line]:
    """Yield simple blocks, and the lines of other blocks with the line before them, which they may continue."""
    waiting: tuple[int, bytes] | None = None
    end = heading.delimiter.encode() + b"\n"
    for first, block in state.file.text_blocks():
        plain = blocks.plain(block)
        simple = None if plain is None else plain[0]
        if simple is not None and heading.ends and (simple + b"\n").count(end) != simple.count(b"\n") + 1:
            simple = None
        if waiting is not None and simple is None:
            before, _, last = waiting[1].rpartition(b"\n")
            yield from [(waiting[0], before)] if before else ()
            yield first - 1, last.decode()
        elif waiting is not None:
            yield waiting
        waiting = None if simple is None else (first, simple)
        if simple is None:
            yield from ((number, _FRAME.sub("", line) if "\x1b" in line else line) for number, line in state.lines_in(first, block))
    if waiting is not None:
        yield waiting


def blocks_of(rows: Iterable[Row], state: ReaderState) -> Iterator[Rows | SimpleRows]:
    """Yield the rows in blocks; rows with uncertain fields are added to the bad lines."""
    block, simple, first, count = Rows(), list[bytes](), 0, 0
    for number, text, fields in rows:
        if isinstance(text, bytes):
            if block.texts:
                yield block
                block = Rows()
            first = first if simple else number
            simple.append(text)
            count = number - first + text.count(b"\n") + 1
        else:
            if isinstance(fields, str):
                state.add_bad(number, fields, text)
                continue
            if fields is not None:
                block.fields.append((len(block.texts), fields))
            block.texts.append(text if fields is None else "")
            block.lines.append(number)
        if simple and (block.texts or count >= ROWS_AT_ONCE):
            yield SimpleRows(first, b"\n".join(simple))
            simple = []
        if len(block.texts) >= ROWS_AT_ONCE:
            yield block
            block = Rows()
    if simple:
        yield SimpleRows(first, b"\n".join(simple))
    if block.texts:
        yield block


def _records(lines: Iterator[Line], heading: Heading, state: ReaderState) -> Iterator[Row]:
    records, wanted = Records(heading.delimiter), len(heading.fields)
    for number, text, fields in records.of((number, str(text)) for number, text in lines):
        row = fields if fields is None or not heading.ends else fields[:-1]
        yield number, text, "a closing quote is missing" if row is None else row if len(row) == wanted else _count(len(row), wanted)
    state.count(NEWLINE_IN_TEXT, records.joined)


def _lines(lines: Iterator[Line], heading: Heading, used: Mapping[str, str], state: ReaderState) -> Iterator[Row]:
    """Yield the rows of `sacct -P`; the fields are given if the row cannot simply be split at each separator."""
    wanted = len(heading.fields)
    for number, line, separators in _joined(lines, heading, state):
        if isinstance(line, bytes):
            yield number, line, None
            continue
        ended = heading.ends and line.endswith(heading.delimiter)
        text, count = line.removesuffix(heading.delimiter) if ended else line, separators + 1 - ended
        if count == wanted:
            yield number, text, None
            continue
        fields = _fields_around_texts(text.split(heading.delimiter), heading, used) if count > wanted else None
        if fields is not None:
            state.count(DELIMITER_IN_TEXT, 1)
            yield number, text, fields
            continue
        reason = _count(count, wanted)
        if count > wanted and heading.free:
            reason += (
                ", and a text that contains the separator has no certain end; print free texts last, as walltime slurm sacct-command does"
            )
        yield number, line, reason


def _count(fields: int, wanted: int) -> str:
    return f"{fields} {'field' if fields == 1 else 'fields'} instead of {wanted}"


def _joined(lines: Iterator[Line], heading: Heading, state: ReaderState) -> Iterator[tuple[int, str | bytes, int]]:
    """Yield the lines, joined where a free text contains a line end: number of the first line, text, and number of separators.

    Simple blocks are yielded unchanged.
    """
    waiting: tuple[int, str, int] | None = None
    several = False
    wanted = len(heading.fields) - 1 + heading.ends
    for number, text in lines:
        if isinstance(text, bytes):
            yield from [waiting] if waiting is not None else ()
            yield number, text, 0
            waiting, several = None, False
            continue
        here = text.count(heading.delimiter)
        if waiting is not None and here < wanted and _continues(wanted - waiting[2], text, here, heading):
            waiting = (waiting[0], f"{waiting[1]}\n{text}", waiting[2] + here)
            state.count(NEWLINE_IN_TEXT, 0 if several else 1)
            several = True
            continue
        if waiting is not None:
            yield waiting
        waiting, several = (number, text, here), False
    if waiting is not None:
        yield waiting


def _continues(missing: int, text: str, here: int, heading: Heading) -> bool:
    """Return whether a line continues a free text of the line before it, which lacks `missing` separators.

    It does if it does not start a record, and has at most the missing fields; `here`: its number of separators.
    """
    wanted = len(heading.fields) - 1 + heading.ends
    if here > missing or missing < 0 or not heading.free:
        return False
    if heading.fields[0] in ("jobid", "jobidraw") and here and _RECORD.fullmatch(text.split(heading.delimiter, 1)[0]):
        return False
    return wanted - missing in heading.free


def _fields_around_texts(pieces: list[str], heading: Heading, used: Mapping[str, str]) -> list[str] | None:
    """Return the fields of a line whose free texts contain separators; None if a field in `used` is uncertain.

    Uncertain texts become empty.
    """
    free, extra = heading.free, len(pieces) - len(heading.fields)
    if not free:
        return None
    spans: list[list[int]] = [[free[0]]]  # indices of texts, and of unused fields between them
    runs: list[list[int]] = []  # indices of the fields after each span
    for before, after in pairwise(free):
        run = list(range(before + 1, after))
        if any(heading.fields[k] in used for k in run):
            runs.append(run)
            spans.append([])
        else:
            spans[-1].extend(run)
        spans[-1].append(after)
    fields = [*pieces[: free[0]], *([""] * (free[-1] + 1 - free[0])), *pieces[free[-1] + 1 + extra :]]
    shift = 0  # number of separators found in texts so far
    for span, run in zip_longest(spans, runs, fillvalue=list[int]()):
        looks = [(k, _LOOKS[used.get(heading.fields[k], "text")]) for k in run]
        shifts = range(shift, extra + 1) if run else (extra,)
        fits = [more for more in shifts if all(look(pieces[k + more]) for k, look in looks)]
        if len(fits) != 1:
            return None
        texts = pieces[span[0] + shift : span[-1] + 1 + fits[0]]
        if len(texts) == len(span):
            fields[span[0] : span[-1] + 1] = texts
        elif len(span) == 1:
            fields[span[0]] = heading.delimiter.join(texts)
        shift = fits[0]
        for k in run:
            fields[k] = pieces[k + shift]
    return fields


def _is(pattern: re.Pattern[str], words: Sequence[str], text: str) -> bool:
    return text in words or pattern.fullmatch(text) is not None


_LOOKS: Mapping[str, Callable[[str], bool]] = {
    "time": partial(_is, _TIME, BLANK),
    "whole": partial(_is, _WHOLE, BLANK),
    "spent": partial(_is, _SPENT, BLANK),
    "limit": partial(_is, _SPENT, (*BLANK, *NO_LIMITS)),
    "state": lambda text: state_word(text) is not None,
    "tres": partial(_is, _TRES, BLANK),
    "text": lambda text: True,
}
"""Tests for the values of each kind of field."""
