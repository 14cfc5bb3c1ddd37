"""Comparisons of many runs as sections, tables and sentences: of campaigns, of replications, of lists of loads and estimates."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from walltime.comparison.combination_means import CombinationMean, compared_in
from walltime.comparison.combinations import combination_text, panels_of, series_of, swept, varying
from walltime.comparison.measures import Measure, measure
from walltime.comparison.tables import raw
from walltime.declared import valid_options
from walltime.errors import PolicyError
from walltime.metrics import range_meaning
from walltime.metrics.intervals import KINDS, SCOPES, shown_level
from walltime.report.page import Block, Drawing, Fold, Group, Heading, Section, note
from walltime.tables import Cell, Row, Table
from walltime.wording import counted, human_difference, human_number, human_time, listed, on_log, time_form, to_error

OF = KINDS["replications.difference"].of
NO_CLEAR = "no clear difference"
MOST_COLUMNS = 6
"""Largest number of columns for combinations in a table of groups."""
LONG = 14
"""Number of characters above which a parameter's value is broken into several lines of a table."""
NO_INTERVALS = "Single runs, so there are no intervals."
SINGLE = "Single runs, without intervals; --replications shows which differences are clear."

Baseline = Mapping[str, Any] | None


def remarks(lines: Sequence[CombinationMean], baseline: Baseline) -> list[str]:
    """Return the sentences that explain the tables of `metric_table`."""
    counts = sorted({line.runs for line in lines} - {1})
    if not counts:
        return [SINGLE]
    level = shown_level(lines[0].level)
    meaning = (
        f"Means over the replications (seeds), ± half the width of the {level} confidence interval of the mean (Student's t). Scope: {OF}: "
        f"{SCOPES[OF]}. Spread: the standard deviation of the runs over their mean."
    )
    runs = f"Single runs: {', '.join(map(range_meaning, counts))}; no confidence interval of the mean."
    differences = (
        f"Differences are means over pairs of runs with the same seed, ± half the width of their {level} confidence interval. There is "
        f"{NO_CLEAR} if {_insignificant(lines)}."
    )
    return [meaning, runs, *([differences] if baseline else [])]


def _insignificant(lines: Sequence[CombinationMean]) -> str:
    """Return a sentence on when a difference is not clear; with several comparisons, also on how many would be clear by chance."""
    level, count = lines[0].level, max(len(compared_in(lines, name)) for name in {line.metric for line in lines})
    if count < 2:
        return f"the {shown_level(level)} confidence interval of the paired difference includes 0"
    return (
        f"the paired t test at {shown_level(1 - level)}, corrected for {count} comparisons per measure (Holm), does not reject 0; without "
        f"correction, about {human_number(count * (1 - level))} of them would be clear by chance"
    )


def short_remarks(lines: Sequence[CombinationMean], baseline: Baseline) -> list[str]:
    """Return the notes on `combinations_table`, one line each."""
    counts = sorted({line.runs for line in lines} - {1})
    if not counts:
        return []
    runs = listed([f"{count:,}" for count in counts])
    notes = [f"±: {shown_level(lines[0].level)} confidence interval of the mean over {runs} runs with different seeds."]
    if any(line.clear is False for line in lines):
        notes.append(f"~: {NO_CLEAR} from {_named(baseline or {})}: {_insignificant(lines)}.")
    return notes


def three_numbers(lines: Sequence[CombinationMean], baseline: Baseline) -> list[tuple[str, str]]:
    """Return the first measure of the baseline and of the best other combination, and their difference; without a baseline, the range."""
    mine = [line for line in lines if line.metric == lines[0].metric and line.group is None and math.isfinite(line.band.mean)]
    if not mine:
        return []
    shown, words = measure(mine[0].metric), varying(mine)
    runs = max(line.runs for line in mine)
    ordered = sorted(mine, key=lambda line: line.band.mean)
    bases = [line for line in mine if line.difference is None] if baseline else []
    if len(bases) == 1 and len(mine) > 1:
        best = next(line for line in ordered if line is not bases[0])
        pairs = [(line, f"{shown.label}, {combination_text(line.combination, words)}") for line in (bases[0], best)]
        return [*((label, mean_cell(line, shown).words) for line, label in pairs), ("difference", difference_cell(best, shown).words)]
    ends = [("lowest", ordered[0]), ("highest", ordered[-1])] if len(mine) > 1 else [("", mine[0])]
    several = [
        (f"{end} {shown.label}, {combination_text(line.combination, words)}".strip(" ,"), mean_cell(line, shown).words)
        for end, line in ends
    ]
    return [*several, ("runs of each", f"{runs:,}")]


def figures_sections(lines: Sequence[CombinationMean]) -> list[Section]:
    """Return figures of each measure over each swept parameter or, if nothing is swept, of its means with error bars."""
    from walltime.comparison.sweeps import MOST_ROWS, intervals_figure, sweep_figure  # matplotlib is slow to load

    metrics = list(dict.fromkeys(line.metric for line in lines))
    single = all(line.interval is None for line in lines)
    intervals = f"{shown_level(lines[0].level)} confidence intervals of the means over the replications."
    sections = []
    for over in swept(lines):
        axis = over.replace("_", " ")
        drawings = []
        for name in metrics:
            mine = [line for line in lines if line.metric == name]
            figure, left_out = sweep_figure(mine, over)
            shown = measure(name)
            panels = len([axes for axes in figure.axes if axes.get_visible()])
            caption = f"{shown.title} over the {axis}. {NO_INTERVALS if single else f'Bands: {intervals}'}"
            if panels > 1:
                caption += " Each panel has its own vertical axis."
            if left_out:
                caption += f" {counted(left_out, 'further panel')} would not fit, or have one value only; see the tables."
            if any(line.combination[over] is None or isinstance(line.combination[over], str) for line in mine):
                caption += f" Dotted horizontal lines: values of {axis} that are not on the axis; see the tables."
            alternative = f"Curves of the {shown.label} over the {axis}; the numbers are in the table of the {shown.label} below."
            drawings.append(Drawing(figure, f"sweep-{over}-{name}", alternative, caption, wide=panels > 1))
        small = not any(drawing.wide for drawing in drawings)
        sections.append(Section(f"Over the {axis}", [Group(drawings, "pair")] if small else drawings))
    if sections:
        return sections
    rows = max(sum(line.metric == name for line in lines) for name in metrics)
    more = f" Only the first {MOST_ROWS} of {rows} combinations are drawn." if rows > MOST_ROWS else ""
    caption = f"{NO_INTERVALS if single else f'Bars: {intervals}'} The axes do not begin at 0.{more}"
    labels = ", ".join(measure(name).label for name in metrics)
    alternative = f"Means with error bars of {labels}; the numbers are in the tables below."
    return [Section("The means", [Drawing(intervals_figure(lines), "means", alternative, caption)])]


def numbers_section(lines: Sequence[CombinationMean], baseline: Baseline) -> Section:
    """Return a table for each measure; all but the first are folded."""
    blocks: list[Block] = [note(f"{' '.join(remarks(lines, baseline))} Point at a value for its exact number.")]
    for k, name in enumerate(dict.fromkeys(line.metric for line in lines)):
        table, title = metric_table([line for line in lines if line.metric == name], baseline), measure(name).title
        blocks += [Fold(title, [table])] if k else [Heading(title), table]
    return Section("The numbers", blocks)


def metric_table(lines: Sequence[CombinationMean], baseline: Baseline, by: str | None = None) -> Table:
    """Return a table of one measure with all combinations: mean with interval, range of runs, spread, difference from the baseline.

    `by`: the name of the grouping, if the lines are of groups of jobs.
    """
    words = varying(lines)
    shown = measure(lines[0].metric)
    several = any(line.runs > 1 for line in lines)
    rows: list[Row] = []
    for line in lines:
        row: list[str | Cell] = [value_cell(line.combination[name]) for name in words] or [shown.label]
        row += [line.group or ""] if by else []
        row += [f"{line.runs:,}"] if several else []
        row.append(mean_cell(line, shown))
        if several:
            row.append(f"{shown.show(line.band.low)} to {shown.show(line.band.high)}" if line.runs > 1 else "-")
            row.append(f"{100 * line.spread:.1f} %" if math.isfinite(line.spread) else "-")
        row += [difference_cell(line, shown)] if baseline else []
        rows.append(row)
    head = [name.replace("_", " ") for name in words] or ["measure"]
    head += [by] if by else []
    head += ["runs", f"mean, {shown_level(lines[0].level)} interval", "single runs", "spread"] if several else ["single run"]
    head += [f"difference to {_named(baseline)}"] if baseline else []
    return Table(head, rows, shown.label, texts=max(len(words), 1) + bool(by))


def combinations_table(lines: Sequence[CombinationMean], baseline: Baseline, by: str | None = None) -> Table:
    """Return one narrow table for a terminal: a row for each combination, means with intervals, relative differences from the baseline.

    `by`: the name of the grouping, if the lines are of groups of jobs. The mean response is omitted next to the mean wait, from which it
    differs by the runtimes, and the utilization next to the wait.
    """
    words = varying(lines) or list(lines[0].combination)[:1]
    by_metric: dict[str, list[CombinationMean]] = {}
    for line in lines:
        by_metric.setdefault(line.metric, []).append(line)
    if "mean_wait" in by_metric:
        by_metric = {name: mine for name, mine in by_metric.items() if name not in ("mean_response", "utilization")}
    keys = list(dict.fromkeys((tuple(line.combination[name] for name in words), line.group) for line in lines))
    columns: list[list[str]] = [[value_cell(values[k]).text for values, _ in keys] for k in range(len(words))]
    columns += [[group or "" for _, group in keys]] if by else []
    head = [name.replace("_", " ") for name in words] + ([by] if by else [])
    for metric, mine in by_metric.items():
        shown, found = measure(metric), {(tuple(line.combination[name] for name in words), line.group): line for line in mine}
        cells = _with_halves(mine, shown)
        columns.append([cells[id(found[key])] if key in found else "" for key in keys])
        head.append(shown.label if shown.unit else shown.label.removeprefix("mean "))
        if baseline and not shown.points:
            columns.append([_relative(found[key]) if key in found else "" for key in keys])
            head.append(f"vs {_named(baseline)}")
    return Table(head, list(zip(*columns, strict=True)), texts=len(words) + bool(by))


def pivot_tables(lines: Sequence[CombinationMean], pivot: str, baseline: Baseline, by: str | None = None) -> list[Table]:
    """Return a table for each measure, with a column for each value of the parameter `pivot`: means with intervals, all in one unit.

    Values are shortened where they stay distinct: files without folders, options without names. `by`: the name of the grouping, if the
    lines are of groups of jobs. Raises PolicyError if the results do not vary the parameter.
    """
    if pivot not in (words := varying(lines)):
        raise PolicyError(f"these results do not vary {pivot!r}{valid_options(pivot, words)}", "unknown_parameter")
    others = [name for name in words if name != pivot]
    values = list(dict.fromkeys(line.combination[pivot] for line in lines))
    texts = {name: list(dict.fromkeys(value_cell(line.combination[name]).text for line in lines)) for name in words}
    short = {name: dict(zip(found, _short(found), strict=True)) for name, found in texts.items()}
    tables = []
    for metric in dict.fromkeys(line.metric for line in lines):
        mine = [line for line in lines if line.metric == metric]
        shown, most = measure(metric, max(line.band.mean for line in mine)), max(line.runs for line in mine)
        cells = {(tuple(line.combination[name] for name in others), line.group, line.combination[pivot]): line for line in mine}
        rows = [
            [*(short[name][value_cell(one).text] for name, one in zip(others, rest, strict=True)), *([group or ""] if by else []), *places]
            for rest, group in dict.fromkeys((rest, group) for rest, group, _ in cells)
            for places in [[_in_unit(cells.get((rest, group, value)), shown, most) for value in values]]
        ]
        several = any(line.interval is not None for line in mine)
        title = shown.axis.replace(shown.label, shown.title, 1) + (
            f", ±: {shown_level(mine[0].level)} confidence interval" if several else ""
        )
        title += f", †: {NO_CLEAR} from {_named(baseline)}" if baseline and any(line.clear is False for line in mine) else ""
        columns = [*(name.replace("_", " ") for name in others), *([by] if by else []), *short[pivot].values()]
        tables.append(Table(columns, rows, title, texts=len(others) + bool(by)))
    return tables


def _in_unit(line: CombinationMean | None, shown: Measure, most: int) -> Cell:
    """Return a mean with half the width of its interval in the axis's unit; add its runs if other means have more.

    The mark † stands for no clear difference from the baseline.
    """
    if line is None:
        return Cell("")
    mean, mark = float(line.band.mean), "†" if line.clear is False else ""
    value = mean / shown.divisor
    if line.interval is None:
        return Cell(human_number(value) + mark, value=mean)
    half, runs = line.interval.half_width / shown.divisor, f" ({line.runs} runs)" if line.runs < most else ""
    return Cell(f"{to_error(value, half)} ± {to_error(half, half)}{mark}{runs}", value=mean)


def _short(labels: Sequence[str]) -> list[str]:
    """Return labels without folders of files and names of options, if they are still distinct."""
    short = [re.sub(r"[\w.-]*/|[\w-]+=(?=\w)", "", label) for label in labels]
    return short if len(set(short)) == len(set(labels)) else list(labels)


def _with_halves(lines: Sequence[CombinationMean], shown: Measure) -> dict[int, str]:
    """Return, by the id of each line, its mean with the half-width of its interval (not for shares); all times have one form."""
    halves = [line.interval.half_width if line.interval is not None and not shown.points else None for line in lines]
    show = shown.show
    if shown.show is human_time:
        show = time_form([*(line.band.mean for line in lines), *(half for half in halves if half)], short=True)
    cells = {}
    for line, half in zip(lines, halves, strict=True):
        if half is None:
            cells[id(line)] = show(line.band.mean)
        elif show is human_number:
            cells[id(line)] = f"{to_error(line.band.mean, half)} ± {to_error(half, half)}"
        else:
            cells[id(line)] = f"{show(line.band.mean)} ± {show(half)}"
    return cells


def _relative(line: CombinationMean) -> str:
    """Return the difference from the baseline as a share of the baseline; `~` marks a difference that is not clear."""
    if line.difference is None:
        return "-"
    before = line.band.mean - line.difference.mean
    change = human_difference(100 * line.difference.mean / before) if before else human_number(line.difference.mean)
    return f"~ {change}" if line.clear is False else change


def overview_table(lines: Sequence[CombinationMean], baseline: Baseline) -> Table:
    """Return all measures in one table: a row for each combination, means with intervals and differences from the baseline."""
    names = list(dict.fromkeys(line.metric for line in lines))
    rows: list[Row] = []
    for caption, mine in panels_of(lines, varying(lines)).items():
        by_metric = {line.metric: line for line in mine}
        row: list[str | Cell] = [caption or combination_text(mine[0].combination, list(mine[0].combination)), f"{mine[0].runs:,}"]
        for name in names:
            line = by_metric.get(name)
            row.append("" if line is None else mean_cell(line, measure(name), _change(line, measure(name)) if baseline else ()))
        rows.append(row)
    level = shown_level(lines[0].level)
    remark = f"Mean, ± half the width of its {level} confidence interval over the replications (Student's t). Scope: {OF}: {SCOPES[OF]}."
    if baseline:
        below = f"the mean difference from {_named(baseline)} over pairs with the same seed, with its {level} confidence interval"
        remark += f" Below: {below}."
    head = ["policy", "replications", *(measure(name).label for name in names)]
    return Table(head, rows, "Means with their intervals, one row per policy", remark, look="overview")


def groups_tables(lines: Sequence[CombinationMean], title: str, baseline: Baseline) -> list[Block]:
    """Return tables of one measure by group of jobs: a row for each group, a column for each policy, a table for each other combination."""
    series, further = series_of(lines, None)
    columns = list(panels_of(lines, [series] if series else []))
    if len(columns) > MOST_COLUMNS:
        series, further, columns = None, varying(lines), [""]
    words = [series] if series else []
    shown = measure(lines[0].metric)
    compared = {name for name in columns if baseline and series in baseline and name != combination_text(baseline, words)}
    blocks: list[Block] = []
    for caption, mine in panels_of(lines, further).items():
        cells = {(line.group, combination_text(line.combination, words)): line for line in mine}
        rows: list[Row] = []
        for group in dict.fromkeys(line.group for line in mine):
            row: list[str | Cell] = [group or ""]
            for name in columns:
                line = cells.get((group, name))
                row.append("" if line is None else mean_cell(line, shown))
                if name in compared:
                    row.append("" if line is None else difference_cell(line, shown))
            rows.append(row)
        head = [""]
        for name in columns:
            head += [name or shown.label, *(["difference"] if name in compared else [])]
        blocks += [Heading(caption)] if caption else []
        blocks.append(Table(head, rows, f"{shown.label} {title}{f', {caption}' if caption else ''}", look="months"))
    return blocks


def mean_cell(line: CombinationMean, shown: Measure, below: Sequence[str] = ()) -> Cell:
    """Return the mean with the half-width of its confidence interval; `below`: additional small print."""
    mean = float(line.band.mean)
    if line.interval is None:
        return Cell(shown.show(mean), below, f"{raw(mean, '')}, a single run", mean)
    half = float(line.interval.half_width)
    return Cell(shown.show(mean), [f"± {shown.change(half)}", *below], f"{raw(mean, '')} ± {raw(half, '')}", mean)


def difference_cell(line: CombinationMean, shown: Measure) -> Cell:
    """Return the paired difference from the baseline, and whether it is clear."""
    if line.difference is None:
        return Cell("baseline", look="base")
    mean, half = float(line.difference.mean), float(line.difference.half_width)
    if line.clear is None:
        return Cell(shown.signed(mean), exact=raw(mean, ""), value=mean)
    width, exact = f"± {shown.change(half)}", f"{raw(mean, '')} ± {raw(half, '')}"
    if line.clear:
        return Cell(shown.signed(mean), [width], exact, mean, "clear")
    return Cell(NO_CLEAR, [f"{shown.signed(mean).removesuffix(' points')} {width}"], exact, mean)


def value_cell(value: Any) -> Cell:
    """Return the value of a parameter; long ones take several lines."""
    text = "default" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    return Cell(text, look="word long" if len(text) > LONG else "word")


def _change(line: CombinationMean, shown: Measure) -> list[str]:
    """Return the paired difference for small print; it has two lines if it is not clear."""
    d = line.difference
    if d is None:
        return []
    if line.clear is None:
        return [shown.signed(d.mean)]
    return [*([] if line.clear else [NO_CLEAR]), shown.with_half(d.mean, d.half_width)]


def _named(baseline: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for value in baseline.values())


def answer(lines: Sequence[CombinationMean], baseline: Baseline, subject: str) -> str:
    """Return the result in one measure as a sentence, with a clause for each value that is compared with the baseline.

    `lines`: the results of one measure. `subject`: the simulated logs.
    """
    if not lines:
        return f"Nothing was measured on {subject}."
    shown = measure(lines[0].metric)
    compared: dict[str, list[CombinationMean]] = {}
    for line in lines:
        if line.difference is not None and baseline:
            compared.setdefault(combination_text(line.combination, list(baseline)), []).append(line)
    if not compared or not baseline:
        lowest, highest = (pick(lines, key=lambda line: line.band.mean) for pick in (min, max))
        if len(lines) == 1:
            return f"{on_log(subject)}, the {shown.label} is {_with_interval(lowest, shown)}."
        words = varying(lines)
        return (
            f"{on_log(subject)}, the {shown.label} is between {_with_interval(lowest, shown)} "
            f"({combination_text(lowest.combination, words)}) and "
            f"{_with_interval(highest, shown)} ({combination_text(highest.combination, words)})."
        )
    [(name, mine), *others] = compared.items()
    if not others and len(mine) == 1 and mine[0].clear and mine[0].difference is not None and list(baseline) == ["policy"]:
        d, sign = mine[0].difference, "lower" if mine[0].difference.mean < 0 else "higher"
        size = shown.with_half(d.mean, d.half_width)[1:]
        return f"{on_log(subject)}, the {shown.label} is {size} {sign} under {name} than under {_named(baseline)}."
    verdicts = [f"with {one} it {_verdict(lines, shown)}" for one, lines in others[: MOST_COLUMNS - 1]]
    more = len(others) - len(verdicts)
    rest = [f"{more} more {'is' if more == 1 else 'are'} in the tables"] if more else []
    told = f"{on_log(subject)}, compared with {_named(baseline)}, the {shown.label} with {name} {_verdict(mine, shown)}"
    return f"{'; '.join([told, *verdicts, *rest])}."


def _verdict(lines: Sequence[CombinationMean], shown: Measure) -> str:
    """Describe how these combinations compare with the baseline."""
    if len(lines) == 1 and lines[0].difference is not None:
        d = lines[0].difference
        side = "lower" if d.mean < 0 else "higher"
        if lines[0].clear is None:
            return f"is {shown.signed(d.mean)[1:]} {side}" if d.mean else "is the same"
        change = shown.with_half(d.mean, d.half_width)
        return f"is {change[1:]} {side}" if lines[0].clear else f"shows {NO_CLEAR} ({change})"
    kinds: dict[str, list[CombinationMean]] = {}
    for line in lines:
        mean = 0.0 if line.difference is None else line.difference.mean
        side = "higher" if mean > 0 else "lower" if mean < 0 else "the same"
        kind = f"is {side}" if line.clear is None else f"is clearly {side}" if line.clear else f"shows {NO_CLEAR}"
        kinds.setdefault(kind, []).append(line)
    words = varying(lines)
    if len(words) == 1 and len(lines) <= MOST_COLUMNS:  # few enough to name each
        name = words[0].replace("_", " ")
        values = {kind: listed([str(line.combination[words[0]]) for line in mine]) for kind, mine in kinds.items()}
        return listed([f"{kind} with {name} {value}" for kind, value in values.items()])
    counts = sorted(((len(mine), kind) for kind, mine in kinds.items()), key=lambda pair: -pair[0])
    return f"{listed([f'{kind} in {count}' for count, kind in counts])} of {len(lines)} combinations"


def _with_interval(line: CombinationMean, shown: Measure) -> str:
    half = "" if line.interval is None else f" ± {shown.change(line.interval.half_width)}"
    return f"{shown.show(line.band.mean)}{half}"
