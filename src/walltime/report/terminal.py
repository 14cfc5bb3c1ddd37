"""The values of pages in a terminal: tables that fit its width, names with values, sentences in lines that end between words."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from walltime.tables import Cell, Facts, Table

if TYPE_CHECKING:
    from rich.console import Console

    from walltime.report.page import Block

WIDTH = 140
"""Letters of a line where the output is no terminal."""
_HARD_SPACE = "\N{NO-BREAK SPACE}"
_WITHIN = re.compile(r"(?<=\d) (?=(?:d|h|min|s|%)(?!\w))|(?<=\d [dh]) (?=\d)|(?<=\d min) (?=\d)")
"""Spaces within a quantity, such as 4 h 53 min, at which no line ends."""


def console() -> Console:
    """Standard output; wide enough for the tables if it is not a terminal."""
    from rich.console import Console

    class Output(Console):
        """A console that leaves the handling of a closed pipe to the command."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def print_block(block: Block | Facts | str) -> None:
    """Print a part of a page; what only a page can show is left out."""
    from walltime.report import page

    match block:
        case str():
            print_text(block)
        case Facts():
            _print_facts(block)
        case Table():
            if block.texts < 0:
                _print_texts(block)
            else:
                _print_numbers(block)
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
            for inside in block.blocks:
                print_block(inside)


def print_text(text: str, begin: str = "") -> None:
    """Print a paragraph: in lines of the terminal's width that end between words, or in one line if it is no terminal.

    `begin`: what it begins with, such as `* `; further lines are indented as far.
    """
    if sys.stdout.isatty():
        width = max(console().width, len(begin) + 20)
        fill = textwrap.TextWrapper(
            width, initial_indent=begin, subsequent_indent=" " * len(begin), break_long_words=False, break_on_hyphens=False
        )
        print(fill.fill(_WITHIN.sub(_HARD_SPACE, text)).replace(_HARD_SPACE, " "))
    else:
        print(begin + text)


def _print_numbers(table: Table) -> None:
    """A table of numbers below each other.

    No number is ever cut: columns for which a line has no room go into further blocks below, which begin with the columns that name the
    rows.
    """
    from rich import box
    from rich.table import Table as Lines
    from rich.text import Text

    out = console()
    heads = [head.name.replace("\xad", "") for head in table.heads]
    rows = [[_visible(cell) for cell in row] for row in table.cells]
    longest = [max((len(line) for row in rows for line in row[k].split("\n")), default=1) for k in range(len(heads))]
    widths = [max(len(head), most) for head, most in zip(heads, longest, strict=True)]
    room = out.width - 2
    names = max(table.texts, 1)
    if len(columns_of_blocks(widths, room, names)) > 1:  # headings take several lines
        widths[1:] = [max(most, *map(len, head.split())) for head, most in zip(heads[1:], longest[1:], strict=True)]
    for number, block in enumerate(columns_of_blocks(widths, room, names)):
        title = Text(_printable(table.title), style="bold") if table.title and not number else None
        lines = Lines(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for k in block:
            if k == 0:
                lines.add_column(Text(heads[0]), justify="left", overflow="fold", width=min(widths[0], room // 2))
            else:
                lines.add_column(Text(heads[k]), justify="left" if table.is_text(k) else "right", width=widths[k])
        for row in rows:
            lines.add_row(*(Text(at_commas(row[k], room // 2) if k == 0 else row[k]) for k in block))
        out.print(lines)


def _print_texts(table: Table) -> None:
    """A table whose columns are text, except those whose cells are numbers."""
    from rich import box
    from rich.table import Table as Lines
    from rich.text import Text

    rows = [[_visible(cell) for cell in row] for row in table.cells]
    lines = Lines(title=Text(_printable(table.title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, head in enumerate(table.heads):
        numbers = all(row[k].replace(",", "").isdecimal() for row in rows)
        lines.add_column(Text(head.name), justify="right" if numbers else "left", overflow="fold", no_wrap=k < len(table.columns) - 1)
    for row in rows:
        lines.add_row(*map(Text, row))
    console().print(lines)


def _print_facts(facts: Facts) -> None:
    """Names, values and remarks."""
    from rich.table import Table as Lines
    from rich.text import Text

    lines = Lines(title=Text(_printable(facts.title), style="bold"), title_justify="left", box=None, show_header=False, pad_edge=False)
    lines.add_column(overflow="fold")
    lines.add_column(justify="right", no_wrap=True)
    lines.add_column(overflow="fold")
    for row in facts.rows:
        lines.add_row(*(Text(_printable(text)) for text in row))
    console().print(lines)


def at_commas(name: str, width: int) -> str:
    """A name in lines of at most this width that end after commas and colons, as far as it has any.

    >>> at_commas("tang13:key=user,statistic=p70,window=2", 20).splitlines()
    ['tang13:key=user,', 'statistic=p70,', 'window=2']
    """
    lines = [""]
    for part in re.split(r"(?<=[,:])", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
            part = part.lstrip()
        lines[-1] += part
    return "\n".join(lines)


def columns_of_blocks(widths: Sequence[int], room: int, names: int = 1, between: int = 3) -> list[list[int]]:
    """The columns of each block of a table: the first ones, which name its rows, and as many others as fit the room, one at least.

    `names`: so many columns are in every block, if they leave room for another, otherwise the first one.

    >>> columns_of_blocks([10, 8, 8, 8], 43), columns_of_blocks([10, 8, 8, 8], 33), columns_of_blocks([10, 50], 30)
    ([[0, 1, 2, 3]], [[0, 1, 2], [0, 3]], [[0, 1]])
    >>> columns_of_blocks([10, 8, 8, 8], 33, names=2)
    [[0, 1, 2], [0, 1, 3]]
    """
    first = sum(widths[:names]) + between * (names - 1)
    if names > 1 and first + between + max(widths[names:], default=0) > room:
        return columns_of_blocks(widths, room, between=between)
    named = list(range(names))
    first = min(first, room // 2) if names == 1 else first
    blocks, left = [[*named]], room - first
    for k, width in enumerate(widths[names:], start=names):
        if width + between > left and len(blocks[-1]) > names:
            blocks.append([*named])
            left = room - first
        blocks[-1].append(k)
        left -= width + between
    return blocks


def _visible(cell: Cell) -> str:
    return _printable(cell.words)


def _printable(text: str) -> str:
    """The text with escapes in place of characters that a terminal would obey; a log's header or name may hold any."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
