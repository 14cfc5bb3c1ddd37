"""The side-car's page, and the output of `walltime slurm what-happened`: adjustments, overruns and the simulated gain."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from walltime.provenance import provenance
from walltime.report.page import Drawing, Heading, Page, Paragraph, Section
from walltime.slurm.sidecar.review import Review, Run
from walltime.slurm.starts.page import clock
from walltime.tables import Table
from walltime.whatif import WhatIf
from walltime.whatif.figures import drawings
from walltime.whatif.page import all_caveats, effect_sections, three_numbers
from walltime.wording import counted, human_time, sanitize
from walltime.workload import Workload

UNKNOWN = "-"
MOST_ROWS = 200
"""The maximum number of rows of a table on the page."""
RUN_COLUMNS = (
    *("job", "user", "started (UTC)", "predicted", "TimeMin", "ran", "limit"),
    *("ahead of", "by backfill", "left when raised", "ended"),
)
DELAY_COLUMNS = ("job", "user", "expected start (UTC)", "start (UTC)", "later by")
PROMISE_COLUMNS = ("job", "user", "promised start", "start", "later by")
RECORDED = "from the side-car's ledger and the job log"


def run_row(run: Run) -> list[str]:
    """Return a table's row for a run; its columns are `RUN_COLUMNS`."""
    return [
        run.key,
        sanitize(run.user, 20),
        clock(run.start),
        UNKNOWN if run.predicted is None else human_time(run.predicted),
        human_time(run.time_min),
        UNKNOWN if run.runtime is None else human_time(run.runtime),
        human_time(run.limit),
        f"{run.ahead_of:,}" if run.runtime is not None else UNKNOWN,
        {True: "yes", False: "no", None: UNKNOWN}[run.backfilled],
        UNKNOWN if run.left is None else human_time(run.left),
        sanitize(run.state, 20) or UNKNOWN,
    ]


def killed_alarm(review: Review) -> str:
    """Return a warning about jobs that were ended before their users' limits; empty if there are none."""
    killed = review.killed
    if not killed:
        return ""
    shown = ", ".join(
        f"{run.key} of {sanitize(run.user, 20)} after {human_time(run.runtime or 0)} of {human_time(run.limit)}"
        + (" (its full limit was lowered while it ran)" if run.lowered else "")
        for run in killed[:20]
    )
    more = f", and {len(killed) - 20:,} more" if len(killed) > 20 else ""
    count = "1 JOB WAS" if len(killed) == 1 else f"{len(killed):,} JOBS WERE"
    return f"{count} ENDED BEFORE THE USER'S LIMIT. Stop the side-car and find the cause. Jobs: {shown}{more}."


def review_sentences(review: Review) -> list[str]:
    """Return the events in sentences; the alarm comes first, if there is one."""
    raised = review.restored
    hours = f"{review.processor_hours:,.1f} processor-hours"
    hours = hours if review.node_hours is None else f"{review.node_hours:,.1f} node-hours ({hours})"
    least = f"; job {raised[0].key} had the least time left, {human_time(raised[0].left or 0)}" if raised else ""
    sentences = [killed_alarm(review)] if review.killed else []
    sentences += [
        f"{clock(int(review.since))} to {clock(int(review.until))} UTC, {RECORDED}:",
        f"{_started(review)}. The backfilled jobs used {hours}.",
        f"{counted(sum(run.short for run in review.runs), 'job')} had a shortened limit while running. The side-car raised "
        f"{counted(len(raised), 'limit')}{least}.",
        f"{counted(len(review.broken), 'backfilled job')} ran longer than TimeMin, because the prediction was too short.",
    ]
    if review.not_in_log:
        sentences.append(f"The log lacks {counted(review.not_in_log, 'job')} that started; it may end too early.")
    if review.alarms or review.failures:
        sentences.append(f"Alarms: {len(review.alarms):,}. Failed commands, or limits not restored: {len(review.failures):,}.")
    if review.delays is not None:
        hours_late = sum(one.seconds for one in review.delays) / 3600
        longest = f": {hours_late:,.1f} h in total, at most {human_time(review.delays[0].seconds)}" if review.delays else ""
        sentences.append(
            f"In a simulation with {review.simulated}, {counted(len(review.delays), 'job')} started later because others ran longer "
            f"than TimeMin{longest}."
        )
    return sentences


def _started(review: Review) -> str:
    """Return how many jobs were adjusted and started, and how."""
    backfilled = review.started_by_backfill
    ahead = sum(run.ahead_of > 0 for run in backfilled)
    return (
        f"The side-car adjusted {counted(review.adjusted, 'job')}; {len(review.runs):,} started, {len(backfilled):,} by backfill "
        f"({ahead:,} ahead of jobs that had waited longer)"
    )


def review_tables(review: Review, most: int = 20) -> list[Table]:
    """Return tables of failures, broken promises and delays, the worst first."""
    broken = sorted(review.broken, key=lambda run: run.time_min - (run.runtime or 0))
    listed = {
        "Jobs ended before the user's limit": review.killed,
        "Backfilled jobs that ran longer than TimeMin (recorded)": broken,
        "Limits raised by the side-car, least time left first (recorded)": review.restored,
    }
    tables = [Table(RUN_COLUMNS, list(map(run_row, runs[:most])), title, texts=2) for title, runs in listed.items() if runs]
    if review.delays:
        rows = [
            [one.key, sanitize(one.user, 20), clock(one.expected), clock(one.start), human_time(one.seconds)]
            for one in review.delays[:most]
        ]
        tables.append(Table(DELAY_COLUMNS, rows, "Jobs delayed by others that ran longer than TimeMin (simulated)", texts=2))
    for title, lines in (("alarms", review.alarms), ("failures", review.failures)):
        if lines:
            rows = [[clock(int(time)), sanitize(message, 200)] for time, message in lines[-most:]]
            tables.append(Table(("time (UTC)", "message"), rows, title, texts=2))
    return tables


def gain_sentence(world: WhatIf) -> str:
    """Return a sentence on the simulated gain from the side-car."""
    effect = world.effects[0]
    wait, ratio = effect.differences["mean_wait"], effect.differences["mean_bounded_slowdown"]
    doubts = "" if not effect.doubts else f" Do not trust this yet: {'; '.join(effect.doubts)}."
    moved = [
        f"stays at {today}" if today == changed else f"changes from {today} to {changed}"
        for today, changed in ((human_time(wait.today), human_time(wait.changed)), (f"{ratio.today:.3g}", f"{ratio.changed:.3g}"))
    ]
    return (
        f"In simulations of the log's jobs with the side-car, the mean wait {moved[0]}, and the mean bounded slowdown {moved[1]}.{doubts}"
    )


def calibration_sentence(world: WhatIf) -> str:
    """Return a sentence that compares the recorded waits with the waits simulated without the side-car."""
    if world.calibration is None:
        return "The log records no waits, so it is unknown how closely the simulation resembles the machine."
    all_jobs = world.calibration.overall
    return (
        f"The recorded mean wait is {human_time(all_jobs.mean_recorded)} (median {human_time(all_jobs.median_recorded)}). For the same "
        f"jobs, the simulation without the side-car gives {human_time(all_jobs.mean_simulated)} (median "
        f"{human_time(all_jobs.median_simulated)})."
    )


def adjust_page(review: Review | None, world: WhatIf | None, jobs: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the page on the events in the ledger and the simulated gain; `review` or `world` may be None."""
    name = sanitize(jobs.origin.name)
    answers, sections, caveats, numbers, picture = [], [], [], [], None
    if review is not None:
        answers, picture = [review_answer(review)], runs_drawing(review)
        tables = review_tables(review, MOST_ROWS)
        if review.runs:
            rows = [run_row(run) for run in review.runs[-MOST_ROWS:]]
            tables.append(Table(RUN_COLUMNS, rows, "All adjusted jobs that started", texts=2))
        blocks = [block for table in tables for block in (Heading(table.title[:1].upper() + table.title[1:]), table)]
        sections.append(Section("What happened", [*map(Paragraph, review_sentences(review)), *blocks]))
        caveats += list(review.notes)
        if review.delays is not None:
            caveats.append(
                "Delays of other jobs are simulated: the log with the ledger's TimeMin, once as it ran and once with every adjusted job "
                "ending within TimeMin. The real start times without adjustments are unknown."
            )
        numbers = [  # the first must be 0
            ("killed before the users' limits", f"{len(review.killed):,} of {len(review.runs):,}"),
            ("started by backfill", f"{len(review.started_by_backfill):,}"),
            ("limits restored", f"{len(review.restored):,}"),
        ]
    if world is not None:
        answers.append(gain_sentence(world))
        picture = drawings(world)[0]
        effects, *others, calibration = effect_sections(world)
        gain = [*effects.blocks[:1], Paragraph(calibration_sentence(world)), *effects.blocks[1:]]
        sections += [Section("Gain", gain), *others, _promises(world), calibration]
        caveats += ["The gain compares two simulations of the same jobs; neither equals the record.", *all_caveats(world)]
        numbers = [*numbers[:1], *three_numbers(world)[:: 2 if review is not None else 1]]
    title = f"The side-car on {name}" if world is None else f"Gains by the side-car on {name}"
    record = provenance(jobs, **(settings or {}))
    return Page("adjusted walltimes", title, answers, sections, caveats=caveats, numbers=numbers, picture=picture, record=record)


def review_answer(review: Review) -> str:
    """Return the main results: jobs that were ended early, jobs that started sooner, and jobs that outlived TimeMin."""
    span = f"{clock(int(review.since))} to {clock(int(review.until))} UTC"
    count = len(review.broken)
    first = killed_alarm(review) or f"From {span}, no job was ended before its user's limit."
    longer = f" {counted(count, 'backfilled job')} ran longer than planned, so others may have started later." if count else ""
    return f"{first} {_started(review)}.{longer}"


def runs_drawing(review: Review) -> Drawing | None:
    """Draw the runtimes of adjusted jobs over their TimeMin, h; return None if no adjusted job has ended.

    Runs that were ended before their users' limits have their own marker.
    """
    from walltime.report.figures import BLUE, panel

    ended = [run for run in review.runs if run.runtime is not None]
    if not ended:
        return None
    longer = sum(run.outlived for run in ended)
    words = f"{longer:,} of {len(ended):,} adjusted jobs ran longer than planned: those above the line."
    with panel() as (figure, axes):
        for early, colour, marker, label in ((False, BLUE, "o", ""), (True, "#D55E00", "X", "ended before the user's limit")):
            chosen = [run for run in ended if run.killed_early == early]
            x, y = ([getattr(run, name) / 3600 for run in chosen] for name in ("time_min", "runtime"))
            axes.plot(x, y, linestyle="", marker=marker, color=colour, markersize=9 if early else 5, alpha=1 if early else 0.6, label=label)
        largest = max(max(run.time_min, run.runtime or 0) for run in ended) / 3600
        axes.plot([0, largest], [0, largest], color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlabel("planned by (TimeMin), h")
        axes.set_ylabel("ran, h")
        if any(run.killed_early for run in ended):
            axes.legend()
    return Drawing(figure, "runs", words, words, wide=False, pixels=620)


def _promises(world: WhatIf) -> Section:
    """Return the section on jobs that start after their first reserved start in the simulation with the side-car."""
    schedule = world.effects[0].schedule
    jobs, late = schedule.workload, schedule.start - schedule.reserved_start
    reserved = schedule.reserved_start >= 0
    broken = np.flatnonzero(reserved & (late > 0))
    broken = broken[np.argsort(-late[broken], kind="stable")]
    zero = jobs.origin.unix_start_time

    def shown_time(time: Any) -> str:
        return human_time(int(time)) if zero is None else clock(zero + int(time))

    rows = [
        [
            str(jobs.job_id[k]),
            sanitize(jobs.name_at(k, "user"), 20) or UNKNOWN,
            shown_time(schedule.reserved_start[k]),
            shown_time(schedule.start[k]),
            human_time(int(late[k])),
        ]
        for k in broken[:MOST_ROWS].tolist()
    ]
    text = (
        f"{len(broken):,} of {int(reserved.sum()):,} jobs with a reservation start after their first reserved start in the simulation with "
        "the side-car." + (f" The {len(rows):,} that start the latest:" if len(broken) > len(rows) else "")
    )
    title = "Broken guarantees of the simulation"
    return Section(title, [Paragraph(text), Table(PROMISE_COLUMNS, rows, title, texts=2) if rows else None])
