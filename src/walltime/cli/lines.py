"""Comparisons of many runs in the terminal and as JSON: of campaigns, and of lists of loads or estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from walltime.metrics.intervals import KINDS, SCOPES, SHOWN_LEVEL

if TYPE_CHECKING:
    from walltime.campaign import Line

OF = KINDS["replications.difference"].of


def line_records(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The lines, ready for JSON."""
    records = []
    for line in lines:
        record = {**line.combination, "group": line.group, "metric": line.metric, "runs": line.runs}
        record |= {"mean": line.band.mean, "low": line.band.low, "high": line.band.high, "what": line.band.what}
        record["relative_spread"] = line.spread
        for name, interval in (("interval", line.interval), ("difference", line.difference)):
            if interval is not None:
                record[name] = {"mean": interval.mean, "low": interval.low, "high": interval.high, "what": interval.what, "of": OF}
        if line.clear is not None:
            record["difference"]["clear"] = line.clear
        records.append(record)
    return records


def print_lines(varied: Sequence[str], lines: Sequence[Line], base: Mapping[str, Any] | None, by: str | None = None) -> None:
    """Print a table for each measure: mean, range of single runs, spread, and the difference to the baseline."""
    from walltime.cli.common import print_table, print_text
    from walltime.metrics import range_meaning
    from walltime.report import human_number
    from walltime.report.measures import measure

    words = [name for name in varied if any(name in line.combination for line in lines)]
    runs = any(line.runs > 1 for line in lines)
    columns = [*words, *([by] if by is not None else []), "runs", "mean", "single runs: from", "to", "spread"]
    if base:
        columns.append(f"difference to {', '.join(str(value) for value in base.values())}")
    for metric in dict.fromkeys(line.metric for line in lines):
        rows = []
        shown_as = measure(metric)
        divisor = shown_as.divisor
        for line in (line for line in lines if line.metric == metric):
            row = ["-" if line.combination[name] is None else str(line.combination[name]) for name in words]
            row += [line.group or ""] if by is not None else []
            row += [str(line.runs), human_number(line.band.mean / divisor)]
            row += [human_number(x / divisor) for x in (line.band.low, line.band.high)] if line.runs > 1 else ["-", "-"]
            row.append(f"{100 * line.spread:.1f} %" if math.isfinite(line.spread) else "-")
            if base:
                d = line.difference
                width = f" +- {human_number(d.half_width / divisor)}" if d is not None and math.isfinite(d.half_width) else ""
                row.append("" if d is None else f"{'+' if d.mean >= 0 else '-'}{human_number(abs(d.mean) / divisor)}{width}")
            rows.append(row)
        shown = columns if runs else [name for name in columns if name not in ("runs", "single runs: from", "to", "spread")]
        kept = [columns.index(name) for name in shown]
        print_table(shown_as.axis, shown, [[row[k] for k in kept] for row in rows])
    if not runs:
        typer.echo("Single runs: there are no intervals. Repeat them with seeds to see which differences are clear.")
        return
    for count in sorted({line.runs for line in lines} - {1}):
        print_text(f"Single runs: {range_meaning(count)}.")
    print_text(f"A difference is the mean over pairs with the same seed, +- the half-width of its {SHOWN_LEVEL} confidence interval.")
    print_text("The spread is the standard deviation of the runs over their mean.")
    print_text(f"Of {OF}: {SCOPES[OF]}.")
