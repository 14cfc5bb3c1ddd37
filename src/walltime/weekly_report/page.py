"""The report page of a week: waits, utilization, causes of waits, lost hours, and changes since earlier weeks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.accuracy.accuracy import dates
from walltime.accuracy.adjusted import has_column
from walltime.machine import omission_sentences
from walltime.metrics.machine import busy_processors, levels_at, queue_length
from walltime.provenance import plain, provenance
from walltime.report.page import Block, Chart, Drawing, Fold, Heading, Page, Paragraph, Section, note
from walltime.schedule.groups import TITLES as GROUP_TITLES
from walltime.tables import Cell, Row, Table, hours_cell, time_cell
from walltime.weekly_report.causes import CAUSES, cause_names
from walltime.weekly_report.period import DAY, USUAL, Period, PeriodNumbers, unusual
from walltime.wording import UNDEFINED, counted, hours, human_percent, human_time, listed, time_form

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 52
"""Largest number of periods in the figure of the trend."""
TITLES = {**GROUP_TITLES, "user": "user"}
MEANING = (
    "Processor-hours of the jobs that ended in the period. Failed: by the log's status, without jobs at their limit. Jobs at their limit "
    "may have saved their state."
)
TICKS = 7
"""Largest number of dates on the time axis of a figure."""
MOMENTS = 400
"""Number of points of a curve over the period."""


def period_answer(numbers: Period) -> str:
    """Return the answer in sentences: waits, utilization, lost hours, the change since the previous period, and any unusual number."""
    n = numbers.numbers
    warning = "".join(f"{one} " for one in numbers.workload.warnings)
    first = f"{warning}No job on {numbers.site} started from {span_of(numbers)}"
    if n.started:
        half = "started immediately" if n.median_wait < 1 else f"at most {human_time(n.median_wait)}"
        first = f"{warning}{span_of(numbers, capital=True)}: jobs waited {human_time(n.mean_wait)} on average, and half of them {half}"
    wrong = " (over 100 %: the machine's size is wrong)" if n.utilization > 1 else ""
    second = (
        f"processors and {_share(n.second_utilization)} of the {second_name(numbers)} were" if math.isfinite(n.second_utilization) else ""
    )
    sentence = f"{first}; {_share(n.utilization)} of the {second or 'machine was'} used{wrong}"
    lost = n.lost_hours / max(n.used_hours, 1e-9)
    if lost >= 0.005:
        known = {"failed": n.failed_hours, "reached their limit": n.limit_hours}
        which = " or ".join(word for word, value in known.items() if math.isfinite(value))
        sentence += f". Jobs that {which} account for {_share(lost)} of this use"
    change, large = unusual(n.mean_wait, [one.mean_wait for one in numbers.before])
    if not math.isfinite(change):
        return f"{sentence}."
    compared = "as long as" if abs(change) < 1 else f"{human_time(abs(change))} {'more' if change > 0 else 'less'} than"
    usual = "" if large is None else f"; such a large change between {_length(n)}s is {'rare' if large else 'common'}"
    sentence = f"{sentence}. Jobs waited {compared} in the {_length(n)} before{usual}."
    for name, words, show in ODDITIES:
        now, before = getattr(n, name), [getattr(one, name) for one in numbers.before]
        if unusual(now, before)[1]:
            return f"{sentence} Unusual: {show(now)} {words} ({show(before[-1])} in the {_length(n)} before)."
    return sentence


def period_page(numbers: Period, settings: Mapping[str, Any] | None = None, more: Sequence[Section] = ()) -> Page:
    """Return the report page; `settings`: additional entries of the provenance record, such as `command`. `more`: additional sections."""
    n = numbers.numbers
    users = users_table(numbers) if numbers.users else Paragraph("The log does not record users.")
    sections = [
        Section("Changes", [changes_table(numbers), note(_chance(numbers))]),
        Section("Waits by group", _group_blocks(numbers)),
        Section("Causes of waiting", [Paragraph(causes_sentence(numbers)), causes_table(numbers), longest_table(numbers)]),
        Section("Day by day", [_days(numbers)]),
        Section("Hours of failed jobs and jobs at their limit", [users]),
        *more,
    ]
    known = {"failed jobs": n.failed_hours, "jobs at their limit": n.limit_hours}
    lost = [name for name, value in known.items() if math.isfinite(value)] or list(known)
    record = provenance(numbers.workload, **(settings or {}))
    three = [
        ("mean wait", human_time(n.mean_wait)),
        ("utilization", _share(n.utilization)),
        (f"processor-hours of {' and '.join(lost)}", hours(n.lost_hours)),
    ]
    return Page(
        f"report on a {_length(n)}",
        f"{numbers.site}, {span_of(numbers)}",
        [period_answer(numbers)],
        sections,
        caveats=_caveats(numbers),
        numbers=three,
        picture=_trend(numbers),
        record=record,
        data=record | period_record(numbers),
    )


def period_record(numbers: Period) -> dict[str, Any]:
    """Return the period as a dictionary for JSON; times are log times, s."""
    changes = {name: dict(zip(("change", "unusual"), _change(numbers, name), strict=True)) for name, *_ in MEASURES}
    values: dict[str, Any] = {"numbers": numbers.numbers.as_dict(), "before": [one.as_dict() for one in numbers.before], "changes": changes}
    values |= {name: getattr(numbers, name) for name in ("groups", "users", "longest", "causes")}
    record: dict[str, Any] = plain(values | {"caveats": _caveats(numbers), "answer": period_answer(numbers)})
    return record


def period_tables(numbers: Period, verbose: bool) -> list[Table | str]:
    """Return the sentences and tables for the terminal: all with `verbose`, otherwise the measures of `SHORT` and unusual ones."""
    odd = [label for name, label, *_ in MEASURES if _change(numbers, name)[1]]
    counts = f"{len(MEASURES)} measures, {len(numbers.before)} earlier {_length(numbers.numbers)}s"
    known = _change(numbers, "mean_wait")[1] is not None
    parts: list[Table | str] = [f"Nothing unusual ({counts})."] if known and not odd else []
    parts += [] if known or verbose else [_chance(numbers)]
    if not verbose:
        table = replace(
            changes_table(numbers), title=f"Changes since the {_length(numbers.numbers)} before" if parts else f"Changes ({counts})"
        )
        chosen = [row for row, (name, label, *_) in zip(table.rows, MEASURES, strict=True) if name in SHORT or label in odd]
        return [*parts, replace(table, rows=chosen), *([causes_table(numbers)] if len(numbers.causes) > 1 else [causes_sentence(numbers)])]
    parts += [changes_table(numbers), _chance(numbers), *(groups_table(numbers, by) for by in numbers.groups)]
    return [
        *parts,
        causes_sentence(numbers),
        causes_table(numbers),
        longest_table(numbers),
        *([users_table(numbers)] if numbers.users else []),
    ]


def _change(numbers: Period, name: str) -> tuple[float, bool | None]:
    """Return the change of a number since the previous period, and whether it is unusual; None if unknown."""
    return unusual(getattr(numbers.numbers, name), [getattr(one, name) for one in numbers.before])


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return human_percent(100 * value)


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"


MEASURES = (
    ("mean_wait", "mean wait", human_time, 1.0),
    ("median_wait", "median wait", human_time, 1.0),
    ("p90_wait", "90 % wait", human_time, 1.0),
    ("utilization", "utilization", _share, 0.0005),
    ("submitted", "jobs submitted", _number, 1.0),
    ("started", "jobs started", _number, 1.0),
    ("waiting_at_end", "jobs waiting at the end", _number, 1.0),
    ("used_hours", "used processor-hours", hours, 1.0),
    ("unused_hours", "unused processor-hours", hours, 1.0),
    ("failed_hours", "processor-hours of failed jobs", hours, 1.0),
    ("limit_hours", "processor-hours of jobs at their limit", hours, 1.0),
)
"""Fields of `PeriodNumbers` with their names, their formats, and the smallest change that is shown; smaller changes are shown as ±0."""
SHORT = ("mean_wait", "utilization", "failed_hours")
"""The fields that the terminal always shows."""
ODDITIES = (
    ("submitted", "jobs were submitted", _number),
    ("waiting_at_end", "jobs were still waiting at the end", _number),
    ("unused_hours", "requested processor-hours were not used", hours),
    ("failed_hours", "processor-hours were used by failed jobs", hours),
)
"""Fields that the answer reports if they are unusual; it reports only the first one."""


def changes_table(numbers: Period) -> Table:
    """Return a table of each number, its value in the previous period, and whether the change is unusual."""
    rows: list[Row] = []
    for name, label, show, least in MEASURES:
        now, earlier = getattr(numbers.numbers, name), [getattr(one, name) for one in numbers.before[-1:]]
        change, large = _change(numbers, name)
        form = time_form([now, *earlier], short=True) if show is human_time else show
        shown = _points if show is _share else form
        sign = "" if not math.isfinite(change) else "±0" if abs(change) < least else f"{'+' if change > 0 else '-'}{shown(abs(change))}"
        verdict = Cell({True: "yes", False: "no", None: "unknown"}[large], look="best" if large else "")
        before = Cell(form(earlier[0])) if earlier else Cell(UNDEFINED)
        rows.append([label, Cell(form(now), value=now), before, Cell(sign or UNDEFINED), verdict])
    unit = _length(numbers.numbers)
    return Table(["", f"this {unit}", "before", "change", "unusual?"], rows, "Changes", look="overview")


def groups_table(numbers: Period, by: str) -> Table:
    """Return a table of waits by group, with the mean of the previous period."""
    rows: list[Row] = []
    for row in numbers.groups[by]:
        times = [time_cell(row[name]) for name in ("mean_wait", "median_wait", "p90_wait")]
        last = row["mean_wait_before"]
        rows.append([str(row["group"]), f"{row['jobs']:,}", *times, Cell(UNDEFINED if last is None else human_time(last), value=last)])
    unit = _length(numbers.numbers)
    return Table(["", "jobs", "mean wait", "median", "90 %", f"mean, the {unit} before"], rows, f"By {TITLES[by]}")


def _group_blocks(numbers: Period) -> list[Block]:
    """Return the tables by group; from the third on, they are collapsed."""
    if not numbers.groups:
        return [Paragraph("The log does not record any groups of jobs.")]
    blocks: list[Block] = []
    for k, by in enumerate(numbers.groups):
        title, table = f"By {TITLES[by]}", groups_table(numbers, by)
        blocks += [Heading(title), table] if k < 2 else [Fold(title, [table])]
    return blocks


def second_name(numbers: Period) -> str:
    """Return the name of the machine's second resource as sentences use it."""
    return "GPUs" if numbers.second == "gpus" else numbers.second


def causes_sentence(numbers: Period) -> str:
    """Return a sentence on the causes of the waits of all jobs, in descending order."""
    if numbers.numbers.waited_hours < 1:
        return "Jobs hardly waited."
    row, names = numbers.causes[0], cause_names(second_name(numbers))
    order = sorted(CAUSES, key=lambda cause: (cause == "unknown", -row[cause]))
    words = {cause: f"for {name}" for cause, name in names.items()}
    words |= {"limit": "for a limit on running jobs", "reservation": "for a reservation or an announced outage"}
    words |= {"behind": "behind jobs that lacked resources", "unknown": "for unknown causes"}
    words["priority"] = "behind later jobs of higher priority that lacked resources"
    told = listed([f"{_share(row[cause] / row['hours'])} {words[cause]}" for cause in order if row[cause] >= 0.005 * row["hours"]])
    return f"Jobs waited {row['hours']:,.0f} h in total: {told}."


def causes_table(numbers: Period) -> Table:
    """Return a table of the causes of waits by partition, in percent of the hours waited."""
    shown = {cause: name for cause, name in cause_names(second_name(numbers)).items() if numbers.causes and numbers.causes[0][cause] > 0}
    rows: list[Row] = []
    for row in numbers.causes:
        shares = [row[cause] / row["hours"] for cause in shown]
        rows.append([row["group"], hours_cell(row["hours"]), *(Cell(_share(share), value=share) for share in shares)])
    remark = (
        "Resources such as processors: less was free on the nodes that the job may use than it requested. Jobs ahead: enough was free, "
        "but an earlier job lacked resources; priority: a later job with a higher recorded priority did. Limits, reservations, outages "
        "and closed hours: those of the machine file. Not known: other waits, such as for unrecorded lack of room on individual nodes."
    )
    return Table(["", "hours waited", *shown.values()], rows, "Causes of waiting, share of the hours", remark)


def longest_table(numbers: Period) -> Table:
    """Return a table of the jobs that started after the longest waits."""
    rows: list[Row] = []
    names = cause_names(second_name(numbers))
    for row in numbers.longest:
        times = time_cell(row["requested"]), time_cell(row["wait"])
        cause = f"{names[row['cause']]} ({_share(row['cause_share'])})" if row["wait"] else UNDEFINED
        rows.append([f"{row['job']}", row["user"], f"{row['procs']:,}", *times, cause])
    head = ["job", "user", "processors", "requested", "waited", "main cause"]
    return Table(head, rows, "Longest waits", "In parentheses: the main cause's share of the wait.")


def users_table(numbers: Period) -> Table:
    """Return a table of the users with the most lost hours."""
    names = ("used_hours", "failed_hours", "limit_hours", "unused_hours")
    rows: list[Row] = [[row["user"], f"{row['jobs']:,}", *(hours_cell(row[name]) for name in names)] for row in numbers.users]
    head = ["user", "jobs ended", "used", "by failed jobs", "by jobs at their limit", "unused"]
    return Table(head, rows, "Hours of failed jobs and jobs at their limit, by user", MEANING)


def span_of(numbers: Period, capital: bool = False) -> str:
    """Return the first and last date of the period, or its log times if the log has no dates."""
    n = numbers.numbers
    found = dates(numbers.workload, np.array([n.begin, n.end - 1]))
    return " to ".join(found) if found else f"{'S' if capital else 's'}econd {n.begin:,} to {n.end:,} of the log"


def _length(n: PeriodNumbers) -> str:
    days = (n.end - n.begin) / 86_400
    return "week" if 6.9 < days < 7.1 else "day" if 0.9 < days < 1.1 else "period"


def _chance(numbers: Period) -> str:
    unit, earlier = _length(numbers.numbers), len(numbers.before)
    if earlier < 9:
        return f"Detecting unusual changes requires at least nine earlier {unit}s; the log has {earlier}."
    return (
        f"Unusual: larger than {100 * USUAL:.0f} % of the {earlier - 1:,} earlier changes from one {unit} to the next. By construction, "
        "about 1 in 10 ordinary changes is marked unusual."
    )


def _caveats(numbers: Period) -> list[str]:
    sentences = [*numbers.workload.warnings, *omission_sentences([numbers.workload])]
    if numbers.unknown:
        sentences.append(f"Left out: {counted(numbers.unknown, 'job')} without a recorded start.")
    if numbers.missing:
        sentences.append(f"The log begins {human_time(numbers.missing)} after the period; the report begins at the first submission.")
    if numbers.numbers.end > (last := int((numbers.workload.submit + numbers.workload.runtime).max())) + DAY:
        sentences.append(f"The log ends {human_time(numbers.numbers.end - last)} before the period; utilization is of the whole period.")
    unknown = [] if has_column(numbers.workload, "status") else ["statuses"]
    unknown += ["limits"] if math.isnan(numbers.numbers.limit_hours) else []
    if unknown:
        sentences.append(f"The log records no {' and no '.join(unknown)}, so the hours of such jobs are unknown ({UNDEFINED}).")
    if waiting := numbers.numbers.waiting_at_end:
        sentences.append(
            f"Still waiting at the end: {counted(waiting, 'job')}. A wait is counted in the period in which its job starts; most logs "
            "lack jobs that never started."
        )
    if numbers.numbers.utilization > 1 or int(numbers.workload.procs.max()) > numbers.workload.machine_procs:
        sentences.append("Jobs used more processors than the machine has; give its true size.")
    return sentences


# ---------------------------------------------------------------------- figures


@contextmanager
def _two_panels(above: int) -> Iterator[tuple[Figure, Axes, Axes]]:
    """Yield a figure with two panels; the upper one is `above` times as high as the lower one."""
    from matplotlib.figure import Figure

    from walltime.report.figures import style

    with style():
        figure = Figure(figsize=(9.2, 3.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[above, 1])
        yield figure, upper, lower


def _trend(numbers: Period) -> Drawing:
    """Draw the mean wait and the utilization of each period."""
    from walltime.report.figures import BLUE, percent_ticks, round_unit
    from walltime.report.interactive import clock_of

    n, unit, periods = numbers.numbers, _length(numbers.numbers), [*numbers.before, numbers.numbers][-SHOWN:]
    waits = np.array([one.mean_wait for one in periods])
    divisor, name = round_unit(float(np.nanmax(waits, initial=1.0)))
    x = np.array([(one.begin + one.end) / 2 for one in periods])
    use = [100 * one.utilization for one in periods]
    with _two_panels(2) as (figure, above, below):
        above.bar(x, np.nan_to_num(waits) / divisor, color=[*["#9DBBD6"] * (len(periods) - 1), BLUE], width=0.8 * (n.end - n.begin))
        above.set_title(f"mean wait, {name}", loc="left", fontsize=9)
        below.plot(x, use, color=BLUE, marker="." if len(periods) < 30 else "")
        below.set_ylim(0, 100)
        percent_ticks(below.yaxis)
        below.set_title("utilization", loc="left", fontsize=9)
        below.set_xticks(x[:: -max(1, -(-len(x) // TICKS))])
        below.xaxis.set_major_formatter(lambda at, _: _date(numbers, at - (n.end - n.begin) / 2))
    alternative = (
        f"Bars of the mean wait and a line of the utilization, {len(periods)} {unit}s; the last: "
        f"{human_time(n.mean_wait)}, {_share(n.utilization)}."
    )
    caption = f"Mean wait of each {unit}, this one last, and below it the utilization."
    clock = clock_of(numbers.workload.origin, int(numbers.workload.submit[0]))
    last = np.arange(len(x)) == len(x) - 1
    bars = {f"{unit}s before": np.where(last, np.nan, waits).tolist(), f"this {unit}": np.where(last, waits, np.nan).tolist()}
    charts = [
        Chart("Mean wait", x.tolist(), bars, "s", "bars", clock, colours=["#9DBBD6", "--blue"]),
        Chart("Utilization", x.tolist(), {"utilization": use}, "%", clock=clock, most=max(100, *use)),
    ]
    return Drawing(figure, "trend", alternative, caption, wide=False, live=charts)


def _date(numbers: Period, seconds: float) -> str:
    """Return a log time as a date, or as the day of the log if the log has no dates."""
    day = numbers.workload.origin.moment(seconds)
    return f"day {seconds / DAY:.0f}" if day is None else f"{day:%Y-%m-%d}"


def _days(numbers: Period) -> Drawing:
    """Draw busy processors and waiting jobs over the period."""
    from walltime.report.figures import BLUE, COLOURS, percent_ticks
    from walltime.report.interactive import clock_of

    n, w = numbers.numbers, numbers.workload
    start = w.submit + w.columns["wait"]
    moments = np.linspace(n.begin, n.end - 1, MOMENTS).astype(np.int64)
    busy = levels_at(*busy_processors(start, start + w.runtime, w.procs), moments)
    queue = levels_at(*queue_length(w.submit, start), moments)
    x, used_share = moments, {"processors": 100 * busy / w.machine_procs}
    with _two_panels(1) as (figure, above, below):
        above.fill_between(x, used_share["processors"], color=BLUE, alpha=0.6, linewidth=0)
        what = "processors"
        if numbers.second_total:
            used = np.maximum(w.columns[numbers.second], 0).astype(np.int64)
            level = levels_at(*busy_processors(start, start + w.runtime, used), moments)
            used_share[second_name(numbers)] = 100 * level / numbers.second_total
            above.step(x, used_share[second_name(numbers)], color=COLOURS[2], where="post", linewidth=1)
            what = f"processors (area) and {second_name(numbers)} (line)"
        above.set_ylim(0, 105)
        percent_ticks(above.yaxis)
        above.set_title(f"{what} busy", loc="left", fontsize=9)
        below.step(x, queue, color=COLOURS[1], where="post")
        below.set_ylim(0, max(1, queue.max() * 1.05))
        below.set_title("jobs waiting", loc="left", fontsize=9)
        below.set_xticks(n.begin + DAY * np.arange(0, (n.end - n.begin) // DAY + 1, max(1, (n.end - n.begin) // DAY // TICKS)))
        below.xaxis.set_major_formatter(lambda at, _: _date(numbers, at))
    alternative = f"Over the {_length(n)}: the shares of {what} that were busy, and the number of waiting jobs."
    clock = clock_of(w.origin, int(w.submit[0]))
    charts = [
        Chart(
            "Busy",
            moments.tolist(),
            {k: v.tolist() for k, v in used_share.items()},
            "%",
            "steps",
            clock,
            max(100, *map(max, used_share.values())),
        ),
        Chart("Jobs waiting", moments.tolist(), {"jobs waiting": queue.tolist()}, "", "steps", clock),
    ]
    return Drawing(figure, "days", alternative, f"Busy {what}, and waiting jobs.", wide=False, live=charts)
