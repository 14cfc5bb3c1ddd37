"""Comparisons of many runs as tables and sentences of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from walltime.campaign.comparison import Line
from walltime.metrics import range_meaning
from walltime.metrics.intervals import KINDS, SCOPES, SHOWN_LEVEL
from walltime.report.combinations import panels_of, said, series_of, varying
from walltime.report.measures import Measure, measure
from walltime.report.tables import raw, table, text, unbroken

LEVEL = SHOWN_LEVEL
OF = KINDS["replications.difference"].of
NO_CLEAR = "no clear difference"
MOST_COLUMNS = 6
"""A table of groups has a column for each of so many combinations at most."""
LONG = 14
"""Values of parameters with more letters take several lines of a table."""
MEANING = (
    f"Means over the replications (seeds), ± half the width of the {LEVEL} confidence interval of the mean (Student's t), of {OF}: "
    f"{SCOPES[OF]}. The spread is the standard deviation of the runs over their mean. Point at a value for its exact number."
)
DIFFERENCES = (
    f"A difference is the mean over pairs of runs with the same seed, ± half the width of its {LEVEL} confidence interval; where that "
    f"interval includes 0 there is {NO_CLEAR}."
)


def metric_table(lines: Sequence[Line], baseline: Mapping[str, Any] | None) -> str:
    """All combinations in one measure: mean with its interval, range of single runs, spread, and the difference to the baseline."""
    words = varying(lines)
    shown = measure(lines[0].metric)
    rows = []
    for line in lines:
        cells = [text(_value(line.combination[words[0]]) if words else shown.label)]
        cells += [word_cell(line.combination[name]) for name in words[1:]]
        cells += [f"{line.runs:,}", mean_cell(line, shown), *_range(line, shown)]
        cells.append(f"{100 * line.spread:.1f} %" if math.isfinite(line.spread) else "-")
        if baseline:
            cells.append(difference_cell(line, shown))
        rows.append(cells)
    head = [text((words or ["measure"])[0].replace("_", " ")), *(text(name.replace("_", " ")) for name in words[1:])]
    head += ["runs", f"mean, {LEVEL} interval", "single runs", "spread"]
    if baseline:
        head.append(f"difference to {text(', '.join(str(value) for value in baseline.values()))}")
    meaning = [range_meaning(count) for count in sorted({line.runs for line in lines} - {1})]
    note = f'<p class="note">Single runs: {text(", ".join(meaning))}.</p>' if meaning else ""
    return table(head, rows, f"{shown.label}, one row per combination", f"words{max(len(words), 1)}") + note


def overview_table(lines: Sequence[Line], baseline: Mapping[str, Any] | None) -> str:
    """All measures in one table: a row for each combination, means with their intervals and differences to the baseline."""
    words = varying(lines)
    names = list(dict.fromkeys(line.metric for line in lines))
    rows = []
    for caption, mine in panels_of(lines, words).items():
        by_metric = {line.metric: line for line in mine}
        cells = [text(caption or said(mine[0].combination, list(mine[0].combination))), f"{mine[0].runs:,}"]
        for name in names:
            if name not in by_metric:
                cells.append("<td></td>")
                continue
            line, shown = by_metric[name], measure(name)
            cells.append(mean_cell(line, shown).replace("</td>", f"{_change(line, shown)}</td>") if baseline else mean_cell(line, shown))
        rows.append(cells)
    head = ["policy", "replications", *(text(measure(name).label) for name in names)]
    note = f"Mean, ± half the width of its {LEVEL} confidence interval over the replications (Student's t), of {OF}: {SCOPES[OF]}."
    if baseline:
        first = ", ".join(str(value) for value in baseline.values())
        note += f" Below: the mean difference to {first} over pairs with the same seed, with its {LEVEL} confidence interval."
    return table(head, rows, "Means with their intervals, one row per policy", "overview") + f'<p class="note">{text(note)}</p>'


def mean_cell(line: Line, shown: Measure) -> str:
    """The mean with the half-width of its confidence interval, as a cell."""
    exact = raw(float(line.band.mean), "")
    if line.interval is None:
        return f'<td title="{text(exact)}, a single run">{text(shown.show(line.band.mean))}<small>single run</small></td>'
    mean, half = line.band.mean, line.interval.half_width
    exact += f" ± {raw(float(half), '')}"
    return f'<td title="{text(exact)}">{text(shown.show(mean))}<small>± {text(shown.change(half))}</small></td>'


def difference_cell(line: Line, shown: Measure) -> str:
    """The paired difference to the baseline, and whether it is clear, as a cell; empty for the baseline itself."""
    d = line.difference
    if d is None:
        return '<td class="base">baseline</td>'
    if line.clear is None:
        return f'<td title="{text(raw(float(d.mean), ""))}">{text(shown.signed(d.mean))}<small>single runs</small></td>'
    half = text(shown.change(d.half_width))
    exact = f"{raw(float(d.mean), '')} ± {raw(float(d.half_width), '')}"
    if line.clear:
        return f'<td class="clear" title="{text(exact)}">{text(shown.signed(d.mean))}<small>± {half}</small></td>'
    return f'<td title="{text(exact)}">{NO_CLEAR}<small>{text(shown.signed(d.mean))} ± {half}</small></td>'


def groups_table(lines: Sequence[Line], title: str, baseline: Mapping[str, Any] | None) -> str:
    """The groups of jobs in one measure: a row for each, a column for each policy; a table for each combination of the others."""
    series, further = series_of(lines, None)
    columns = list(panels_of(lines, [series] if series else []))
    if len(columns) > MOST_COLUMNS:
        series, further, columns = None, varying(lines), [""]
    words = [series] if series else []
    shown = measure(lines[0].metric)
    compared = {name for name in columns if baseline and series in baseline and name != said(baseline, words)}
    parts = []
    for caption, mine in panels_of(lines, further).items():
        found = {(line.group, said(line.combination, words)): line for line in mine}
        rows = []
        for group in dict.fromkeys(line.group for line in mine):
            cells = [text(group)]
            for name in columns:
                line = found.get((group, name))
                cells.append("<td></td>" if line is None else mean_cell(line, shown))
                if name in compared:
                    cells.append("<td></td>" if line is None else difference_cell(line, shown))
            rows.append(cells)
        head = [""]
        for name in columns:
            head += [text(name or shown.label), *(["difference"] if name in compared else [])]
        if caption:
            parts.append(f"<h3>{text(caption)}</h3>")
        parts.append(table(head, rows, f"{shown.label} {title}{f', {caption}' if caption else ''}", "months"))
    return "\n".join(parts)


def answer(lines: Sequence[Line], baseline: Mapping[str, Any] | None, subject: str) -> str:
    """What the comparison says of one measure, in one sentence for each value that is compared with the baseline.

    `lines`: of one measure. `subject`: what was simulated.
    """
    if not lines:
        return f"Nothing was measured on {subject}."
    shown = measure(lines[0].metric)
    compared: dict[str, list[Line]] = {}
    for line in lines:
        if line.difference is not None and baseline:
            compared.setdefault(said(line.combination, list(baseline)), []).append(line)
    if not compared or not baseline:
        lowest, highest = (pick(lines, key=lambda line: line.band.mean) for pick in (min, max))
        if len(lines) == 1:
            return f"On {subject}, the {shown.label} is {_with_interval(lowest, shown)}."
        words = varying(lines)
        return (
            f"On {subject}, the {shown.label} is between {_with_interval(lowest, shown)} ({said(lowest.combination, words)}) and "
            f"{_with_interval(highest, shown)} ({said(highest.combination, words)})."
        )
    first = ", ".join(str(value) for value in baseline.values())
    told = [f"{name} {_verdict(mine, shown)}" for name, mine in list(compared.items())[:MOST_COLUMNS]]
    more = len(compared) - len(told)
    if more:
        told.append(f"{more} more in the tables")
    return f"On {subject}, {shown.label} compared with {first}: {'; '.join(told)}."


def _verdict(lines: Sequence[Line], shown: Measure) -> str:
    """How these combinations compare with the baseline."""
    if len(lines) == 1 and lines[0].difference is not None:
        d = lines[0].difference
        if lines[0].clear is None:
            return f"{shown.signed(d.mean)} (single runs)"
        change = shown.with_half(d.mean, d.half_width)
        return change if lines[0].clear else f"{NO_CLEAR} ({change})"
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        mean = 0.0 if line.difference is None else line.difference.mean
        side = "higher" if mean > 0 else "lower" if mean < 0 else "the same"
        kind = f"{side} (single runs)" if line.clear is None else f"clearly {side}" if line.clear else NO_CLEAR
        kinds.setdefault(kind, []).append(line)
    words = varying(lines)
    if len(words) == 1 and len(lines) <= MOST_COLUMNS:  # few enough to be named
        name = words[0].replace("_", " ")
        values = {kind: " and ".join(str(line.combination[words[0]]) for line in mine) for kind, mine in kinds.items()}
        return ", ".join(f"{kind} with {name} {value}" for kind, value in values.items())
    counts = sorted(((len(mine), kind) for kind, mine in kinds.items()), key=lambda pair: -pair[0])
    return f"{', '.join(f'{kind} in {count}' for count, kind in counts)} of {len(lines)} combinations"


def _change(line: Line, shown: Measure) -> str:
    """The paired difference in small print, in two lines if it is not clear."""
    d = line.difference
    if d is None:
        return ""
    if line.clear is None:
        return f"<small>{text(shown.signed(d.mean))}, single runs</small>"
    change = unbroken(text(shown.with_half(d.mean, d.half_width)))
    return f"<small>{change}</small>" if line.clear else f"<small>{NO_CLEAR}</small><small>{change}</small>"


def _with_interval(line: Line, shown: Measure) -> str:
    half = "" if line.interval is None else f" ± {shown.change(line.interval.half_width)}"
    return f"{shown.show(line.band.mean)}{half}"


def _range(line: Line, shown: Measure) -> list[str]:
    return [text(f"{shown.show(line.band.low)} to {shown.show(line.band.high)}")] if line.runs > 1 else ["-"]


def word_cell(value: Any) -> str:
    """The value of a parameter as a cell; long ones take several lines."""
    said = _value(value)
    return f'<td class="word{" long" if len(said) > LONG else ""}">{text(said)}</td>'


def _value(value: Any) -> str:
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
