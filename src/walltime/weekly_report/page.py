"""The page of a week: what users waited, what was used, what held jobs up, which hours were lost, and what changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.accuracy.page import hours
from walltime.metrics.machine import busy_processors, levels_at, queue_length
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Page, Paragraph, Section, note
from walltime.schedule.groups import TITLES as GROUP_TITLES
from walltime.tables import Cell, Row, Table
from walltime.weekly_report.period import USUAL, Period, PeriodNumbers, unusual
from walltime.wording import UNDEFINED, human_percent, human_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 52
"""Periods of the trend that are drawn."""
TITLES = {**GROUP_TITLES, "user": "user"}
MEANING = (
    "Waits are those of the jobs that started. Asked for and not used, failed, at the limit: processor-hours of the jobs that ended; "
    "failed as the log says. Jobs at their limit may have saved what they had."
)
MOMENTS = 400


def period_answer(numbers: Period) -> str:
    """What users waited, how busy the machine was, what that cost, what changed since the period before, and what was unusual."""
    n = numbers.numbers
    if not n.started:
        first = f"No job started on {numbers.workload.origin.name} from {span_of(numbers)}"
    else:
        first = (
            f"{span_of(numbers, capital=True)}: jobs on {numbers.workload.origin.name} waited {human_time(n.mean_wait)} on average, "
            f"half of them {_at_most(n.median_wait)}"
        )
    sentence = f"{first}; {human_percent(100 * n.utilization)} of the machine was used"
    lost = n.failed_hours + n.limit_hours
    if lost >= 0.005 * max(n.used_hours, 1e-9):
        share = human_percent(100 * min(lost / max(n.used_hours, 1e-9), 1))
        sentence += f", and {share} of what was used went to jobs that failed or ended at their limit"
    change, large = unusual(n.mean_wait, [one.mean_wait for one in numbers.before])
    if not math.isfinite(change):
        return f"{sentence}."
    told = "as long as" if abs(change) < 1 else f"{human_time(abs(change))} {'more' if change > 0 else 'less'} than"
    usual = {True: f"; {_length(n)}s seldom differ by as much", False: f"; {_length(n)}s often differ by as much", None: ""}[large]
    return f"{sentence}. Jobs waited {told} in the {_length(n)} before{usual}.{_oddities(numbers)}"


def _oddities(numbers: Period) -> str:
    """What else was unusual, and may be why waits changed: the first of `ODDITIES`; empty if nothing was."""
    for name, words, show in ODDITIES:
        now, before = getattr(numbers.numbers, name), [getattr(one, name) for one in numbers.before]
        if unusual(now, before)[1]:
            return f" Unusual: {show(now)} {words} ({show(before[-1])} in the {_length(numbers.numbers)} before)."
    return ""


def period_page(
    numbers: Period,
    *,
    predictions: Sequence[Table | str] = (),
    sidecar: Sequence[Table | str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Page:
    """The page. `predictions`, `sidecar`: what was said of start times and by the side-car, where there are records of them."""
    n = numbers.numbers
    sections = [
        Section("What changed", [changes_table(numbers), note(_chance(numbers))]),
        Section("Who waited", [*_group_blocks(numbers)]),
        Section("What held jobs up", [Paragraph(held_sentence(numbers)), longest_table(numbers)]),
        Section("The days", [_days(numbers)]),
        Section("Hours of jobs that failed or were cut", [users_table(numbers) if numbers.users else Paragraph("The log has no users.")]),
    ]
    for title, parts, without in (
        (
            "Start times: predicted, and kept",
            predictions,
            "No predictions are at hand; walltime slurm start-times --predictions keeps them.",
        ),
        ("What the side-car did", sidecar, "No ledger of the side-car is at hand (--ledger)."),
    ):
        blocks: list[Block] = [Paragraph(part) if isinstance(part, str) else part for part in parts] or [note(without)]
        sections.append(Section(title, blocks))
    record = provenance(numbers.workload, **(settings or {}))
    lost = n.failed_hours + n.limit_hours
    three = [
        ("mean wait", human_time(n.mean_wait)),
        ("of the machine used", human_percent(100 * n.utilization)),
        ("processor-hours of failed or cut jobs", hours(lost)),
    ]
    return Page(
        f"the {_length(n)} of a machine",
        f"{numbers.workload.origin.name}, {span_of(numbers)}",
        [period_answer(numbers)],
        sections,
        caveats=_caveats(numbers),
        numbers=three,
        picture=_picture(numbers),
        record=record,
        data=record | period_record(numbers),
    )


def period_record(numbers: Period) -> dict[str, Any]:
    """All of it ready for JSON, times in s of the log's clock."""
    lists = {"before": [one.as_dict() for one in numbers.before], "groups": {name: list(rows) for name, rows in numbers.groups.items()}}
    changes = {}
    for name, _, _, _ in MEASURES:
        change, large = unusual(getattr(numbers.numbers, name), [getattr(one, name) for one in numbers.before])
        changes[name] = {"change": None if math.isnan(change) else change, "unusual": large}
    rest = {"users": list(numbers.users), "longest": list(numbers.longest), "changes": changes, "caveats": _caveats(numbers)}
    return {"numbers": numbers.numbers.as_dict(), **lists, **rest, "answer": period_answer(numbers)}


def period_tables(numbers: Period) -> list[Table | str]:
    """What the terminal shows."""
    parts: list[Table | str] = [changes_table(numbers), _chance(numbers)]
    parts += [groups_table(numbers, by) for by in numbers.groups]
    parts += [held_sentence(numbers), longest_table(numbers), *([users_table(numbers)] if numbers.users else [])]
    return parts


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return human_percent(100 * value)


def _points(value: float) -> str:
    return f"{100 * value:.1f} points"


MEASURES = (
    ("mean_wait", "mean wait", human_time, 1.0),
    ("median_wait", "median wait", human_time, 1.0),
    ("p90_wait", "nine in ten waited at most", human_time, 1.0),
    ("utilization", "of the machine used", _share, 0.0005),
    ("submitted", "jobs submitted", _number, 1.0),
    ("started", "jobs started", _number, 1.0),
    ("waiting_at_end", "jobs waiting at the end", _number, 1.0),
    ("used_hours", "processor-hours used", hours, 1.0),
    ("unused_hours", "asked for and not used", hours, 1.0),
    ("failed_hours", "used by failed jobs", hours, 1.0),
    ("limit_hours", "used by jobs that ended at their limit", hours, 1.0),
)
"""Fields of `PeriodNumbers`, what they are called, how they are shown, and the least change worth a sign."""

ODDITIES = (
    ("submitted", "jobs were submitted", _number),
    ("waiting_at_end", "jobs still waited at the end", _number),
    ("unused_hours", "processor-hours were asked for and not used", hours),
    ("failed_hours", "processor-hours were used by failed jobs", hours),
)
"""What the answer says if it is unusual, of the first that is."""


def changes_table(numbers: Period) -> Table:
    """Each number, the one of the period before, and whether the change is unusual."""
    rows: list[Row] = []
    for name, label, show, least in MEASURES:
        now = getattr(numbers.numbers, name)
        change, large = unusual(now, [getattr(one, name) for one in numbers.before])
        shown = _points if show is _share else show
        before = Cell(show(getattr(numbers.before[-1], name))) if numbers.before else Cell(UNDEFINED)
        sign = "" if not math.isfinite(change) else "±0" if abs(change) < least else f"{'+' if change > 0 else '-'}{shown(abs(change))}"
        verdict = {True: "unusual", False: "as usual", None: "not known"}[large]
        rows.append([label, Cell(show(now), value=now), before, Cell(sign or UNDEFINED), Cell(verdict, look="best" if large else "")])
    unit = _length(numbers.numbers)
    return Table(["", f"this {unit}", f"the {unit} before", "change", "is that much?"], rows, "what changed", look="overview")


def groups_table(numbers: Period, by: str) -> Table:
    """Waits by group, beside those of the period before."""
    rows: list[Row] = []
    for row in numbers.groups[by]:
        times = [Cell(human_time(row[name]), value=row[name]) for name in ("mean_wait", "median_wait", "p90_wait")]
        last = row["mean_wait_before"]
        rows.append([str(row["group"]), f"{row['jobs']:,}", *times, Cell(UNDEFINED if last is None else human_time(last), value=last)])
    unit = _length(numbers.numbers)
    return Table(["", "jobs", "mean wait", "median", "nine in ten", f"mean, the {unit} before"], rows, f"by {TITLES[by]}")


def _group_blocks(numbers: Period) -> list[Block]:
    from walltime.report.page import Fold, Heading

    if not numbers.groups:
        return [Paragraph("The log does not say of which kind its jobs are.")]
    blocks: list[Block] = []
    for k, by in enumerate(numbers.groups):
        table = groups_table(numbers, by)
        title = f"By {TITLES[by]}"
        blocks += [Heading(title), table] if k < 2 else [Fold(title, [table])]
    return blocks


def held_sentence(numbers: Period) -> str:
    """For how much of the waiting the machine was too full."""
    n = numbers.numbers
    if n.waited_hours < 1:
        return "Hardly a job waited, so nothing held them up."
    share = n.full_hours / n.waited_hours
    rest = (
        ""
        if share > 0.995
        else (
            f" In the other {human_percent(100 * (1 - share))} enough were free, and jobs waited for reasons that a log does not name: "
            "the order of the queue, reservations, limits of users, partitions, unfit nodes (walltime infer looks for such rules)."
        )
    )
    return (
        f"Jobs waited {n.waited_hours:,.0f} h, added up over all of them. In {human_percent(100 * share)} of that time fewer processors "
        f"were free than the job asks for.{rest}"
    )


def longest_table(numbers: Period) -> Table:
    """The jobs that started after the longest waits."""
    rows: list[Row] = [
        [
            f"{row['job']}",
            row["user"],
            f"{row['procs']:,}",
            Cell(human_time(row["requested"]), value=row["requested"]),
            Cell(human_time(row["wait"]), value=row["wait"]),
            human_percent(100 * row["full"] / max(row["wait"], 1)),
        ]
        for row in numbers.longest
    ]
    head = ["job", "user", "processors", "asked for", "waited", "too few free"]
    return Table(
        head, rows, "the longest waits", "Too few free: share of the wait in which fewer processors were free than the job asks for."
    )


def users_table(numbers: Period) -> Table:
    """Users with the most hours that gave nothing."""
    names = ("used_hours", "failed_hours", "limit_hours", "unused_hours")
    rows: list[Row] = [
        [row["user"], f"{row['jobs']:,}", *(Cell(hours(row[name]), value=row[name]) for name in names)] for row in numbers.users
    ]
    head = ["user", "jobs ended", "used", "by failed jobs", "by jobs at their limit", "asked for, not used"]
    return Table(head, rows, "hours of jobs that failed or were cut, by user", MEANING)


def span_of(numbers: Period, capital: bool = False) -> str:
    """From when to when, as dates where the log has a calendar."""
    n, origin = numbers.numbers, numbers.workload.origin
    if origin.unix_start_time is None:
        return f"{'S' if capital else 's'}econd {n.begin:,} to {n.end:,} of the log"
    try:
        zone = origin.tzinfo()
        first, last = (datetime.fromtimestamp(origin.unix_start_time + t, zone) for t in (n.begin, n.end - 1))
    except (OverflowError, ValueError, OSError):
        return f"{'S' if capital else 's'}econd {n.begin:,} to {n.end:,} of the log"
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"


def _length(n: PeriodNumbers) -> str:
    days = (n.end - n.begin) / 86_400
    return "week" if 6.9 < days < 7.1 else "day" if 0.9 < days < 1.1 else "period"


def _at_most(median: float) -> str:
    return "not at all" if median < 1 else f"at most {human_time(median)}"


def _chance(numbers: Period) -> str:
    unit, earlier = _length(numbers.numbers), len(numbers.before)
    if earlier < 9:
        return f"Whether a change is unusual is not known yet: that takes nine {unit}s before this one, and there are {earlier}."
    return (
        f"Unusual: larger than {100 * USUAL:.0f} % of the {earlier - 1:,} changes from one {unit} to the next before; all else may be "
        "chance. Of ten numbers that only vary as they always do, one is called so."
    )


def _caveats(numbers: Period) -> list[str]:
    said = []
    if numbers.unknown:
        said.append(f"{numbers.unknown:,} jobs are left out, as the log does not say when they started.")
    if numbers.numbers.waiting_at_end:
        said.append(
            f"{numbers.numbers.waiting_at_end:,} jobs still waited at the end; their waits count when they start. Jobs that were never "
            "started are not in most logs."
        )
    peak = int(numbers.workload.procs.max())
    if peak > numbers.workload.machine_procs:
        said.append("Some jobs are wider than the machine; its size may be wrong.")
    return said


# ---------------------------------------------------------------------- figures


def _picture(numbers: Period) -> Drawing:
    periods = [*numbers.before, numbers.numbers][-SHOWN:]
    unit = _length(numbers.numbers)
    return Drawing(
        trend_figure(periods, unit),
        "trend",
        f"Bars of the mean wait and a line of the share of the machine used, {len(periods)} {unit}s; the last: "
        f"{human_time(numbers.numbers.mean_wait)}, {human_percent(100 * numbers.numbers.utilization)}.",
        f"Mean wait of each {unit}, this one last; below it the share of the machine that was used.",
        wide=False,
    )


def trend_figure(periods: Sequence[PeriodNumbers], unit: str) -> Figure:
    """Mean waits and use, a bar for each period."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from walltime.report.figures import BLUE, percent_ticks, style

    waits = np.array([one.mean_wait for one in periods])
    largest = float(np.nanmax(waits, initial=1.0))
    divisor, name = next(((d, u) for d, u in ((86_400, "days"), (3600, "hours"), (60, "minutes")) if largest >= 1.5 * d), (1, "s"))
    x = np.arange(len(periods)) - len(periods) + 1
    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        above.bar(x, np.nan_to_num(waits) / divisor, color=[*["#9DBBD6"] * (len(periods) - 1), BLUE], width=0.8)
        above.set_title(f"mean wait, {name}", loc="left", fontsize=9)
        below.plot(x, [100 * one.utilization for one in periods], color=BLUE, marker="." if len(periods) < 30 else "")
        below.set_ylim(0, 100)
        percent_ticks(below.yaxis)
        below.set_title("of the machine used", loc="left", fontsize=9)
        below.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        below.xaxis.set_major_formatter(lambda k, _: f"{-k:.0f} before" if k < 0 else f"this {unit}" if k == 0 else "")
    return figure


def _days(numbers: Period) -> Drawing:
    return Drawing(
        days_figure(numbers),
        "days",
        f"Over the {_length(numbers.numbers)}: the share of the processors that were busy, and the number of waiting jobs.",
        "Busy processors and waiting jobs.",
        wide=False,
    )


def days_figure(numbers: Period) -> Figure:
    """Busy processors and waiting jobs over the period."""
    from matplotlib.figure import Figure

    from walltime.report.figures import BLUE, COLOURS, percent_ticks, style

    n, w = numbers.numbers, numbers.workload
    start = w.submit + w.columns["wait"]
    moments = np.linspace(n.begin, n.end - 1, MOMENTS).astype(np.int64)
    busy = levels_at(*busy_processors(start, start + w.runtime, w.procs), moments)
    queue = levels_at(*queue_length(w.submit, start), moments)
    x = (moments - n.begin) / 86_400
    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        above.fill_between(x, 100 * busy / w.machine_procs, color=BLUE, alpha=0.6, linewidth=0)
        above.set_ylim(0, 105)
        percent_ticks(above.yaxis)
        above.set_title("processors busy", loc="left", fontsize=9)
        below.step(x, queue, color=COLOURS[1], where="post")
        below.set_ylim(0, max(1, queue.max() * 1.05))
        below.set_title("jobs waiting", loc="left", fontsize=9)
        below.set_xlabel("days")
    return figure
