"""The report: one self-contained HTML page with the answer, the evidence, and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import WorkloadError
from walltime.files import whole_file
from walltime.policy import Backfilling, Kind
from walltime.provenance import provenance
from walltime.report import shell, tables
from walltime.report.breakdowns import breakdown_tables
from walltime.report.caveats import caveats
from walltime.report.gains import gains_section
from walltime.report.interactive import (
    CHARTS_OF_WAITS,
    CHARTS_OVER_TIME,
    CHOICE,
    EVERYTHING,
    GANTTS,
    TABLES,
    can_live,
    live_data,
    scripts,
)
from walltime.report.longest import longest_section
from walltime.report.recorded import recorded_section
from walltime.report.stretch import JOBS, choose_stretch
from walltime.report.tables import text, unbroken
from walltime.report.text import answer, human_percent, human_time, in_prose, labels
from walltime.schedule.schedule import Schedule
from walltime.simulation.spread import Spread

Array = np.ndarray


def write_report(
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

    The page needs no network and no other file, and equal schedules give equal bytes. It is written completely or not at all.
    `live`: with scripts and the jobs of all schedules, so that a browser can show any job and any stretch of time; without them, and
    in browsers without scripts, the page is smaller, and its figures stand still.
    `trim`: which jobs are measured, as in `Schedule.summary`. `notes`: sentences to add under "Caveats". `settings`:
    further entries of the provenance, such as `seed`, `estimates` (the model or its name), and as `command` the command line, a
    string or a list of arguments. `spread`: from `walltime.simulation.shaking_spread`, so that the page says which differences shaking
    the log can undo. Returns the path. Raises WorkloadError if the schedules are not of the same jobs and machine,
    PolicyError for an unknown trim, OutputError if the page cannot be written.
    """
    path = Path(path)
    page = render(schedules, title=title, trim=trim, notes=notes, settings=settings, spread=spread, live=live)
    with whole_file(path) as file:
        file.write(page.encode())
    return path


def render(
    schedules: Sequence[Schedule],
    *,
    title: str | None = None,
    trim: str = "none",
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    spread: Spread | None = None,
    live: bool = True,
) -> str:
    """The page of `write_report` as a string."""
    _check(schedules)
    workload = schedules[0].workload
    names = labels(schedules)
    summaries = [s.summary(trim) for s in schedules]
    masks = [metrics.measured(s.end, s.last_submit, trim) for s in schedules]
    log = workload.origin.name
    heading = title or (f"{names[0]} on {log}" if len(names) == 1 else f"{len(names)} policies on {log}")
    settings = settings or {}
    chosen = {"policies": [s.label for s in schedules], "trim": trim, **_runs(schedules), **settings}
    chosen["feedback"] = any(s.workload.feedback for s in schedules)
    record = provenance(workload, **chosen)
    live = live and can_live(schedules)
    shown = [*caveats(names, schedules, summaries, masks, trim, settings.get("estimates"), spread), *notes]
    body = [
        '<p class="eyebrow">walltime: what every job would have waited</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(answer(log, names, schedules, summaries, spread)))}</p>',
        tables.facts(workload, record),
        shell.caveats_list(shown),
        shell.CONTENTS,
        CHOICE if live else "",
        "<h2>The numbers</h2>",
        tables.summary_table(names, summaries, trim),
        tables.details_table(names, summaries),
        tables.months_table(names, schedules),
        gains_section(names, schedules, trim),
        recorded_section(names, schedules),
    ]
    if len(workload):
        body += _figures(names, schedules, masks, trim, live)
        body += ["<h2>How the jobs started</h2>", tables.kinds_table(names, [_shares(s, m) for s, m in zip(schedules, masks, strict=True)])]
    body += ["<h2>What was dropped or changed</h2>", tables.rules_table(workload)]
    body += ["<h2>Where this comes from</h2>", tables.provenance_table(record), tables.repeat(schedules, record, trim)]
    behind = [live_data(names, schedules, masks), scripts(EVERYTHING, library=True)] if live else [scripts(TABLES)]
    return shell.page(heading, shell.with_contents(filter(None, body)), behind)


def _check(schedules: Sequence[Schedule]) -> None:
    if not schedules:
        raise WorkloadError("a report needs at least one schedule")
    first = schedules[0].workload
    for other in (s.workload for s in schedules[1:]):
        same = first.machine_procs == other.machine_procs and len(first) == len(other)
        for name in ("job_id", "submit", "procs"):
            same = same and np.array_equal(getattr(first, name), getattr(other, name))
        if not same:
            raise WorkloadError(f"a report compares schedules of the same jobs on the same machine: {first!r} and {other!r} are not")


def _runs(schedules: Sequence[Schedule]) -> dict[str, Any]:
    """The settings of the runs: one value if all share it, else one for each."""
    options: dict[str, list[str]] = {name: [getattr(s, name) for s in schedules] for name in ("overrun", "coincident", "engine")}
    dialects = [s.dialect.label for s in schedules]
    if set(dialects) != {"papers"}:
        options["dialect"] = dialects
    policies = [s.policy for s in schedules]
    options["order"] = [p.order.name for p in policies]
    backfilling = [p for p in policies if isinstance(p, Backfilling)]
    if backfilling:
        options["backfill_order"] = [(p.backfill_order or p.order).name for p in backfilling]
    if len(set(options.get("backfill_order", ()))) > 1:  # one for each policy, including those without one
        options["backfill_order"] = [(p.backfill_order or p.order).name if isinstance(p, Backfilling) else "none" for p in policies]
    return {name: values[0] if len(set(values)) == 1 else values for name, values in options.items()}


def _shares(schedule: Schedule, mask: Array) -> dict[str, float]:
    kinds = schedule.kind[mask]
    return {kind.name.lower(): 100 * float(np.mean(kinds == kind)) if len(kinds) else 0.0 for kind in Kind}


def _figures(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array], trim: str, live: bool) -> list[str]:
    from walltime.report import figures  # matplotlib is slow to load; only a page needs it
    from walltime.report.heatmaps import heat_maps

    unhurried = [100 * float(np.mean(s.wait[m] == 0)) for s, m in zip(schedules, masks, strict=True)]
    told = ", ".join(f"{human_percent(share)} under {in_prose(name)}" for name, share in zip(names, unhurried, strict=True))
    begin, end = choose_stretch(schedules)
    since = figures.moment(schedules[0], begin)
    if len(schedules[0]) <= JOBS:
        why = "the whole workload."
    elif len(names) > 1:
        why = "a stretch with long queues, the same for every policy."
    else:
        why = "a stretch with a long queue."
    where = f"The {human_time(end - begin)} from {since} on: {why}"
    out = [
        "<h2>How the waits are spread</h2>",
        CHARTS_OF_WAITS if live else "",
        '<div class="pair only-static">',
        shell.figure(
            figures.wait_distribution(schedules, masks),
            "wait",
            f"Curves of the share of jobs that wait less than a time, for {', '.join(names)}. Do not wait at all: {told}.",
            f"Share of jobs that wait less than a time. The dots at the left end are the jobs that do not wait at all: {told}.",
            wide=False,
        ),
        shell.figure(
            figures.slowdown_distribution(schedules, masks),
            "slowdown",
            f"Curves of the share of jobs with at most a bounded slowdown, for {', '.join(names)}.",
            "Share of jobs with at most a bounded slowdown: (wait + runtime) / runtime, runtimes below 10 s counted as 10 s, at least 1.",
            wide=False,
        ),
        "</div>",
        *heat_maps(schedules, masks),
        *breakdown_tables(names, schedules, trim),
        longest_section(names, schedules),
        "<h2>The queue and the machine over time</h2>",
        CHARTS_OVER_TIME if live else "",
        '<div class="only-static">',
        shell.figure(
            figures.queue_and_utilization(schedules),
            "time",
            f"Number of waiting jobs and share of busy processors over time, for {', '.join(names)}.",
            "All jobs, also those that are not measured." if trim != "none" else "",
        ),
        "</div>",
        GANTTS if live else "",
        '<section class="only-static">',
        "<h2>A stretch of the schedules</h2>",
        f'<p class="note">{text(where)} Each rectangle is a job, its height the processors, its width the time. The model gives a job a '
        "number of processors and no places; the places are chosen for the drawing, so a job may come in several strips.</p>",
    ]
    for k, (name, schedule) in enumerate(zip(names, schedules, strict=True)):
        running = int(np.sum((schedule.start < end) & (schedule.end > begin)))
        alt = f"Gantt chart of {running:,} jobs under {in_prose(name)}, {human_time(end - begin)} from {since} on."
        out.append(shell.figure(figures.gantt(schedule, begin, end, title=name), f"gantt{k + 1}", alt))
    return [*out, "</section>"]
