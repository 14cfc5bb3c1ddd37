"""The page of schedules of one workload: the answer, the evidence, and the provenance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from walltime import metrics
from walltime.comparison import tables
from walltime.comparison.answers import answer, scope
from walltime.comparison.caveats import LONG_QUEUE, caveats_of, longest_queue
from walltime.errors import WorkloadError
from walltime.metrics.intervals import KINDS, shown_level
from walltime.policy import Backfilling
from walltime.provenance import provenance
from walltime.report.html import write_page
from walltime.report.interactive import can_live, live_data, repeat_command
from walltime.report.page import Block, Drawing, Fold, Fragment, Group, Heading, Page, Section, note, workload_facts
from walltime.report.stretch import JOBS, choose_stretch
from walltime.schedule.schedule import Schedule, labels
from walltime.simulation.spread import Spread
from walltime.wording import UNDEFINED, counted, human_difference, human_percent, human_time, listed, lower_first

Array = np.ndarray


def write_comparison_page(
    path: str | Path,
    schedules: Sequence[Schedule],
    *,
    title: str | None = None,
    trim: str = "none",
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    spread: Spread | None = None,
    live: bool = True,
) -> Path:
    """Write a page that compares these schedules of one workload; the first is the baseline.

    The page needs no network and no other file, and equal schedules give equal bytes. It is written completely or not at all. `live`: add
    scripts and the jobs of all schedules, so that a browser can show any job and any stretch of time; without them, the page is smaller and
    has static figures, as in browsers without scripts. `trim`: which jobs are measured, as in `Schedule.summary`. `notes`: sentences
    to add under "Caveats". `settings`: additional entries of the provenance, such as `seed`, `estimates` (the model or its name), and as
    `command` the command line, a string or a list of arguments. `spread`: from `walltime.simulation.shaking_spread`, so that the page marks
    the differences that shaking the log may reverse. Returns the path. Raises WorkloadError if the schedules differ in jobs or machine,
    PolicyError for an unknown trim, OutputError if the page cannot be written.
    """
    _check(schedules)
    workload = schedules[0].workload
    names = labels(schedules)
    summaries = [s.summary(trim) for s in schedules]
    masks = [s.measured(trim) for s in schedules]
    log = workload.origin.site
    settings = settings or {}
    chosen = {"policies": [s.label for s in schedules], "trim": trim, **_runs(schedules), **settings}
    chosen["feedback"] = any(s.workload.feedback for s in schedules)
    record = provenance(workload, **chosen)
    live = live and can_live(schedules)
    users = settings.get("estimates", "user") == "user"
    page = Page(
        "simulated waits",
        title or (f"{names[0]} on {log}" if len(names) == 1 else f"Comparison of {len(names)} policies on {log}"),
        [answer(log, names, schedules, summaries, spread), *scope(summaries, spread), *_saturated(names, schedules)],
        [
            *([Section("", [Fragment("choice.html")])] if live else []),
            Section(
                "The numbers",
                [
                    tables.summary_table(names, summaries, trim, spread=spread),
                    Fold("All numbers, unrounded", [tables.details_table(names, summaries)]),
                ],
            ),
            *_months(names, schedules),
            *_gains(names, schedules, trim),
            *_recorded(names, schedules),
            *(_figures(names, schedules, masks, trim, live) if len(workload) else []),
        ],
        workload_facts(workload, record["log"]),
        [*caveats_of(schedules, trim, settings.get("estimates"), spread), *notes],
        numbers=three_numbers(names, summaries, spread),
        picture=_picture(names, schedules, masks, spread) if len(workload) else None,
        workload=workload,
        record=record,
        command=None if settings.get("command") or not users else repeat_command(schedules, trim),
        interactive=live_data(names, schedules, masks) if live else "",
    )
    return write_page(path, page)


def _saturated(names: Sequence[str], schedules: Sequence[Schedule]) -> list[str]:
    """Return a warning about policies with a permanent queue in a comparison."""
    shares = [longest_queue(schedule)[1] for schedule in schedules]
    full = [f"{lower_first(name)} ({human_percent(100 * k)} of the time)" for name, k in zip(names, shares, strict=True) if k >= LONG_QUEUE]
    if not full or len(schedules) < 2:
        return []
    return [f"Do not quote the size of the differences: the queue is permanent under {listed(full)}, so waits depend on the log's length."]


def three_numbers(names: Sequence[str], summaries: Sequence[metrics.Summary], spread: Spread | None = None) -> list[tuple[str, str]]:
    """Return mean and median wait and utilization of one policy, or the mean waits of the first policy and of the best and worst others.

    With two policies, also return the change with its interval.
    """
    first = summaries[0]
    if len(summaries) == 1:
        values = [("mean wait", human_time(first.mean_wait)), ("median wait", human_time(first.median_wait))]
        return [*values, ("utilization", human_percent(100 * first.utilization))]
    order = sorted(range(1, len(summaries)), key=lambda k: summaries[k].mean_wait)
    chosen = list(dict.fromkeys([0, order[0], order[-1]]))
    numbers = [(f"mean wait, {lower_first(names[k])}", human_time(summaries[k].mean_wait)) for k in chosen]
    if len(chosen) < 3:
        change = metrics.relative_difference(summaries[chosen[1]].mean_wait, first.mean_wait)
        if spread is None or not first.mean_wait:
            return [*numbers, ("change", human_difference(change) or UNDEFINED)]
        half = 100 * spread.difference("mean_wait", 0, 1)[1] / first.mean_wait
        numbers.append(
            (
                f"change ({shown_level(spread.level)} interval, shaken copies of this log)",
                f"{human_difference(change)} (±{human_percent(half)})",
            )
        )
    return numbers


def _picture(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array], spread: Spread | None) -> Drawing:
    """Draw mean waits with prediction intervals, or the distribution of waits of one policy."""
    from walltime.report import figures

    waits = [float(s.wait[mask].mean()) if mask.any() else 0.0 for s, mask in zip(schedules, masks, strict=True)]
    if len(names) == 1:
        caption = "Share of jobs that wait less than the time on the horizontal axis. The dot at the left end: jobs that do not wait."
        drawn = figures.WAITS.figure(schedules, masks)
        return Drawing(drawn, "first", f"Distribution of waits under {names[0]}.", caption, wide=False)
    halves = None if spread is None else [spread.scatter("mean_wait", k) for k in range(len(names))]
    said = ", ".join(f"{name} {human_time(wait)}" for name, wait in zip(names, waits, strict=True))
    interval = (
        "" if spread is None else f" Bars: {shown_level(spread.level)} prediction interval for one more copy ({KINDS['shaken.copy'].of})."
    )
    return Drawing(figures.means_figure(names, waits, halves), "first", f"Mean waits: {said}.", f"Mean wait.{interval}", wide=False)


def _check(schedules: Sequence[Schedule]) -> None:
    if not schedules:
        raise WorkloadError("a report needs at least one schedule; pass results of walltime.simulate", "no_schedule")
    first = schedules[0].workload
    for other in (s.workload for s in schedules[1:]):
        alike = all(np.array_equal(getattr(first, name), getattr(other, name)) for name in ("job_id", "submit", "procs"))
        if not alike or first.machine_procs != other.machine_procs:
            raise WorkloadError(
                f"a report compares schedules of the same jobs on the same machine; leave out {first!r} or {other!r}", "other_jobs"
            )


def _runs(schedules: Sequence[Schedule]) -> dict[str, Any]:
    """Return the settings of the runs: one value if all runs share it, else a value for each run."""
    options: dict[str, list[str]] = {name: [getattr(s, name) for s in schedules] for name in ("overrun", "coincident", "engine")}
    dialects = [s.dialect.label for s in schedules]
    if set(dialects) != {"papers"}:
        options["dialect"] = dialects
    policies = [s.policy for s in schedules]
    options["order"] = ["unknown" if p.passes.kind == "unknown" else p.order.name for p in policies]
    second = [(p.backfill_order or p.order).name if isinstance(p, Backfilling) else "none" for p in policies]
    if used := set(second) - {"none"}:
        options["backfill_order"] = second if len(used) > 1 else list(used)
    return {name: values[0] if len(set(values)) == 1 else values for name, values in options.items()}


def _months(names: Sequence[str], schedules: Sequence[Schedule]) -> list[Section]:
    """Return a section with the results of each month, if the log has dates and covers 2 to 120 months."""
    spans = [int(s.end.max() - s.submit.min()) for s in schedules if len(s)]
    if schedules[0].workload.origin.unix_start_time is None or not spans or max(spans) > 31 * 86_400 * tables.MOST_MONTHS:
        return []
    try:
        table = tables.months_table(names, [s.monthly() for s in schedules])
    except WorkloadError:  # its times are outside the calendar
        return []
    months = table.column(0)
    if not 2 <= len(months) <= tables.MOST_MONTHS:
        return []
    return [Section("By month", [Fold(f"{counted(len(months), 'month')}, {months[0]} to {months[-1]}", [table])])]


def _gains(names: Sequence[str], schedules: Sequence[Schedule], trim: str) -> list[Section]:
    """Return a section on the gains and losses of jobs under each other policy, relative to the first."""
    if len(schedules) < 2 or not len(schedules[0]):
        return []
    blocks: list[Block] = []
    for k, (name, schedule) in enumerate(zip(names[1:], schedules[1:], strict=True), 1):
        title = f"From {lower_first(names[0])} to {lower_first(name)}"
        blocks.append(Group([Heading(title), *tables.gains_blocks(schedules[0].gains(schedule, trim), title)], policies=(0, k)))
    remark = "Users are classified by the sum of their waits. The largest changes are changes of this sum; the table shows mean waits."
    return [Section("Gains and losses", [*blocks, note(remark)])]


def _recorded(names: Sequence[str], schedules: Sequence[Schedule]) -> list[Section]:
    """Return a section that compares recorded and simulated waits: of all jobs, by class and by month."""
    parts = tables.recorded_tables(names, schedules)
    record = schedules[0].recorded()
    if not parts or record is None:
        return []
    steps = schedules[0].workload.origin.steps
    known = f"{record.jobs:,} of {len(schedules[0]):,} jobs have recorded waits. " if record.jobs < len(schedules[0]) else ""
    unchanged = "the recorded waits are of the unchanged log"
    changed = f" The log was changed before the simulation ({'; '.join(steps)}); {unchanged}." if steps else ""
    folded = [Fold(table.title, [table]) for table in parts[1:] if 2 <= len(table.rows) <= tables.MOST_MONTHS]
    return [Section("Recorded waits", [note(known + tables.RECORDED + changed), parts[0], *folded])]


def _figures(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array], trim: str, live: bool) -> list[Section]:
    from walltime.comparison.heatmaps import heat_maps
    from walltime.report import figures  # matplotlib is slow to load; only a page needs it

    unhurried = [100 * float(np.mean(s.wait[m] == 0)) for s, m in zip(schedules, masks, strict=True)]
    at_once = ", ".join(f"{human_percent(share)} under {lower_first(name)}" for name, share in zip(names, unhurried, strict=True))
    policies = ", ".join(names)
    spread = [
        Drawing(
            figures.WAITS.figure(schedules, masks),
            "wait",
            f"Curves of the share of jobs that wait less than a given time, for {policies}. Share of jobs that do not wait: {at_once}.",
            "Share of jobs that wait less than the time on the horizontal axis. The dots at the left end are the jobs that do not wait: "
            f"{at_once}.",
            wide=False,
        ),
        Drawing(
            figures.SLOWDOWNS.figure(schedules, masks),
            "slowdown",
            f"Curves of the share of jobs with at most a given bounded slowdown, for {policies}.",
            "Share of jobs with at most the bounded slowdown on the horizontal axis: (wait + runtime) / runtime, at least 1, with runtimes "
            "of at least 10 s.",
            wide=False,
        ),
    ]
    over_time = Drawing(
        figures.queue_and_utilization(schedules),
        "time",
        f"Number of waiting jobs and share of busy processors over time, for {policies}.",
        "All jobs, including those that are not measured." if trim != "none" else "",
    )
    longest = tables.longest_waits_table(names, schedules)
    kinds = tables.kinds_table(names, schedules, masks)
    return [
        Section("Distribution of waits", [Fragment("charts-of-waits.html") if live else None, Group(spread, "pair only-static")]),
        Section("Waits by group", [*heat_maps(schedules, masks), *tables.breakdowns(names, schedules, trim)]),
        *([Section("Longest waits", [longest])] if longest.rows else []),
        Section("Queue and machine over time", [Fragment("charts-over-time.html") if live else None, Group([over_time], "only-static")]),
        *([Section("Schedules, job by job", [Fragment("gantts.html")], "live-title", "only-live")] if live else []),
        _stretch(names, schedules),
        *_nodes(names, schedules),
        Section("Kinds of starts", [kinds]),
    ]


def _nodes(names: Sequence[str], schedules: Sequence[Schedule]) -> list[Section]:
    """Return a section with the nodes of each schedule that has individual nodes; an empty list if none has."""
    from walltime.report import figures
    from walltime.report.nodes_figure import nodes_figure

    begin, end = choose_stretch(schedules)
    where = f"{human_time(end - begin)} from {figures.moment(schedules[0], begin)}"
    drawings = [
        Drawing(nodes_figure(schedule, begin, end), f"nodes{k + 1}", f"Resources in use on each node under {lower_first(name)}, {where}.")
        for k, (name, schedule) in enumerate(zip(names, schedules, strict=True))
        if schedule.slots is not None and schedule.placement is not None
    ]
    said = f"The {where}. Rows are nodes, grouped by pool; the darker, the larger the share of the node in use."
    return [Section("Use of the nodes", [note(said), *drawings])] if drawings else []


def _stretch(names: Sequence[str], schedules: Sequence[Schedule]) -> Section:
    from walltime.report import figures

    begin, end = choose_stretch(schedules)
    since = figures.moment(schedules[0], begin)
    stretch = "a period with long queues, the same for every policy" if len(names) > 1 else "a period with a long queue"
    why = "the whole workload" if len(schedules[0]) <= JOBS else stretch
    drawings = []
    for k, (name, schedule) in enumerate(zip(names, schedules, strict=True)):
        running = int(np.sum((schedule.start < end) & (schedule.end > begin)))
        alternative = f"Gantt chart of {running:,} jobs under {lower_first(name)}, {human_time(end - begin)} from {since}."
        drawings.append(Drawing(figures.gantt(schedule, begin, end, title=name), f"gantt{k + 1}", alternative))
    where = (
        f"The {human_time(end - begin)} from {since}: {why}. Each rectangle is a job: its height is the number of processors, its width "
        "the runtime. The simulation only counts processors; positions are chosen for the drawing, so a job may be split into strips."
    )
    return Section("Excerpt of the schedules", [note(where), *drawings], shown="only-static")
