"""Represent tables, and write them for notebooks and as CSV, JSON, Markdown and LaTeX; pages and terminals render the same objects.

>>> table = Table(["policy", "mean wait"], [["EASY", Cell("1 h 00 min", value=3600.0)]], "Waits")
>>> print(table.csv(), end="")
policy,mean wait
EASY,3600.0
"""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from walltime.errors import OutputError
from walltime.files import whole_file
from walltime.wording import UNDEFINED, hours, human_difference, human_time, printable, time_form

LONG = 40
"""LaTeX tables with more rows are split over several pages."""
MINUS = re.compile(r"(?<![\w.:-])-(?=[\d.])")
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "†": r"\dag{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "\xad": "", "\xa0": "~"}
)


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and its value and style.

    `small`: additional lines in small print. `exact`: the number with all digits, if the text is rounded. `value`: the number or text for
    sorting and files, by default the text. `look`: style on pages: word, wrap (several lines), long, base, clear, code, best, change (may
    break after punctuation), ... `of`: a key that compared cells share, and the index of the policy. `job`: the number of a job
    that the page explains elsewhere. `shares`: named parts of a bar, percent. `link`: the address of another page.
    """

    text: str
    small: Sequence[str] = ()
    exact: str = ""
    value: float | str | None = None
    look: str = ""
    of: tuple[str, int] | None = None
    job: int | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    link: str = ""

    @property
    def words(self) -> str:
        """Return the text with its small print, on one line."""
        return f"{self.text} ({', '.join(self.small)})" if self.small else self.text


@dataclass(frozen=True)
class Column:
    """The head of a column; `policy`: the index of its policy; `swatch`: the kind of start whose colour it shows."""

    name: str
    policy: int | None = None
    swatch: str = ""


Row = Sequence[Any]
"""Cells or texts."""


@dataclass(frozen=True)
class Table:
    """A table with a title and a note; texts in `columns` and `rows` become columns and cells."""

    columns: Sequence[str | Column]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    texts: int = 1
    """number of leading columns that contain text, while the others contain numbers; -1 if all contain text"""
    look: str = ""
    """style on pages: months (no line breaks in the first column), overview, sure, ..."""
    row_policies: Sequence[int] = ()
    """the index of the policy of each row"""

    @property
    def heads(self) -> list[Column]:
        """Return the columns as `Column` objects."""
        return [column if isinstance(column, Column) else Column(column) for column in self.columns]

    @property
    def cells(self) -> list[list[Cell]]:
        """Return the rows as cells; times in a column have one format, and compared cells show the difference from the first policy."""
        cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]
        for k in range(len(self.columns)):
            times = [(row, seconds) for row in cells if (seconds := _seconds(row[k])) is not None]
            show = time_form([seconds for _, seconds in times])
            for row, seconds in times:
                row[k] = replace(row[k], text=show(seconds))
        base = {cell.of[0]: cell.value for row in cells for cell in row if cell.of is not None and cell.of[1] == 0}
        return [[_compared(cell, base) for cell in row] for row in cells]

    def column(self, k: int) -> list[str]:
        """Return the texts of a column."""
        return [row[k].text for row in self.cells]

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row; columns with equal names are numbered."""
        names = [head.name for head in self.heads]
        names = [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in self.cells]

    def json(self) -> str:
        """Return the title and the records as JSON."""
        return json.dumps({"title": self.title, "rows": self.records()}, indent=2, ensure_ascii=False) + "\n"

    def csv(self) -> str:
        """Return the table as CSV, with unrounded numbers where they are known."""
        sink = io.StringIO()
        csv.writer(sink, lineterminator="\n").writerows([[head.name for head in self.heads], *([*map(_plain, row)] for row in self.cells)])
        return sink.getvalue()

    def markdown(self) -> str:
        """Return the table as Markdown, with the title above it."""

        def line(words: Sequence[str]) -> str:
            return "| " + " | ".join(" ".join(word.replace("|", r"\|").split()) for word in words) + " |\n"

        rules = [":--" if self.is_text(k) else "--:" for k in range(len(self.columns))]
        title = f"**{self.title}**\n\n" if self.title else ""
        rows = "".join(line([cell.words for cell in row]) for row in self.cells)
        return title + line([head.name for head in self.heads]) + line(rules) + rows

    def latex(self) -> str:
        """Return the table for the LaTeX package booktabs; with more than 40 rows, it also needs the package longtable."""

        def line(words: Sequence[str]) -> str:
            return " & ".join(MINUS.sub("$-$", " ".join(word.split()).translate(LATEX)) for word in words) + " \\\\\n"

        kinds = "".join("l" if self.is_text(k) else "r" for k in range(len(self.columns)))
        caption = f"\\caption{{{self.title.translate(LATEX)}}}\n" if self.title else ""
        rows = "".join(line([cell.words for cell in row]) for row in self.cells)
        head = line([head.name for head in self.heads])
        if len(self.rows) > LONG:
            above = f"{caption.rstrip()}\\\\\n" if caption else ""
            repeated = f"\\toprule\n{head}\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n"
            return f"\\begin{{longtable}}{{{kinds}}}\n{above}{repeated}{rows}\\end{{longtable}}\n"
        inside = f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n{head}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n"
        return f"\\begin{{table}}\n\\centering\n{caption}{inside}\\end{{table}}\n"

    def write(self, path: str | Path) -> Path:
        """Write the table as .tex (booktabs), .md, .csv or .json, atomically; returns the path. Raises OutputError."""
        return write_tables(path, [self])

    def without(self, *names: str) -> Self:
        """Return the table without these columns, and without its note."""
        kept = [k for k, head in enumerate(self.heads) if head.name not in names]
        rows = [[row[k] for k in kept] for row in self.rows]
        return replace(self, columns=[self.columns[k] for k in kept], rows=rows, note="")

    def without_unknown(self) -> Self:
        """Return the table without the columns in which all cells are undefined."""
        cells = self.cells
        kept = [k for k in range(len(self.columns)) if any(row[k].text != UNDEFINED for row in cells) or not cells]
        return replace(self, columns=[self.columns[k] for k in kept], rows=[[row[k] for k in kept] for row in self.rows])

    def is_text(self, k: int) -> bool:
        """Return whether a column contains text."""
        return self.texts < 0 or k < self.texts

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks, which follows their light or dark mode."""
        sides = ["left" if self.is_text(k) else "right" for k in range(len(self.columns))]
        top = "".join(_element("th", head.name, side) for head, side in zip(self.heads, sides, strict=True))
        lines = ["".join(_element("td", cell.words, side) for cell, side in zip(row, sides, strict=True)) for row in self.cells]
        return _notebook(self.title, [top, *lines], self.note)


@dataclass(frozen=True)
class Facts:
    """Names with values and, on the terminal, remarks; values without remarks may be texts of several lines."""

    title: str
    rows: Sequence[tuple[str, ...]]
    note: str = ""

    def table(self) -> Table:
        """Return the facts as a table with column heads, for files."""
        count = max(map(len, self.rows), default=2)
        rows = [[*row, *[""] * (count - len(row))] for row in self.rows]
        return Table(["", "value", "remark"][:count], rows, self.title, texts=-1 if count < 3 else 1)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks.

        >>> Facts("EASY", [("mean wait", "1 h")])._repr_html_().count("<tr>")
        1
        """
        return _notebook(self.title, [_element("th", row[0], "left") + _element("td", row[1], "right") for row in self.rows], self.note)


def time_cell(seconds: float | None) -> Cell:
    """Return a cell with a time, s, which is undefined for None; a table shows all times of a column in one format."""
    value = math.nan if seconds is None else seconds
    return Cell(human_time(value), value=value)


def hours_cell(value: float) -> Cell:
    """Return a cell with processor-hours."""
    return Cell(hours(value), value=None if math.isnan(value) else value)


ENERGY = (("kWh", 1, ",.1f"), ("cost", 1, ",.2f"), ("CO2, kg", 1000, ",.1f"))
"""Head, divisor and format of the columns on energy."""


def energy_cells(
    values: Sequence[tuple[float, float, float]],
    today: tuple[float, float, float] | None = None,
    spans: Sequence[Sequence[tuple[float, float]]] = (),
) -> tuple[list[str], list[list[Cell]]]:
    """Return the column heads and cells for energy (kWh), its cost, and CO2 (g), without columns that are nan in all rows.

    `today`: values from which differences are shown in small print. `spans`: for each row, the intervals of these differences, nan if
    unknown.
    """
    shown = [k for k in range(len(ENERGY)) if k == 0 or not all(math.isnan(row[k]) for row in values)]
    rows = []
    for at, row in enumerate(values):
        cells = []
        for k in shown:
            _, divisor, form = ENERGY[k]
            of = row[k] / divisor
            small = [] if today is None or math.isnan(of - today[k]) else [_signed(of - today[k] / divisor, form)]
            if small and spans and not math.isnan(spans[at][k][0]):
                small.append(" to ".join(_signed(end / divisor, form) for end in spans[at][k]))
            cells.append(Cell(UNDEFINED) if math.isnan(of) else Cell(format(of, form), small, value=of))
        rows.append(cells)
    return [ENERGY[k][0] for k in shown], rows


def _signed(difference: float, form: str) -> str:
    text = format(difference, f"+{form}")
    return text if re.search("[1-9]", text) else "±0"


def _seconds(cell: Cell) -> float | None:
    """Return the time that a cell shows, s, or None if it does not show a time."""
    return cell.value if isinstance(cell.value, int | float) and cell.text == human_time(cell.value) else None


def _compared(cell: Cell, base: Mapping[str, Any]) -> Cell:
    before = base.get(cell.of[0]) if cell.of is not None and cell.of[1] else None
    if not before or not isinstance(before, int | float) or not isinstance(cell.value, int | float):
        return cell
    difference = human_difference(100 * (cell.value - before) / before)
    return replace(cell, small=[*cell.small, difference]) if difference else cell


def _plain(cell: Cell) -> float | str:
    if isinstance(cell.value, float) and not math.isfinite(cell.value):
        return ""
    return cell.words if cell.value is None else cell.value


def _element(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="text-align: {side}">{html.escape(text)}</{tag}>'


def _notebook(title: str, lines: Sequence[str], note: str) -> str:
    caption = f'<caption style="text-align: left; font-weight: bold">{html.escape(title)}</caption>'
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>{caption}<tbody>{body}</tbody></table>" + (f"<p>{html.escape(note)}</p>" if note else "")


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": Table.csv, "markdown": Table.markdown, "latex": Table.latex, "json": Table.json}
"""Functions that format a table, by the name of the format."""


def number(value: object) -> str:
    """Format a value for a cell: whole numbers with separators, other numbers with four significant digits.

    >>> number(28489), number(6887.38), number(None), number(0.70415)
    ('28,489', '6,887', 'n/a', '0.7042')
    """
    if value is None:
        return "n/a"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


ENDINGS: Mapping[str, str] = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".json": "json"}
"""The format of a file of tables, by its extension."""


def write_tables(path: str | Path, tables: Iterable[Table]) -> Path:
    """Write tables to a file, one after another, in the format of its extension; returns the path.

    Raises OutputError for another extension, or if the file cannot be written.
    """
    file = Path(path)
    form = ENDINGS.get(file.suffix.lower())
    if form is None:
        raise OutputError(f"{printable(file)}: unsupported file extension for tables; use {', '.join(ENDINGS)}", "unknown_file_extension")
    if form == "json":
        text = json.dumps([{"title": table.title, "rows": table.records()} for table in tables], indent=2, ensure_ascii=False) + "\n"
    else:
        text = "\n".join(FORMATS[form](table) for table in tables)
    with whole_file(file) as sink:
        sink.write(text.encode())
    return file
