"""Read tables of `sacct` with columns of a fixed width, in which long values are truncated and end with a plus sign."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from walltime.errors import LogError
from walltime.logs.reader import ReaderState
from walltime.logs.slurm.rows import CUT_TEXT, MOST_OTHER, OTHER_LINE, Heading, Row
from walltime.wording import shown

_CUT_TIME = re.compile(r"([0-9]+-[0-9][0-9](?::[0-9][0-9])?):?[0-9]?\+")
_CUT_TASKS = re.compile(r"([0-9]+_)(?:\[.*|[0-9]*)\+")


def _fixed_fields(
    line: str, heading: Heading, spans: Sequence[tuple[int, int]], used: Mapping[str, str], state: ReaderState
) -> list[str] | str:
    """Return the fields of a line, with truncated values completed or marked; a reason if the line does not have these columns."""
    for raw in (line.encode(), line.encode("latin-1", "replace")):  # sacct counts bytes, other programs characters
        if all(raw[last : last + 1] in (b"", b" ") for _, last in spans) and not raw[spans[-1][1] :].strip():
            fields = [raw[first:last].decode(errors="replace").strip() for first, last in spans]
            break
    else:
        return "the columns differ from the heading"
    is_cut = False
    for k, (name, (first, last)) in enumerate(zip(heading.fields, spans, strict=True)):
        text = fields[k]
        is_id = name in ("jobid", "jobidraw")
        if name not in used or not text.endswith("+") or (len(text) < last - first and not (is_id and "_" in text)):
            continue
        is_cut = True
        if used[name] in ("spent", "limit"):
            match = _CUT_TIME.fullmatch(text)
            fields[k] = text if match is None else f"{match[1]}:00" if ":" in match[1] else f"{match[1]}:00:00"
        elif is_id:
            tasks = _CUT_TASKS.fullmatch(text)
            number, point, _ = text.partition(".")
            fields[k] = f"{number}.0" if point else f"{tasks[1]}[]" if tasks else text.replace("+", "?")
        elif used[name] == "text":
            fields[k] = text[:-1]
    state.count(CUT_TEXT, int(is_cut and "." not in fields[0]))
    return fields


def found_titles(lines: Sequence[str]) -> int | None:
    """Return the index of the line of titles, which is followed by a line of dashes; None if there is no such table."""
    places = (k for k, line in enumerate(lines[:MOST_OTHER]) if re.match(r"(?i)\s*jobid", line))
    return next((k for k in places if re.fullmatch(r"-{2,}(?: -+)+ *", "".join(lines[k + 1 : k + 2]).rstrip("\r"))), None)


def fixed_rows(state: ReaderState, place: int, used: Mapping[str, str]) -> tuple[Heading, Iterator[Row]]:
    """Return the heading and the rows of a file. `place`: the line of titles. `used`: the kinds of the fields that are read.

    Raises LogError if a title is not above the dashes of one column.
    """
    lines = state.lines()
    *others, (number, first), (_, dashes) = (next(lines) for _ in range(place + 2))
    state.count(OTHER_LINE, len(others))
    spans = [match.span() for match in re.finditer("-+", dashes)]
    for word in re.finditer(rb"[^ \r]+", first.encode()):
        if not any(begin <= word.start() and word.end() <= end for begin, end in spans):
            title, where = shown(word[0].decode(errors="replace")), f"{state.file.where}:{number}"
            remedy = "print the table again, or with sacct -P"
            raise LogError(f"{where}: the title {title} is not above the dashes of one column; {remedy}", "unaligned_titles")
    titles = tuple(first.encode()[begin:end].decode(errors="replace").strip() for begin, end in spans)
    heading = Heading(tuple(title.lower() for title in titles), titles, "|", False)
    rows = ((n, line) for n, line in lines if line not in (first, dashes))  # the heading is repeated where files were concatenated
    return heading, ((n, line, _fixed_fields(line, heading, spans, used, state)) for n, line in rows)
