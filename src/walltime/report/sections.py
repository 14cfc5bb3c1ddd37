"""Sections that the pages of campaigns and replications share: figures and tables of many runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from walltime.campaign.comparison import Line
from walltime.report.combinations import swept
from walltime.report.lines import DIFFERENCES, LEVEL, MEANING, metric_table
from walltime.report.measures import measure
from walltime.report.shell import figure
from walltime.report.tables import text

NO_INTERVALS = "Single runs, so there are no intervals."


def figures_section(lines: Sequence[Line]) -> list[str]:
    """Each measure over each swept parameter, or its means with error bars if nothing is swept."""
    from walltime.report.sweeps import MOST_ROWS, intervals_figure, sweep_figure  # matplotlib is slow to load

    metrics = list(dict.fromkeys(line.metric for line in lines))
    single = all(line.interval is None for line in lines)
    intervals = f"{LEVEL} confidence intervals of the means over the replications."
    parts = []
    for over in swept(lines):
        said = over.replace("_", " ")
        drawings, small = [], True
        for name in metrics:
            mine = [line for line in lines if line.metric == name]
            drawn, left_out = sweep_figure(mine, over)
            shown = measure(name)
            panels = len([axes for axes in drawn.axes if axes.get_visible()])
            caption = f"{shown.label[0].upper()}{shown.label[1:]} over the {said}. "
            caption += NO_INTERVALS if single else f"Bands: {intervals}"
            if panels > 1:
                caption += " Each panel has its own vertical axis."
            if left_out:
                caption += f" {left_out} further panel{'' if left_out == 1 else 's'} would not fit, or have one value only; see the tables."
            if any(line.combination[over] is None or isinstance(line.combination[over], str) for line in mine):
                caption += f" Dotted horizontal lines: values of {said} that are not on the axis; see the tables."
            alternative = f"Curves of the {shown.label} over the {said}; the numbers are in the table of the {shown.label} below."
            drawings.append(figure(drawn, f"sweep-{over}-{name}", alternative, caption, wide=panels > 1))
            small = small and panels == 1
        beside = ['<div class="pair">', *drawings, "</div>"] if small else drawings
        parts += [f"<h2>Over the {text(said)}</h2>", *beside]
    if not parts:
        rows = max(sum(line.metric == name for line in lines) for name in metrics)
        bars = NO_INTERVALS if single else f"Bars: {intervals}"
        more = f" Only the first {MOST_ROWS} of {rows} combinations are drawn." if rows > MOST_ROWS else ""
        labels = ", ".join(measure(name).label for name in metrics)
        alternative = f"Means with error bars of {labels}; the numbers are in the tables below."
        parts = ["<h2>The means</h2>", figure(intervals_figure(lines), "means", alternative, f"{bars} The axes do not begin at 0.{more}")]
    return parts


def tables_section(lines: Sequence[Line], baseline: Mapping[str, Any] | None) -> list[str]:
    """A table for each measure; all but the first are collapsed."""
    notes = f"{MEANING} {DIFFERENCES}" if baseline else MEANING
    parts = ["<h2>The numbers</h2>", f'<p class="note">{text(notes)}</p>']
    for name in dict.fromkeys(line.metric for line in lines):
        inside = metric_table([line for line in lines if line.metric == name], baseline)
        label = measure(name).label
        title = text(label[0].upper() + label[1:])
        first = len(parts) == 2
        parts.append(f"<h3>{title}</h3>\n{inside}" if first else f"<details><summary>{title}</summary>{inside}</details>")
    return parts
