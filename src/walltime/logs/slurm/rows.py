"""The lines of `sacct -P` as rows of fields; sacct escapes nothing, so job names and comments may contain its separator and line ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, zip_longest

from walltime.errors import LogError
from walltime.logs.batch_systems import NEWLINE_IN_TEXT, Counts, text_lines
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, Rule
from walltime.logs.slurm.fields import BLANK, NO_LIMITS, state_word

FREE_TEXT = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "extra", "constraints", "container", "stdin", "stdout"}
    | {"stderr", "stdinexpanded", "stdoutexpanded", "stderrexpanded", "wckey", "licenses"}
)
"""Fields with free texts of users."""
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
    "The log has columns of a fixed width, and a value is cut, as `user_with_a+`: names that begin alike are not distinguished, and "
    "long times lose their last seconds. Print the log with `sacct -P`.",
)
RULES = (DELIMITER_IN_TEXT, CUT_TEXT)
ROWS_AT_ONCE = 50_000
_HEADING = re.compile(r"(?i)(jobid|jobidraw|[a-z]+)([^a-z0-9]+)[a-z]")
_RECORD = re.compile(r"[0-9]{1,15}(?:[_+.][^\s]*)?")
_TIME = re.compile(r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]|[0-9]{9,11}")
_SPENT = re.compile(r"(?:[0-9]+-)?(?:[0-9]+:)?[0-9]+:[0-9][0-9](?:\.[0-9]+)?")
_WHOLE = re.compile(r"[0-9]+")
_CUT_TIME = re.compile(r"([0-9]+-[0-9][0-9](?::[0-9][0-9])?):?[0-9]?\+")
_CUT_TASKS = re.compile(r"([0-9]+_)\[.*\+")


@dataclass(frozen=True)
class Heading:
    """The heading: the fields in lower case, the titles, the separator, and whether each line ends with a separator (`-p`)."""

    fields: tuple[str, ...]
    titles: tuple[str, ...]
    delimiter: str
    ends: bool

    @property
    def free(self) -> list[int]:
        """The places of the free texts."""
        return [k for k, name in enumerate(self.fields) if name in FREE_TEXT]


@dataclass
class Rows:
    """The rows of a block: the number of each row's first line, from 1, and its text."""

    lines: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    fields: list[tuple[int, list[str]]] = field(default_factory=list)
    """The fields of rows that cannot be split at the separator, with their places."""

    def add(self, line: int, text: str, fields: list[str] | None) -> None:
        """Add a row by its text, or by its fields."""
        if fields is not None:
            self.fields.append((len(self.texts), fields))
        self.texts.append(text)
        self.lines.append(line)


def heading_of(line: str) -> Heading | None:
    """Return the heading of `sacct -P` in a line; None for other lines."""
    line = line.rstrip("\r")
    match = _HEADING.match(line)
    if not match or not match[2].strip(" "):
        return None
    delimiter = match[2]
    ends = line.endswith(delimiter)
    titles = line.removesuffix(delimiter).split(delimiter)
    fields = tuple(title.strip().lower().split("%")[0] for title in titles)
    known = {"submit", "start", "end", "state", "elapsed", "elapsedraw", "alloccpus", "reqcpus", "eligible", "timelimit", "timelimitraw"}
    if {"jobid", "jobidraw"} & set(fields) and len(known & set(fields)) >= 2:
        return Heading(fields, tuple(titles), delimiter, ends)
    return None


def is_printed(heading: Heading, lines: Sequence[bytes]) -> bool:
    """Return whether any of these rows is output of sacct; other tables with its titles have times in another format."""
    looks = {"jobid": _RECORD, "submit": _TIME, "start": _TIME, "end": _TIME, "elapsed": _SPENT}
    checked = [(k, looks[name]) for k, name in enumerate(heading.fields) if name in looks]
    split = [line.decode(errors="replace").rstrip("\r").split(heading.delimiter) for line in lines if line.strip()]
    rows = [row for row in split if len(row) == len(heading.fields) + heading.ends]
    return not rows or any(all(row[k] in BLANK or look.fullmatch(row[k]) for k, look in checked) for row in rows)


def is_fixed(lines: Sequence[str]) -> bool:
    """Return whether these lines start a table with columns of fixed width: a line of titles, and one of dashes."""
    return (
        len(lines) > 1
        and re.match(r"(?i)jobid", lines[0]) is not None
        and re.fullmatch(r"-{2,}(?: -+)+ *", lines[1].rstrip("\r")) is not None
    )


def _fixed_fields(
    line: str, heading: Heading, spans: Sequence[tuple[int, int]], used: Mapping[str, str], counts: Counts
) -> list[str] | None:
    """The fields of a line, without the signs of cut values; None if the line does not have these columns."""
    for raw in (line.encode(), line.encode("latin-1", "replace")):  # sacct counts bytes, other programs characters
        if all(raw[last : last + 1] in (b"", b" ") for _, last in spans) and not raw[spans[-1][1] :].strip():
            fields = [raw[first:last].decode(errors="replace").strip() for first, last in spans]
            break
    else:
        return None
    is_cut = False
    for k, (name, (first, last)) in enumerate(zip(heading.fields, spans, strict=True)):
        text = fields[k]
        if name not in used or not text.endswith("+") or len(text) < last - first:
            continue
        is_cut = True
        if used[name] in ("spent", "limit"):
            match = _CUT_TIME.fullmatch(text)
            fields[k] = text if match is None else f"{match[1]}:00" if ":" in match[1] else f"{match[1]}:00:00"
        elif name in ("jobid", "jobidraw"):
            tasks = _CUT_TASKS.fullmatch(text)
            number, point, _ = text.partition(".")
            fields[k] = f"{number}.0" if point else f"{tasks[1]}[]" if tasks else text.replace("+", "?")
        elif used[name] == "text":
            fields[k] = text[:-1]
    counts.add(CUT_TEXT, int(is_cut and "." not in fields[0]))
    return fields


def _fixed_rows(
    file: LogFile, first: str, lines: Iterator[tuple[int, str]], used: Mapping[str, str], bad: BadLines, counts: Counts
) -> Iterator[tuple[Heading, Rows]]:
    """Yield the heading and the rows of a file with columns of fixed width, in blocks."""
    dashes = next(lines, (2, ""))[1]
    spans = [match.span() for match in re.finditer("-+", dashes)]
    titles = tuple(first.encode()[begin:end].decode(errors="replace").strip() for begin, end in spans)
    heading = Heading(tuple(title.lower() for title in titles), titles, "|", False)
    yield heading, Rows()
    rows = Rows()
    for number, line in lines:
        if line in (first, dashes):
            continue  # the heading is repeated where files were concatenated
        fields = _fixed_fields(line, heading, spans, used, counts)
        if fields is None:
            bad.add(number, "the columns differ from the heading", line)
            continue
        rows.add(number, "", fields)
        if len(rows.texts) >= ROWS_AT_ONCE:
            yield heading, rows
            rows = Rows()
    yield heading, rows


def rows_of(file: LogFile, used: Mapping[str, str], bad: BadLines, counts: Counts) -> Iterator[tuple[Heading, Rows]]:
    """Yield the heading and the rows of a file, in blocks. `used`: the kinds of the fields that are read, as in `_LOOKS`."""
    lines = text_lines(file, counts)
    number, first = next(lines, (1, ""))
    if is_fixed(file.head[:10_000].decode("utf-8-sig", "replace").lstrip().split("\n", 2)[:2]):
        yield from _fixed_rows(file, first, lines, used, bad, counts)
        return
    heading = heading_of(first)
    if heading is None:
        raise LogError(f"{file.where}:{number}: the heading of sacct -P is missing; see walltime slurm sacct-command")
    rows = Rows()
    for number, line in _joined(lines, heading, counts):
        if line == first:
            continue  # the heading is repeated where files were concatenated
        text = line.removesuffix(heading.delimiter) if heading.ends else line
        count, wanted = text.count(heading.delimiter) + 1, len(heading.fields)
        fields = None
        if count != wanted:
            fields = _fields_around_texts(text.split(heading.delimiter), heading, used) if count > wanted else None
            if fields is None:
                reason = f"{count} {'field' if count == 1 else 'fields'} instead of {wanted}"
                if count > wanted and heading.free:
                    reason += (
                        ", and a text that contains the separator has no certain end; print free texts last, as walltime slurm"
                        " sacct-command does"
                    )
                bad.add(number, reason, line)
                continue
            counts.add(DELIMITER_IN_TEXT, 1)
        rows.add(number, text if fields is None else "", fields)
        if len(rows.texts) >= ROWS_AT_ONCE:
            yield heading, rows
            rows = Rows()
    yield heading, rows


def _joined(lines: Iterator[tuple[int, str]], heading: Heading, counts: Counts) -> Iterator[tuple[int, str]]:
    """Yield the lines, joined where a free text contains a line end, with the number of the first one."""
    waiting: tuple[int, str] | None = None
    several = False
    for number, text in lines:
        if waiting is not None and _continues(waiting[1], text, heading):
            waiting = (waiting[0], f"{waiting[1]}\n{text}")
            counts.add(NEWLINE_IN_TEXT, 0 if several else 1)
            several = True
            continue
        if waiting is not None:
            yield waiting
        waiting, several = (number, text), False
    if waiting is not None:
        yield waiting


def _continues(before: str, text: str, heading: Heading) -> bool:
    """Whether a line continues a free text of the line before it: it does not start a record, and has the missing fields."""
    wanted = len(heading.fields) - 1 + heading.ends
    missing = wanted - before.count(heading.delimiter)
    here = text.count(heading.delimiter)
    if here >= wanted or here > missing or missing < 0 or not heading.free:
        return False
    if heading.fields[0] in ("jobid", "jobidraw") and here and _RECORD.fullmatch(text.split(heading.delimiter, 1)[0]):
        return False
    return wanted - missing in heading.free


def _fields_around_texts(pieces: list[str], heading: Heading, used: Mapping[str, str]) -> list[str] | None:
    """The fields of a line with separators in free texts; None if a field in `used` is uncertain. Uncertain texts are empty."""
    free, wanted = heading.free, len(heading.fields)
    if not free:
        return None
    fields = [""] * wanted
    fields[: free[0]] = pieces[: free[0]]
    tail = wanted - 1 - free[-1]
    if tail:
        fields[free[-1] + 1 :] = pieces[-tail:]
    texts = pieces[free[0] : len(pieces) - tail]
    extra = len(pieces) - wanted
    spans: list[list[int]] = [[free[0]]]
    runs: list[list[int]] = []
    for before, after in pairwise(free):
        run = list(range(before + 1, after))
        if any(heading.fields[k] in used for k in run):
            runs.append(run)
            spans.append([])
        else:
            spans[-1].extend(run)
        spans[-1].append(after)
    place = 0
    for span, run in zip_longest(spans, runs, fillvalue=list[int]()):
        if not run:  # the last texts: the rest
            moved = len(texts) - place - len(span)
        else:
            looks = [_LOOKS[used.get(heading.fields[k], "text")] for k in run]
            begins = (place + len(span) + more for more in range(extra + 1))
            fits = [
                begin - place - len(span)
                for begin in begins
                if begin + len(run) <= len(texts) and all(look(texts[begin + j]) for j, look in enumerate(looks))
            ]
            if len(fits) != 1:
                return None
            moved = fits[0]
        if moved < 0:
            return None
        size = len(span) + moved
        if not moved:
            for k, text in zip(span, texts[place : place + size], strict=True):
                fields[k] = text
        elif len(span) == 1:
            fields[span[0]] = heading.delimiter.join(texts[place : place + size])
        place += size
        extra -= moved
        for k in run:
            fields[k] = texts[place]
            place += 1
    return fields


def _is(pattern: re.Pattern[str], words: Sequence[str], text: str) -> bool:
    return text in words or pattern.fullmatch(text) is not None


_LOOKS: Mapping[str, Callable[[str], bool]] = {
    "time": partial(_is, _TIME, BLANK),
    "whole": partial(_is, _WHOLE, BLANK),
    "minutes": partial(_is, _WHOLE, (*BLANK, *NO_LIMITS)),
    "spent": partial(_is, _SPENT, BLANK),
    "limit": partial(_is, _SPENT, (*BLANK, *NO_LIMITS)),
    "state": lambda text: state_word(text) is not None,
    "text": lambda text: True,
}
"""Tests of the values of each kind of field."""
