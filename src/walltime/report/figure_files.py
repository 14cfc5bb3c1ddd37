"""Write figures to files and embed them in pages, in several formats and widths, with reproducible bytes."""

import io
import math
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import FixedLocator

from walltime.declared import valid_options
from walltime.errors import OutputError, PolicyError
from walltime.files import whole_file
from walltime.report.figures import BLUE, INK, columns_of, shortened, style
from walltime.wording import printable

METADATA: Mapping[str, Any] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
"""The supported formats, and the metadata that is removed so that equal figures have equal bytes."""
DPI = 150
SCHEDULE_FIGURES = ("wait", "slowdown", "queue", "utilization", "gantt", "nodes")
"""The figures of schedules that `--figure NAME=FILE` draws."""
SINGLE = ("gantt", "nodes")
"""Figures that show a single schedule."""
WIDTHS = {
    "column": 3.4,
    "page": 7.1,
    "slide": 9.2,
    "ieee-column": 3.5,
    "ieee-page": 7.16,
    "acm-column": 3.33,
    "acm-page": 7.0,
    "elsevier-column": 90 / 25.4,
    "elsevier-page": 190 / 25.4,
    "springer-column": 84 / 25.4,
    "springer-page": 174 / 25.4,
    "lncs": 122 / 25.4,
}
"""Widths of figures, inches: a column of a two-column page, a whole page, a slide, and the formats of common journals and proceedings."""
NARROWEST = 2.4
"""Panels that would be narrower than this, inches, are stacked."""
TAG, NUMBER = re.compile(r"<[^>]*>"), re.compile(r"-?\d+\.\d{3,}")
"""Patterns to round coordinates in the tags of an SVG, but not visible numbers."""
SLIM, LETTERS_PER_INCH, NAME_LETTERS = 4.0, 11, 18
"""Width of a figure on a phone, inches; characters per inch in a legend; longest name next to an axis, characters."""
SLIM_HEIGHT, LOWEST_PANEL, PER_NAME, BESIDE_NAMES = 4.8, 1.1, 0.15, 0.45
"""Heights on a phone, inches: a figure on the first screen, the smallest panel, each name in a panel with names, and the axis there."""
LOWEST = 0.68
"""Smallest ratio of a panel's height to its width."""


def figure_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a figure file from its extension; raises OutputError for an unknown extension.

    >>> figure_format("kth.SVG")
    'svg'
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in METADATA:
        known = ", ".join(f".{kind}" for kind in METADATA)
        raise OutputError(f"{printable(path)}: unsupported file extension for figures; use {known}", "unknown_file_extension")
    return ending


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return the content of a `png`, `svg` or `pdf` file with a white background; equal figures give equal bytes."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, dpi=DPI, facecolor="white", metadata=METADATA[kind])
    return buffer.getvalue()


def write_figure(path: str | os.PathLike[str], figure: Figure, width: str = "") -> Path:
    """Write a figure atomically, with reproducible bytes, and return its path.

    `width`: as in `width_in_inches`; empty to keep the width of the figure. Raises OutputError, and PolicyError for an unknown width.
    """
    if width:
        resize(figure, width_in_inches(width))
    content = figure_bytes(figure, figure_format(path))
    with whole_file(path) as file:
        file.write(content)
    return Path(path)


def resize(figure: Figure, inches: float) -> None:
    """Change the width of a figure; text keeps its size, and panels that would be too narrow are stacked."""
    width, height = figure.get_size_inches()
    placed = [(one, place) for one in figure.axes if (place := one.get_subplotspec()) is not None]
    grid = placed[0][1].get_gridspec() if placed else None
    if grid is not None and grid.ncols > 1 and inches / grid.ncols < NARROWEST:
        for one, _ in placed:
            if not one.get_visible():
                figure.delaxes(one)
        placed = [pair for pair in placed if pair[0].get_visible()]
        column = GridSpec(len(placed), 1, figure=figure)
        for row, (one, _) in enumerate(placed):
            one.set_subplotspec(column[row])
            if _names(one):
                one.tick_params(labelleft=True)  # panels in a row share them
        figure.set_size_inches(inches, LOWEST * inches * len(placed))
    else:
        rows = 1 if grid is None else grid.nrows
        figure.set_size_inches(inches, max(height * inches / width, min(height, LOWEST * inches * rows)))


def slim(figure: Figure) -> Figure:
    """Return a narrow copy of the figure for a phone, with text of the same size.

    Panels are stacked and low enough for the first screen, names lose their common prefix, and there are fewer ticks.
    """
    copy = deepcopy(figure)
    width, height = figure.get_size_inches()
    inches = min(SLIM, width)
    before = _rows_of(copy)
    resize(copy, inches)
    tall = height * _rows_of(copy) / before
    for axes in copy.axes:
        axes.xaxis.label.set(x=1.0, ha="right")
        if len(label := axes.get_ylabel()) > NAME_LETTERS:  # of a low panel
            axes.set_ylabel(label.rpartition(", ")[2])
        ticks = axes.xaxis.get_major_locator()
        if isinstance(ticks, FixedLocator):
            axes.xaxis.set_major_locator(FixedLocator(_thinned([float(tick) for tick in ticks()])))
        if names := _names(axes):
            axes.set_yticks(axes.get_yticks(), [shortened(name, NAME_LETTERS) for name in _without_beginning(names)])
            copy.set_size_inches(inches, tall)
    panels = [len(_names(axes)) for axes in copy.axes if axes.get_visible()]
    lowest = sum(PER_NAME * names + BESIDE_NAMES if names else LOWEST_PANEL for names in panels)
    copy.set_size_inches(inches, min(copy.get_figheight(), max(SLIM_HEIGHT, lowest)))
    for legend in list(copy.legends):
        names = [one.get_text() for one in legend.get_texts()]
        handles, columns = [one for one in legend.legend_handles if one is not None], columns_of(names, SLIM * LETTERS_PER_INCH)
        copy.legends.remove(legend)
        with style():
            copy.legend(handles, names, loc="outside upper right", ncols=columns, borderaxespad=0)
    return copy


def _rows_of(figure: Figure) -> int:
    places = [place for one in figure.axes if (place := one.get_subplotspec()) is not None]
    return places[0].get_gridspec().nrows if places else 1


def _names(axes: Axes) -> list[str]:
    """Return the names of the rows of a panel, visible or not; empty if the rows have no names or numbers."""
    if not isinstance(axes.yaxis.get_major_locator(), FixedLocator):
        return []
    names = axes.yaxis.get_major_formatter().format_ticks(list(axes.get_yticks()))
    return names if any(name[:1].isalpha() for name in names) else []


def _thinned(ticks: list[float], most: int = 4) -> list[float]:
    """Return about `most` of the ticks, including 1 or, if 1 is not a tick, 0."""
    step = max(-(-len(ticks) // most), 1)
    kept = next((k for value in (1, 0) for k, tick in enumerate(ticks) if tick == value), 0)
    return ticks[kept % step :: step]


def _without_beginning(names: list[str]) -> list[str]:
    """Return the names without their common prefix of options.

    >>> _without_beginning(["easy:order=sjf", "easy:order=saf"]), _without_beginning(["easy", "easy:order=saf"])
    (['sjf', 'saf'], ['easy', 'easy:order=saf'])
    """
    first, last = min(names), max(names)
    same = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    common = first[:same] if len(names) > 1 else ""
    end = 1 + max(common.rfind(sign) for sign in ":=,")
    return [name[end:] for name in names]


def to_svg(figure: Figure, prefix: str) -> str:
    """Return a figure as an inline SVG element with reproducible bytes, ids that begin with `prefix`, and text in the page's colour."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", transparent=True, metadata=METADATA["svg"])
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    text = re.sub(r'<svg\b[^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true" focusable="false">', text, count=1)
    text = TAG.sub(lambda tag: NUMBER.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag[0]), text)
    text = text.replace(INK, "currentColor").replace(BLUE.lower(), f"var(--blue, {BLUE})")
    return re.sub(r"\n\s*", "\n", text).strip()


def width_in_inches(width: str | float) -> float:
    """Return a width in inches from a name in `WIDTHS` or a number; raises PolicyError unless it is from 1 to 40 inches.

    >>> width_in_inches("ieee-column"), width_in_inches("3.25")
    (3.5, 3.25)
    """
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width]
    try:
        inches = float(width)
    except ValueError:
        inches = math.nan
    if not 1 <= inches <= 40:
        raise PolicyError(
            f"unknown width {width!r}. Valid options: {', '.join(WIDTHS)}, or a number of inches from 1 to 40", "unknown_width"
        )
    return inches


def width_of(text: str) -> dict[str, float]:
    """Return a width in inches as the keyword argument `width`; an empty text gives no argument, so that the default applies."""
    return {"width": width_in_inches(text)} if text else {}


def complete_figure(incomplete: str) -> list[str]:
    """Return shell completions of --figure: names of figures with an equals sign."""
    return [f"{name}=" for name in SCHEDULE_FIGURES if name.startswith(incomplete)]


def named_file(text: str) -> tuple[str, Path]:
    """Parse a value of --figure: `NAME=FILE`, or a file named after the figure, such as wait.pdf. Raises PolicyError.

    >>> named_file("queue.svg"), named_file("gantt=out/first.png")
    (('queue', PosixPath('queue.svg')), ('gantt', PosixPath('out/first.png')))
    """
    name, equals, file = text.partition("=")
    path = Path(file if equals else text)
    name = name if equals else path.stem
    if name not in SCHEDULE_FIGURES:
        known = valid_options(name, SCHEDULE_FIGURES)
        raise PolicyError(f"unknown figure {name!r}{known}. Write NAME=FILE, or name the file after the figure (wait.pdf)")
    figure_format(path)
    return name, path
