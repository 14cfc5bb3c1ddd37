"""The side-car's page, and the rows of `walltime slurm what-happened`: what it did, which promises broke, what it gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.provenance import provenance
from walltime.report.page import Drawing, Heading, Page, Paragraph, Section
from walltime.slurm.sidecar.review import Review, Run
from walltime.slurm.starts.page import clock
from walltime.tables import Table
from walltime.whatif import WhatIf
from walltime.whatif.effects import signed
from walltime.whatif.page import all_caveats, drawings, effect_sections, three_numbers
from walltime.wording import human_time, sanitize
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNKNOWN = "-"
MOST_ROWS = 200
"""So many rows of a table are on the page, so many fewer in the terminal."""
RUN_COLUMNS = (
    *("job", "user", "started (UTC)", "predicted", "TimeMin", "ran", "limit"),
    *("ahead of", "by backfill", "left when raised", "ended"),
)
DELAY_COLUMNS = ("job", "user", "expected start (UTC)", "start (UTC)", "later by")
PROMISE_COLUMNS = ("job", "user", "promised start", "start", "later by")
RECORDED = "recorded: the side-car's ledger and the job log"


def run_row(run: Run) -> list[str]:
    """A row of text; the columns are `RUN_COLUMNS`."""
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


def alarm(review: Review) -> str:
    """The first line: jobs that were ended before their users' limits; empty if there is none."""
    if not review.killed:
        return ""
    told = ", ".join(
        f"{run.key} of {sanitize(run.user, 20)} after {human_time(run.runtime or 0)} of {human_time(run.limit)}"
        + (" (its limit was whole, and somebody lowered it while it ran)" if run.lowered else "")
        for run in review.killed[:20]
    )
    more = f", and {len(review.killed) - 20:,} more" if len(review.killed) > 20 else ""
    count = "1 JOB WAS" if len(review.killed) == 1 else f"{len(review.killed):,} JOBS WERE"
    return f"{count} ENDED BEFORE THE USER'S LIMIT: {told}{more}. Stop the side-car, and find out why."


def sentences(review: Review) -> list[str]:
    """What happened, what is recorded first; with the alarm as the first sentence, if there is one."""
    holes, broken = review.in_holes, review.broken
    hours = f"{review.processor_hours:,.1f} processor-hours"
    hours = hours if review.node_hours is None else f"{review.node_hours:,.1f} node-hours ({hours})"
    ahead = sum(run.ahead_of > 0 for run in holes)
    said = [alarm(review)] if review.killed else []
    said += [
        f"{clock(int(review.since))} to {clock(int(review.until))} UTC, {RECORDED}:",
        f"{_jobs(review.adjusted, 'got', 'got')} a TimeMin, {len(review.runs):,} of adjusted ones started, {len(holes):,} by backfill, "
        f"{ahead:,} of them ahead of jobs that had waited for longer; {hours} ran in holes.",
        f"{sum(run.short for run in review.runs):,} were seen with a shortened limit; {_given_back(review)}.",
        f"{len(broken):,} of the backfilled ones outlived their TimeMin: for these the prediction was too short.",
    ]
    if review.not_in_log:
        said.append(f"{review.not_in_log:,} that started are not in the log; it may end too early.")
    if review.alarms or review.failures:
        said.append(f"{len(review.alarms):,} alarms, {len(review.failures):,} commands that failed or give-backs that were missed.")
    if review.delays is not None:
        hours_late = sum(one.seconds for one in review.delays) / 3600
        said.append(
            f"Simulated with {review.simulated}: {_jobs(len(review.delays), 'starts', 'start')} later because others outlived their "
            "TimeMin, "
            f"{hours_late:,.1f} h together" + (f", {human_time(review.delays[0].seconds)} at most." if review.delays else ".")
        )
    return said


def _jobs(count: int, one: str, several: str) -> str:
    return f"1 job {one}" if count == 1 else f"{count:,} jobs {several}"


def _given_back(review: Review) -> str:
    if not review.given_back:
        return "the side-car had to raise none"
    least = review.given_back[0]
    return (
        f"the side-car raised {len(review.given_back):,}, the one with the least time left ({least.key}) "
        f"{human_time(least.left or 0)} before its end"
    )


def tables_of(review: Review, most: int = 20) -> list[Table]:
    """What went wrong, the worst first."""
    tables = []
    for title, runs in (
        ("ended before the user's limit", review.killed),
        ("broken promises: backfilled, and outlived TimeMin (recorded)", sorted(review.broken, key=_beyond, reverse=True)),
        ("limits that the side-car raised, with the least time left first (recorded)", review.given_back),
    ):
        if runs:
            tables.append(Table(RUN_COLUMNS, [run_row(run) for run in runs[:most]], title, texts=2))
    if review.delays:
        rows = [
            [one.key, sanitize(one.user, 20), clock(one.expected), clock(one.start), human_time(one.seconds)]
            for one in review.delays[:most]
        ]
        tables.append(Table(DELAY_COLUMNS, rows, "jobs that start later because of broken promises (simulated)", texts=2))
    for title, lines in (("alarms", review.alarms), ("failures", review.failures)):
        if lines:
            rows = [[clock(int(time)), sanitize(what, 200)] for time, what in lines[-most:]]
            tables.append(Table(("time (UTC)", "what"), rows, title, texts=2))
    return tables


def _beyond(run: Run) -> int:
    return (run.runtime or 0) - run.time_min


def missed(answer: WhatIf, most: int = MOST_ROWS) -> tuple[int, int, Table]:
    """Jobs of the simulated world with the side-car that start after their first reserved start: how many, of how many, and which."""
    schedule = answer.effects[0].schedule
    late = schedule.start - schedule.reserved_start
    reserved = schedule.reserved_start >= 0
    broken = np.flatnonzero(reserved & (late > 0))
    broken = broken[np.argsort(-late[broken], kind="stable")]
    zero = schedule.workload.origin.unix_start_time

    def when(time: int) -> str:
        return human_time(time) if zero is None else clock(zero + time)

    rows = [
        [
            str(schedule.workload.job_id[k]),
            _user(schedule.workload, k),
            when(int(schedule.reserved_start[k])),
            when(int(schedule.start[k])),
            human_time(int(late[k])),
        ]
        for k in broken[:most].tolist()
    ]
    return len(broken), int(reserved.sum()), Table(PROMISE_COLUMNS, rows, "Broken promises of the simulation", texts=2)


def _user(jobs: Workload, place: int) -> str:
    number = int(jobs.columns["user"][place]) if "user" in jobs.columns else -1
    return sanitize(jobs.origin.name_of("user", number), 20) if number >= 0 else UNKNOWN


def answer(world: WhatIf) -> str:
    """What the side-car gains, in a sentence."""
    effect = world.effects[0]
    wait, ratio = effect.differences["mean_wait"], effect.differences["mean_bounded_slowdown"]
    trust = "" if not effect.doubts else f" Do not trust this yet: {'; '.join(effect.doubts)}."
    return (
        f"With the side-car the mean wait is {human_time(wait.changed)}, without it {human_time(wait.today)} ({signed(wait.difference)}); "
        f"the mean bounded slowdown {ratio.changed:.3g} instead of {ratio.today:.3g}. Both are simulated, on the jobs of the log.{trust}"
    )


def recorded(world: WhatIf) -> str:
    """The recorded waits beside those of the simulation without the side-car, in a sentence."""
    if world.calibration is None:
        return "The log records no waits, so nothing is known of how far the simulation resembles the machine."
    all_jobs = world.calibration.overall
    return (
        f"Recorded was a mean wait of {human_time(all_jobs.mean_recorded)} (median {human_time(all_jobs.median_recorded)}); the simulation "
        f"without the side-car has {human_time(all_jobs.mean_simulated)} ({human_time(all_jobs.median_simulated)}) for the same jobs."
    )


def adjust_page(review: Review | None, world: WhatIf | None, jobs: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """The page of what happened, by the ledger, and what was gained, by simulation; either may be None."""
    name = sanitize(jobs.origin.name)
    answers = [] if review is None else [review_answer(review)]
    picture = None if review is None else runs_drawing(review)
    sections, caveats = [], []
    if review is not None:
        told = sentences(review)
        tables = [block for table in tables_of(review, MOST_ROWS) for block in (Heading(_capital(table.title)), table)]
        if review.runs:
            every = Table(RUN_COLUMNS, [run_row(run) for run in review.runs[-MOST_ROWS:]], "all adjusted jobs that started", texts=2)
            tables += [Heading(_capital(every.title)), every]
        sections.append(Section("What happened", [*map(Paragraph, told), *tables]))
        caveats += list(review.notes)
        if review.delays is not None:
            caveats.append(
                "Delays of other jobs are simulated: the log with the TimeMin of the ledger, once as it ran and once with every broken "
                "promise kept. Which job would really have started when, nobody knows."
            )
    if world is not None:
        answers.append(answer(world))
        picture = drawings(world)[0]
        effects, *others, calibration = effect_sections(world)
        gain = [*effects.blocks[:1], Paragraph(recorded(world)), *effects.blocks[1:]]
        sections += [Section("What it gains", gain), *others, _promises(world), calibration]
        caveats += ["The gain compares two simulations of the same jobs; neither is what was recorded.", *all_caveats(world)]
    title = f"The side-car on {name}" if world is None else f"What the side-car gains on {name}"
    numbers = [] if review is None else review_numbers(review)
    if world is not None:
        numbers = [*numbers[:1], *three_numbers(world)[:: 2 if review is not None else 1]]
    record = provenance(jobs, **(settings or {}))
    return Page("adjusted walltimes", title, answers, sections, caveats=caveats, numbers=numbers, picture=picture, record=record)


def review_answer(review: Review) -> str:
    """What happened in plain words: whether a job was ended early, what was started sooner, and which promises did not hold."""
    span = f"from {clock(int(review.since))} to {clock(int(review.until))} UTC"
    holes, broken = review.in_holes, review.broken
    first = alarm(review) or f"{span[0].upper()}{span[1:]} no job was ended before its user's limit."
    ahead = sum(run.ahead_of > 0 for run in holes)
    started = f"{len(review.runs):,} started, {len(holes):,} by backfill, {ahead:,} ahead of jobs that had waited longer"
    said = f"The side-car had {_jobs(review.adjusted, 'planned', 'planned')} by shorter walltimes, of which {started}"
    longer = f"; {len(broken):,} of these ran longer than planned, so others may have started later" if broken else ""
    return f"{first} {said}{longer}."


def runs_drawing(review: Review) -> Drawing | None:
    """How long the adjusted jobs ran against what they were planned for; None if none of them has ended."""
    ended = [run for run in review.runs if run.runtime is not None]
    if not ended:
        return None
    longer = sum(run.outlived for run in ended)
    words = f"{longer:,} of {len(ended):,} adjusted jobs ran longer than planned: those above the line."
    return Drawing(runs_figure(ended), "runs", words, words, wide=False, pixels=620)


def runs_figure(runs: Sequence[Run]) -> Figure:
    """A mark for each run that has ended, hours; those that were ended before their users' limits stand out."""
    from walltime.report.figures import BLUE, panel

    with panel() as (figure, axes):
        for early, colour, marker, label in ((False, BLUE, "o", ""), (True, "#D55E00", "X", "ended before the user's limit")):
            chosen = [run for run in runs if run.killed_early == early]
            x, y = ([getattr(run, name) / 3600 for run in chosen] for name in ("time_min", "runtime"))
            axes.plot(x, y, linestyle="", marker=marker, color=colour, markersize=9 if early else 5, alpha=1 if early else 0.6, label=label)
        largest = max(max(run.time_min, run.runtime or 0) for run in runs) / 3600
        axes.plot([0, largest], [0, largest], color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlabel("planned by (TimeMin), h")
        axes.set_ylabel("ran, h")
        if any(run.killed_early for run in runs):
            axes.legend()
    return figure


def review_numbers(review: Review) -> list[tuple[str, str]]:
    """Jobs that were killed early, of which there must be none; those that backfill started; limits that were given back."""
    return [
        ("killed before the users' limits", f"{len(review.killed):,} of {len(review.runs):,}"),
        ("started by backfill", f"{len(review.in_holes):,}"),
        ("limits given back", f"{len(review.given_back):,}"),
    ]


def _promises(world: WhatIf) -> Section:
    """Reserved starts that were missed in the simulated world with the side-car."""
    count, reserved, table = missed(world)
    told = (
        f"{count:,} of {reserved:,} jobs with a reservation start after the first one that they had in the simulated world with the "
        "side-car." + (f" The {len(table.rows):,} that start the latest:" if count > len(table.rows) else "")
    )
    return Section(table.title, [Paragraph(told), table if table.rows else None])


def _capital(title: str) -> str:
    return f"{title[:1].upper()}{title[1:]}"
