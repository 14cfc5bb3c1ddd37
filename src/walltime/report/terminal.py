"""Print parts of pages on a terminal: tables that fit its width, names with values, and paragraphs."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from walltime.tables import Facts, Table

if TYPE_CHECKING:
    from rich.console import Console

    from walltime.report.page import Part

WIDTH = 140
"""Width of an output that is not a terminal, characters."""
BETWEEN = 3
"""Space between two columns of a table, characters."""
LONGEST_WORD = 12
"""Longer words in a column of text may be broken on a narrow terminal."""
_HARD_SPACE = "\N{NO-BREAK SPACE}"
_WITHIN = re.compile(r"(?<=\d) (?=(?:d|h|min|s|%)(?!\w))|(?<=\d [dh]) (?=\d)|(?<=\d min) (?=\d)")
"""Spaces within a quantity, such as 4 h 53 min, at which a line must not be wrapped."""


def console() -> Console:
    """Return a console for standard output with the width of the terminal or of `COLUMNS`, otherwise `WIDTH`."""
    from rich.console import Console

    class Output(Console):
        """A console that raises BrokenPipeError for a closed pipe, which the command handles."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if _has_width() else WIDTH, highlight=False)


def print_blocks(blocks: Iterable[Part]) -> None:
    """Print parts of pages, with empty lines around tables and facts, and before a line that ends with a colon, such as `Notes:`."""
    last: Part = ""
    for block in blocks:
        heading = isinstance(block, str) and block.endswith(":")
        if last and (heading or any(isinstance(one, Table | Facts) for one in (last, block))):
            print_text("")
        print_block(block)
        last = block


def print_block(block: Part) -> None:
    """Print a part of a page; figures and charts are omitted."""
    from walltime.report import page

    match block:
        case str():
            print_text(block)
        case Facts():
            _print_facts(block)
        case Table():
            _print_table(block)
            if block.note:
                print_text(block.note.replace("Small print:", "In parentheses:"))
        case page.Paragraph():
            print_text(block.text)
        case page.Items():
            for item in block.items:
                print_text(item, "* ")
        case page.Code():
            print(block.text)
        case page.Fold() | page.Group():
            print_blocks(block.blocks)


def print_text(text: str, begin: str = "") -> None:
    """Print a paragraph, wrapped to the width of the terminal; if the output is not a terminal, on one line.

    `begin`: a prefix of the first line, such as `* `; the other lines are indented to its width.
    """
    if _has_width():
        lines = _filled(text, max(console().width - len(begin), 20))
        print(begin + f"\n{' ' * len(begin)}".join(lines))
    else:
        print(begin + text)


def _filled(text: str, width: int) -> list[str]:
    """Wrap a text to lines of at most `width` characters, but not within a quantity such as 4 h 53 min."""
    lines = textwrap.wrap(_WITHIN.sub(_HARD_SPACE, text), width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_HARD_SPACE, " ") for line in lines]


def _has_width() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def _print_table(table: Table) -> None:
    """Print a table; the first column keeps its width unless its cells are wrapped, no cell is cut off, and empty columns are omitted.

    On a narrow terminal, heads and columns of text are wrapped. Columns that still do not fit are printed below, in
    additional blocks that repeat the columns with the names of the rows.
    """
    from rich import box
    from rich.table import Table as Lines
    from rich.text import Text

    out = console()
    room = out.width
    cells = [[_printable(cell.words) for cell in row] for row in table.cells]
    shown = [k for k in range(len(table.columns)) if not k or not cells or any(row[k] for row in cells)]
    heads = [table.heads[k].name.replace("\xad", "") for k in shown]
    rows = [[row[k] for k in shown] for row in cells]
    wrapped = [any(row[k].look == "wrap" for row in table.cells) for k in shown]
    columns = [[row[k] for row in rows] for k in range(len(shown))]
    text = [
        wrap or (table.is_text(k) and not (table.texts < 0 and all(cell.replace(",", "").isdecimal() for cell in column)))
        for k, column, wrap in zip(shown, columns, wrapped, strict=True)
    ]
    widths = [max(map(_width, [head, *column])) for head, column in zip(heads, columns, strict=True)]
    narrowest = [max(map(_width, column), default=1) for column in columns]
    longest_word = max(room - narrowest[0] - BETWEEN, LONGEST_WORD)
    for k, (head, column) in enumerate(zip(heads, columns, strict=True)):
        if wrapped[k] or (k and text[k] and table.texts < 0):
            narrowest[k] = min(max((_width(cell, words=True) for cell in column), default=1), longest_word)
        narrowest[k] = max(narrowest[k], _width(head, words=True))
    most = room - BETWEEN - max(narrowest[1:], default=0)
    if narrowest[0] > most:  # the first column leaves no room for another
        for row in rows:
            row[0] = at_commas(row[0], most)
        widths[0] = narrowest[0] = max([_width(heads[0], words=True), *(_width(row[0]) for row in rows)])
    if table.title:
        out.print(Text("\n".join(_filled(_printable(table.title), out.width)), style="bold"))
    for number, block in enumerate(columns_of_blocks(narrowest, room, max(table.texts, 1))):
        if number:
            out.print()
        lines = Lines(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        gaps = BETWEEN * (len(block) - 1)
        fitted = fit([widths[k] for k in block], [narrowest[k] for k in block], room - gaps)
        for k, width in zip(block, fitted, strict=True):
            lines.add_column(Text(heads[k]), justify="left" if text[k] else "right", overflow="fold", width=width)
        for row in rows:
            lines.add_row(*(Text(row[k]) for k in block))
        out.width = max(out.width, sum(fitted) + gaps)
        out.print(lines)


def _print_facts(facts: Facts) -> None:
    """Print names, values and remarks; names, and values with remarks, are not wrapped."""
    from rich.table import Table as Lines
    from rich.text import Text

    out = console()
    rows = [[_printable(text) for text in (*row, "", "")][:3] for row in facts.rows]
    widths = [max((_width(row[k]) for row in rows), default=0) for k in range(3)]
    narrowest = [widths[0], max((_width(row[1], words=True) for row in rows), default=0), min(widths[2], LONGEST_WORD)]
    count = 3 if widths[2] else 2
    fitted = fit(widths, narrowest, out.width - 2 * 2)[:count]
    if facts.title:
        out.print(Text("\n".join(_filled(_printable(facts.title), out.width)), style="bold"))
    lines = Lines(box=None, show_header=False, pad_edge=False)
    for k, width in enumerate(fitted):
        lines.add_column(overflow="fold", justify="right" if k == 1 and count == 3 else "left", width=width)
    for row in rows:
        lines.add_row(*(Text("\n".join(_filled(text, width))) for text, width in zip(row, fitted, strict=False)))
    out.width = max(out.width, sum(fitted) + 2 * 2)
    out.print(lines)


def fit(widths: Sequence[int], narrowest: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns after reducing the widest ones until all fit into the room or have their narrowest width.

    >>> fit([10, 40, 20], [10, 5, 5], 45), fit([10, 8], [10, 8], 5)
    ([10, 17, 18], [10, 8])
    """
    fitted = list(widths)
    while sum(fitted) > room:
        reducible = [k for k in range(len(fitted)) if fitted[k] > narrowest[k]]
        if not reducible:
            break
        fitted[max(reducible, key=lambda k: fitted[k])] -= 1
    return fitted


def at_commas(name: str, width: int) -> str:
    """Wrap a name to lines of at most `width` characters after commas, colons and spaces, where possible.

    >>> at_commas("tang13:key=user,statistic=p70,window=2", 20).splitlines()
    ['tang13:key=user,', 'statistic=p70,', 'window=2']
    """
    lines = [""]
    for part in re.split(r"(?<=[, ])|(?<=:)(?!\d)", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
            part = part.lstrip()
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def columns_of_blocks(widths: Sequence[int], room: int, names: int = 1) -> list[list[int]]:
    """Return the columns of each block of a table: the first columns, which name the rows, and as many others as fit, at least one.

    `names`: number of columns that begin every block if they leave room for another; otherwise only the first one does.

    >>> columns_of_blocks([10, 8, 8, 8], 43), columns_of_blocks([10, 8, 8, 8], 33), columns_of_blocks([10, 50], 30)
    ([[0, 1, 2, 3]], [[0, 1, 2], [0, 3]], [[0, 1]])
    >>> columns_of_blocks([10, 8, 8, 8], 33, names=2)
    [[0, 1, 2], [0, 1, 3]]
    """
    first = sum(widths[:names]) + BETWEEN * (names - 1)
    if names > 1 and first + BETWEEN + max(widths[names:], default=0) > room:
        return columns_of_blocks(widths, room)
    named = list(range(names))
    blocks, left = [[*named]], room - first
    for k, width in enumerate(widths[names:], start=names):
        if width + BETWEEN > left and len(blocks[-1]) > names:
            blocks.append([*named])
            left = room - first
        blocks[-1].append(k)
        left -= width + BETWEEN
    return blocks


def _width(text: str, words: bool = False) -> int:
    """Return the width of the longest line of a text or, with `words`, of its longest word, in terminal columns."""
    from rich.cells import cell_len

    return max(map(cell_len, text.split() if words else text.split("\n")), default=0)


def _printable(text: str) -> str:
    """Return the text with control characters escaped, because names from a log may contain them."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
