"""Render pages as PDF, one or two A4 sheets with answer, numbers, figure, caveats and the first tables, and as the text of an e-mail."""

import io
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from walltime.report.figures import INK, style
from walltime.report.page import Block, Drawing, Fold, Group, Heading, Items, Page, Paragraph, first_screen
from walltime.tables import Table
from walltime.wording import counted

WIDTH, HEIGHT = 595.0, 842.0
"""Size of an A4 sheet, points."""
MARGIN = 50.0
INNER = WIDTH - 2 * MARGIN
SOFT = "#555B66"
LEADING = 1.42
PICTURE_DPI = 220
LARGEST_PICTURE = 270.0
CAVEATS = 5
"""Largest number of caveats on the first sheet."""
MOST_ROWS = 14
MAIL_WIDTH = 78


def pdf_bytes(page: Page) -> bytes:
    """Return the page as a PDF of one or two sheets; equal pages give equal bytes."""
    page = first_screen(page)
    sink = io.BytesIO()
    with style(), PdfPages(sink, metadata={"Title": page.title, "Creator": "walltime", "Producer": None, "CreationDate": None}) as pages:
        side = _Side()
        _first(side, page)
        full = False
        for block in _tables(page):
            if not _put(side, block):
                if full:
                    break
                pages.savefig(side.figure)
                side, full = _Side(), True
                _put(side, block)
        side.foot(page)
        pages.savefig(side.figure)
    return sink.getvalue()


def mail_text(page: Page, last_line: str) -> str:
    """Return an e-mail with the answer, the numbers and the first caveats of a page; `last_line`: where to find the page."""
    lines = [f"Subject: {page.title}", ""]
    lines += [line for sentence in page.answer for line in [*textwrap.wrap(sentence, MAIL_WIDTH), ""]]
    lines += [f"  {what}: {value}" for what, value in page.numbers]
    lines += [""] if page.numbers else []
    for caveat in page.caveats[:2]:
        lines += textwrap.wrap(f"Note: {caveat}", MAIL_WIDTH)
    lines += [*_further(page, 2), *([""] if page.caveats else [])]
    lines.append(last_line)
    return "\n".join(lines) + "\n"


class _Side:
    """A sheet that is filled from the top."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        FigureCanvasAgg(self.figure)
        self.top = MARGIN

    @property
    def left(self) -> float:
        """Return the free height above the footer, points."""
        return HEIGHT - MARGIN - 20 - self.top

    def text(self, words: str, size: float, color: str = INK, weight: str = "normal", at: float = MARGIN, align: str = "left") -> None:
        """Add a line at the current height."""
        place = (at / WIDTH, 1 - (self.top + size) / HEIGHT)
        self.figure.text(*place, words, fontsize=size, color=color, fontweight=weight, ha=align, parse_math=False)

    def paragraph(self, words: str, size: float, color: str = INK, weight: str = "normal") -> None:
        """Add a paragraph, wrapped to the width of the sheet."""
        for line in _broken(words, size, weight, INNER):
            self.text(line, size, color, weight, MARGIN)
            self.top += size * LEADING

    def foot(self, page: Page) -> None:
        """Add a footer with the command that produces the page."""
        command = page.repetition
        line = f"walltime{f': {command}' if command else ''}"
        self.top = HEIGHT - MARGIN - 4
        self.text(next(_broken(line, 6.5, "normal", INNER), ""), 6.5, SOFT)


def _first(side: _Side, page: Page) -> None:
    """Add title, answer, numbers, picture and caveats."""
    side.text(page.kind, 8, SOFT)
    side.top += 15
    side.paragraph(page.title, 17, weight="bold")
    side.top += 5
    for sentence in page.answer:
        side.paragraph(sentence, 11.5)
        side.top += 5
    if page.numbers:
        side.top += 5
        width = INNER / len(page.numbers) - 8
        sizes = (14.0, 11.0, 9.0)
        size = next((size for size in sizes if all(_width(value, size, "bold") <= width for _, value in page.numbers)), 7.5)
        for k, (what, value) in enumerate(page.numbers):
            at = MARGIN + k * INNER / len(page.numbers)
            side.text(next(_broken(what, 7.5, "normal", width)), 7.5, SOFT, at=at)
            side.top += 13
            side.text(value, size, weight="bold", at=at)
            side.top -= 13
        side.top += 38
    if page.picture is not None:
        _picture(side, page.picture)
    for caveat in page.caveats[:CAVEATS]:
        side.paragraph(f"• {caveat}", 8.5, SOFT)
        side.top += 2
    for sentence in _further(page, CAVEATS):
        side.paragraph(sentence, 8.5, SOFT)
    side.top += 8


def _further(page: Page, shown: int) -> list[str]:
    """Return a sentence, in a list, on the number of additional caveats; an empty list if all are shown."""
    more = len(page.caveats) - shown
    return [f"{more} further caveat{' is' if more == 1 else 's are'} on the HTML page."] if more > 0 else []


def _picture(side: _Side, drawing: Drawing) -> None:
    buffer = io.BytesIO()
    drawing.figure.savefig(buffer, format="rgba", dpi=PICTURE_DPI, facecolor="white")
    across, down = (round(inches * PICTURE_DPI) for inches in drawing.figure.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), np.uint8).reshape(-1, int(across), 4)
    height = min(INNER * down / across, LARGEST_PICTURE)
    width = height * across / down
    axes = side.figure.add_axes((MARGIN / WIDTH, 1 - (side.top + height) / HEIGHT, width / WIDTH, height / HEIGHT))
    axes.imshow(pixels, aspect="auto", interpolation="none")
    axes.axis("off")
    side.top += height + 4
    if drawing.caption:
        side.paragraph(drawing.caption, 8, SOFT)
    side.top += 6


def _tables(page: Page) -> Iterator[Block]:
    """Yield the headings, tables and texts of the sections."""
    for section in page.sections:
        inside = [block for block in _flat(section.blocks) if isinstance(block, Table | Paragraph | Items)]
        if inside and section.shown != "only-live":
            if section.title:
                yield Heading(section.title)
            yield from inside


def _flat(blocks: Sequence[Block | None]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Group):
            yield from _flat(block.blocks)
        elif block is not None and not isinstance(block, Fold):
            yield block


def _put(side: _Side, block: Block) -> bool:
    """Add a block if there is room; return whether it was added."""
    match block:
        case Heading():
            if side.left < 160:
                return False
            side.top += 6
            side.paragraph(block.text, 11, weight="bold")
        case Paragraph():
            return _put_text(side, [block.text], SOFT if block.look == "note" else INK)
        case Items():
            return _put_text(side, [f"• {item}" for item in block.items], INK)
        case Table():
            return _put_table(side, block)
    return True


def _put_text(side: _Side, texts: Sequence[str], color: str) -> bool:
    lines = [line for text in texts for line in _broken(text, 8.5, "normal", INNER)]
    if len(lines) * 8.5 * LEADING > side.left:
        return False
    for text in texts:
        side.paragraph(text, 8.5, color)
    side.top += 4
    return True


def _put_table(side: _Side, table: Table) -> bool:
    """Add a table in small print if there is room; rows and columns that do not fit are omitted, with a note."""
    size, gap = 7.5, 9.0
    line = size * 1.5
    rows = [[cell.words for cell in row] for row in table.cells[:MOST_ROWS]]
    if (len(rows) + 3) * line > side.left:
        return False
    heads = [column.name for column in table.heads]
    widths = []
    for k, head in enumerate(heads):
        widest = max([_width(head, size, "bold"), *(_width(row[k], size, "normal") for row in rows)])
        widths.append(min(widest, INNER * 0.4))
    shown = next((k for k in range(len(widths), 0, -1) if sum(widths[:k]) + gap * (k - 1) <= INNER), 1)
    texts = len(heads) if table.texts < 0 else table.texts
    for words, weight in [(heads, "bold"), *((row, "normal") for row in rows)]:
        at = MARGIN
        for k in range(shown):
            right = k >= texts
            text = next(_broken(words[k], size, weight, widths[k] + 0.5), "")
            side.text(text, size, weight=weight, at=at + widths[k] if right else at, align="right" if right else "left")
            at += widths[k] + gap
        side.top += line
    left = [counted(len(table.rows) - len(rows), "row") if len(table.rows) > len(rows) else "", "" if shown == len(heads) else "columns"]
    if any(left):
        side.paragraph(f"Further {' and '.join(filter(None, left))} are on the HTML page.", 7, SOFT)
    side.top += 8
    return True


def _broken(words: str, size: float, weight: str, width: float) -> Iterator[str]:
    """Wrap a text into lines of at most `width` points."""
    line = ""
    for word in words.split():
        longer = f"{line} {word}" if line else word
        if line and _width(longer, size, weight) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _width(words: str, size: float, weight: str) -> float:
    return size * sum(_of_letter(letter, weight) for letter in words)


@cache
def _of_letter(letter: str, weight: str) -> float:
    """Return the width of a character at a font size of one point."""
    path = TextPath((0, 0), f"{letter}|", size=100, prop=FontProperties(weight=weight), usetex=False)  # a space alone has no outline
    bar = TextPath((0, 0), "|", size=100, prop=FontProperties(weight=weight), usetex=False)
    return float(path.get_extents().x1 - bar.get_extents().x1) / 100
