"""The report page of an explanation, with a figure of the processors in use while a job waited and the jobs that overtook it."""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from walltime.explanation.pools import MachineExplanation
from walltime.explanation.records import HOW, Alternative, SinglePoolExplanation
from walltime.explanation.sentences import change_text, owner, sooner_by
from walltime.machine.tables import RESOURCES
from walltime.metrics import levels_at, steps
from walltime.provenance import provenance
from walltime.report.figure_files import SLIM
from walltime.report.figures import BLUE, COLOURS, KIND_EDGE, LETTERS_PER_INCH, columns_of, date_ticks, moment, rectangles, style, unit_of
from walltime.report.interactive import clock_of
from walltime.report.page import Block, Chart, Drawing, Items, Page, Section, note, workload_facts
from walltime.schedule.schedule import Schedule
from walltime.tables import Cell, Table, time_cell
from walltime.wording import counted, human_time, lower_first

Array = np.ndarray
AnyExplanation = SinglePoolExplanation | MachineExplanation

ITSELF, DELAYED, OTHER_HEADS = COLOURS[3], COLOURS[1], COLOURS[4]
USERS = {"already running": "#70777F", "earlier jobs": "#C9CDD3", "later jobs": BLUE, "this job": ITSELF}
"""The groups of jobs in the figure, and their colours, which differ in lightness, too, for prints in grey."""
MOST_ROWS = 40
"""Maximum number of rows of bars for overtaking jobs; additional jobs are not drawn."""


def explanation_figure(explanation: AnyExplanation, width: float = 9.2, flat: float = 1.0) -> Figure:
    """Draw the processors in use during the wait, stacked by groups of jobs, and below them the jobs that overtook.

    The job fits where the stack stays below the dashed line. Triangles at the top are its reservations, the first one hollow; a triangle
    that points to the right lies outside the figure. `width`: inches; `flat`: a factor on the heights of the panels.
    """
    schedule, rows = explanation.schedule, _rows(explanation)
    begin, end = _window(explanation)
    divisor, unit = unit_of(end - begin)
    with style():
        heights = [3.0 * flat, max(0.6, 0.35 + 0.045 * flat * (max(rows) + 1))] if rows else [3.0 * flat]
        figure = Figure(figsize=(width, 1.2 + sum(heights)), layout="constrained")
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _machine(figure, panels[0], explanation, schedule, begin, end, divisor)
        if rows:
            _overtakers(panels[1], explanation, rows, divisor, LETTERS_PER_INCH * width)
        most = 12 if width > 5 else 5
        dates = date_ticks(schedule.workload.origin, begin, end, 8 if width > 5 else 4)
        where = f"job {explanation.job} was submitted ({moment(schedule, explanation.submit)})"
        label = where if dates else f"{unit} since {where}"
        panels[-1].set_xlabel(fill(label, int(LETTERS_PER_INCH * width)))
        panels[-1].set_xlim((begin - explanation.submit) / divisor, (end - explanation.submit) / divisor)
        ticks = MaxNLocator(min(most, 8), steps=[1, 2, 5, 10]) if unit == "days" else MaxNLocator(most, steps=[1, 2, 4, 5, 6, 10])
        panels[-1].xaxis.set_major_locator(ticks)
        if dates:
            panels[-1].set_xticks([(time - explanation.submit) / divisor for time in dates], list(dates.values()))
    return figure


def _window(explanation: AnyExplanation) -> tuple[int, int]:
    """Return the time span of the figure, s, from shortly before the submission to shortly after the start."""
    wait = max(explanation.wait, 1)
    ran = min(max(explanation.end, explanation.start + 1), explanation.start + wait // 5)
    reserved = max((change.start for change in explanation.reservations), default=explanation.start) + wait // 40
    return explanation.submit - wait // 12, max(ran, min(reserved, explanation.start + wait // 2)) + 1


def _levels(explanation: AnyExplanation, begin: int, end: int) -> tuple[Array, list[Array]]:
    """Return the times in a span at which the use changes, s, and the use by each group of `USERS` at these times."""
    schedule, job = explanation.schedule, explanation.index
    index = np.arange(len(schedule.workload))
    start, stop, submit = schedule.start, schedule.end, schedule.submit
    later = (submit > explanation.submit) | ((submit == explanation.submit) & (index > job))
    ran = (start < explanation.submit) | ((start == explanation.submit) & ~later & (index != job))
    inside = (start < end) & (stop > begin)
    masks = [inside & mask for mask in (ran, ~ran & ~later & (index != job), ~ran & later, index == job)]
    times = np.unique(np.concatenate([[begin, end], start[inside], stop[inside]]).clip(begin, end))
    had = _machine_of(explanation, schedule)[1]
    return times, [levels_at(*steps(start[mask], stop[mask], had[mask]), times) for mask in masks]


def _chart(explanation: AnyExplanation) -> Chart:
    """Return the same figure as an interactive chart, with marks at the submission and the start."""
    whole, _, wanted, name = _machine_of(explanation, explanation.schedule)
    times, levels = _levels(explanation, *_window(explanation))
    changed = np.any([np.diff(level, prepend=-1) != 0 for level in levels], axis=0)
    changed[-1] = True
    used = {who: level[changed].tolist() for who, level in zip(USERS, levels, strict=True)}
    w = explanation.schedule.workload
    return Chart(
        f"{name[0].upper()}{name[1:]} in use; the job needs the {wanted:,} above the dashed line",
        times[changed].tolist(),
        used,
        form="stack",
        clock=clock_of(w.origin, int(w.submit[0])),
        most=whole,
        colours=list(USERS.values()),
        marks=[(explanation.submit, "submitted"), (explanation.start, "started")],
        level=(whole - wanted, "need"),
    )


def _machine(figure: Figure, axes: Axes, explanation: AnyExplanation, schedule: Schedule, begin: int, end: int, divisor: int) -> None:
    """Draw the use by each group, the processors that the job needs, and its reservations."""
    times, levels = _levels(explanation, begin, end)
    whole, _, wanted, name = _machine_of(explanation, schedule)
    x = (times - explanation.submit) / divisor
    tops = np.cumsum([np.zeros(len(times), np.int64), *levels], axis=0)
    for low, high, colour in zip(tops, tops[1:], USERS.values(), strict=False):
        drawn = (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0)
        drawn[-1] = True  # other points change nothing, and would make the file large
        axes.fill_between(x[drawn], low[drawn], high[drawn], step="post", color=colour, linewidth=0)
    need = whole - wanted
    axes.axhline(need, color=KIND_EDGE, linestyle=(0, (5, 2)), linewidth=1)
    label = f"needs\nthe {wanted:,}\nabove"
    low = need < whole / 2
    axes.annotate(label, (1, need), (5, 0), axes.get_yaxis_transform(), "offset points", fontsize=8, va="bottom" if low else "top")
    for time, label in ((explanation.submit, "submitted"), (explanation.start, "started")):
        axes.axvline((time - explanation.submit) / divisor, color=KIND_EDGE, linewidth=1)
        axes.annotate(label, ((time - explanation.submit) / divisor, whole), (-3, 9), textcoords="offset points", ha="right", fontsize=8)
    reserved = [change.start for change in explanation.reservations if change.start >= 0]
    triangle: dict[str, Any] = {"marker": "v", "linestyle": "none", "color": DELAYED, "markersize": 6, "clip_on": False}
    for k, time in reversed(list(enumerate(reserved))):
        place = (min(time, end) - explanation.submit) / divisor, whole * 1.03
        looks = triangle | {"marker": ">" if time > end else "v", "markerfacecolor": "white" if k == 0 else DELAYED}
        axes.plot(*place, zorder=6 if k == 0 else 5, **looks)
    axes.set_ylim(0, whole)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel(f"{name} in use")
    axes.set_title(f"job {explanation.job} under {schedule.title}", pad=22)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=colour, edgecolor=KIND_EDGE, linewidth=0.35, label=name) for name, colour in USERS.items()
    ]
    handles += [Line2D([], [], label="reservations", **triangle)] if reserved else []
    columns = columns_of([str(one.get_label()) for one in handles], LETTERS_PER_INCH * figure.get_figwidth())
    layout: dict[str, Any] = {"columnspacing": 1.2, "handlelength": 1.2, "borderaxespad": 0}
    figure.legend(handles=handles, loc="outside upper right", ncols=columns, **layout)


OTHER_CAUSES = {
    "limit": "a limit held it back",
    "window": "the site was closed to such jobs",
    "reservation": "its nodes were kept for a reservation",
    "outage": "an outage took nodes",
    "others": "it was reserved for other jobs or held by the queue order",
}
"""Causes of a wait other than a lack of resources, as clauses for the caption."""


def _fits(explanation: AnyExplanation) -> str:
    """Return the clause of the caption on the parts of the figure in which the job fits."""
    if isinstance(explanation, MachineExplanation):
        held = explanation.held_back
        spread = held.features + held.memory + held.resource + held.nodes
        lacking = held.too_few + held.few_second + held.few_both
        other = max(OTHER_CAUSES, key=lambda name: int(getattr(held, name)))
        why = OTHER_CAUSES[other] if getattr(held, other) > max(spread, lacking) else ""
        why = why or ("not on nodes with all that it requests" if spread > lacking else "")
        if why:
            return f"enough is free where the stack stays below the dashed line, but {why}"
    return "it fits where the stack stays below the dashed line"


def _machine_of(explanation: AnyExplanation, schedule: Schedule) -> tuple[int, Array, int, str]:
    """Return the capacity, each job's use, and the explained job's need of the resource that it lacked, and the resource's name.

    With several pools, these are amounts in the pools that the explained job can use.
    """
    w = schedule.workload
    if isinstance(explanation, SinglePoolExplanation) or schedule.given is None or schedule.placement is None:
        return w.machine_procs, w.procs, explanation.procs, "processors"
    machine, index, resource = schedule.placement.machine, explanation.index, explanation.short_of
    places = [machine.place_of(name) for name in explanation.pools]
    had = schedule.given[:, places].sum(axis=1)
    if resource == "procs":
        return explanation.capacity[0], had[:, 0], explanation.procs, "processors"
    if resource == machine.second:
        return explanation.capacity[1], had[:, 1], explanation.second, RESOURCES.get(resource, resource)
    wanted = np.maximum(w.columns.get("mem_mb", np.zeros(len(w), np.int64)), 0)
    share = had[:, 0] / np.maximum(schedule.given[:, :, 0].sum(axis=1), 1)
    whole = sum(machine.pools[place].nodes * machine.pools[place].memory for place in places)
    return whole, (wanted * share).astype(np.int64), int(wanted[index]), "MB of memory"


def _least(explanation: AnyExplanation) -> int:
    """Return the length of the shortest bar that is visible, s."""
    return max(explanation.wait // 400, 1)


def _rows(explanation: AnyExplanation) -> list[int]:
    """Return the row of each overtaking job's bar, so that bars in a row do not overlap."""
    free_from: list[int] = []
    rows = []
    for one in explanation.overtaken_by:
        row = next((k for k, time in enumerate(free_from) if time <= one.start), len(free_from))
        if row == len(free_from):
            free_from.append(0)
        free_from[row] = one.start + max(one.runtime, _least(explanation))
        rows.append(min(row, MOST_ROWS))
    return rows


def _overtakers(axes: Axes, explanation: AnyExplanation, rows: list[int], divisor: int, letters: float) -> None:
    """Draw a bar for each job that arrived later and started earlier, coloured by the job that it delayed."""
    names = {BLUE: "delayed no job", OTHER_HEADS: "delayed another job at the queue's head", DELAYED: f"delayed job {explanation.job}"}
    colours = [BLUE if one.delay <= 0 else DELAYED if one.head == explanation.job else OTHER_HEADS for one in explanation.overtaken_by]
    left = np.array([one.start for one in explanation.overtaken_by]) - explanation.submit
    right = left + np.maximum([one.runtime for one in explanation.overtaken_by], _least(explanation))
    row = np.array(rows, float)
    if isinstance(explanation, MachineExplanation):  # delays are unknown on several pools
        names = {BLUE: "arrived later"}
    for colour in names:
        mine = (np.array(colours) == colour) & (row < MOST_ROWS)
        if mine.any():
            outline = rectangles(left[mine] / divisor, right[mine] / divisor, row[mine] - 0.4, row[mine] + 0.4)
            axes.add_patch(PathPatch(outline, facecolor=colour, edgecolor="white", linewidth=0.15))
    axes.set_ylim(min(max(rows), MOST_ROWS) + 0.7, -0.7)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    key = [Patch(facecolor=colour, label=f"{name} ({colours.count(colour):,})") for colour, name in names.items() if colour in colours]
    columns = columns_of([str(one.get_label()) for one in key], letters)
    axes.set_title(f"{counted(len(rows), 'job')} that overtook it", pad=8 + 12 * -(-len(key) // columns))  # the key is between
    axes.legend(handles=key, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=columns, columnspacing=1.2, handlelength=1.2)


# ---------------------------------------------------------------------------------------------- the pages


FLAT = 0.7
"""Factor on the height of the figure, so that it fits on the first screen of the page."""
ANSWERED = ("request", "partition", "policy")
"""Kinds of changes in the answer; fewer processors are only in the table, because they usually change the runtime too."""
LISTED = 40
"""Maximum number of overtaking jobs in the table."""


def explanation_page(explanation: AnyExplanation, command: Sequence[Any]) -> Page:
    """Return the report page that explains the wait of one job."""
    schedule, wait, overtakers = explanation.schedule, human_time(explanation.wait), len(explanation.overtaken_by)
    w, name, under = schedule.workload, f"Job {explanation.job}{owner(explanation)}", lower_first(schedule.title)
    best = _best(explanation)
    answer = f"{name} started at once under {under}."
    if explanation.wait:
        log = explanation.recorded_wait
        real = "" if log is None else f" (the log records {human_time(log)})"
        answer = f"{name} waited {wait} under {under}{real}: {dict(explanation.texts)['reason']}."
        if best:
            prepositions = {"policy": "under"}
            ways = [f"{sooner_by(explanation, one)} {prepositions.get(one.what, 'with')} {_changed(explanation, one)}" for one in best]
            answer += f" It would have started {'; '.join(ways)}."
        elif explanation.alternatives:
            answer += " No other request or policy that was tried would have let it start sooner."
    sections = [Section("Course of the wait", [Items(explanation.sentences)])]
    if explanation.alternatives:
        rows = [[_changed(explanation, one), time_cell(one.gain)] for one in explanation.alternatives]
        remark = "Each row is a simulation of all jobs with this one change, which also moves other jobs. Negative: the job starts later."
        sections.append(Section("Changes that were tried", [Table(["change", "starts sooner by"], rows), note(remark)]))
    if explanation.wait:
        sections.insert(0, Section("Resources in use during the wait", [_chart(explanation)], shown="only-live"))
    if overtakers:
        sections.append(Section("Jobs that overtook it", list(_overtook(explanation))))
    held = _machine_of(explanation, schedule)[3]
    words = f"The {held} while job {explanation.job} waited, by their users; {_fits(explanation)}."
    picture = None
    if explanation.wait:
        narrow = explanation_figure(explanation, SLIM, FLAT)
        picture = Drawing(explanation_figure(explanation, flat=FLAT), "wait", words, words, narrow=narrow)
    tried = "none" if explanation.alternatives else "not tried"
    sooner = human_time(max(one.gain for one in best)) if best else tried
    return Page(
        "why a job waited",
        f"Wait of job {explanation.job} on {w.origin.site}",
        [answer],
        sections,
        facts=workload_facts(w, w.origin.name),
        numbers=[
            ("wait in the simulation", wait),
            ("recorded wait", human_time(explanation.recorded_wait) if explanation.recorded_wait is not None else "n/a"),
            ("later jobs that overtook it", f"{overtakers:,}"),
            ("largest gain with the same processors", sooner),
        ],
        picture=picture,
        workload=w,
        record=provenance(w, policy=schedule.label, command=list(command)),
        data=explanation.as_dict(),
    )


def _best(explanation: AnyExplanation) -> list[Alternative]:
    """Return, for each kind of change in `ANSWERED`, the change with the largest gain, if it lets the job start sooner."""
    kinds = [[one for one in explanation.sooner if one.what == what] for what in ANSWERED]
    return [max(kind, key=lambda one: one.gain) for kind in kinds if kind]


def _changed(explanation: AnyExplanation, one: Alternative) -> str:
    """Describe a change, with the value that it replaces."""
    replaced = {"request": human_time(explanation.requested), "procs": f"{explanation.procs:,}"}.get(one.what)
    return change_text(one) + (f" instead of {replaced}" if replaced else "")


def _overtook(explanation: AnyExplanation) -> Iterator[Block]:
    single_pool = isinstance(explanation, SinglePoolExplanation)
    columns = ["job", "processors", "started after", "ran"]
    columns += ["how", "delayed the head of the queue by"] if single_pool else []
    rows = []
    for one in explanation.overtaken_by[:LISTED]:
        row: list[Any] = [str(one.job), f"{one.procs:,}", time_cell(one.start - explanation.submit), time_cell(one.runtime)]
        rows.append([*row, Cell(HOW.get(one.how, one.how), look="wrap"), time_cell(max(one.delay, 0))] if single_pool else row)
    yield Table(columns, rows, f"Jobs that overtook job {explanation.job}; times from its submission")
    if len(explanation.overtaken_by) > LISTED:
        yield note(f"The table shows the first {LISTED} of {len(explanation.overtaken_by):,}.")
