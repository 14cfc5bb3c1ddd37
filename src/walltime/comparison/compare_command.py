"""`walltime compare`: compare several policies, or all of them, on one log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import Files, JobSelectionWithLoads, LogOptions, SchedulingOptions, machine_in, one_workload
from walltime.cli.output import PageOutput, caveats, progress_bar, write_rows
from walltime.comparison.simulate_command import GroupOptions, draw_figures, run_record, write_run_page
from walltime.errors import PolicyError
from walltime.metrics.intervals import LEVEL, shown_level
from walltime.tables import Cell, Table
from walltime.wording import counted, percent

if TYPE_CHECKING:
    from walltime.schedule import Schedule
    from walltime.simulation import Spread
    from walltime.workload import Workload

DEFAULT = ("fcfs", "easy", "conservative")
OTHERS = ("fcfs", "easy")
"""The policies for comparison with a site's own policy."""
ALL, BASELINE = "all", "easy"
SHARED = (
    *("trace", "sha256", "procs", "jobs", "dropped", "changed", "noticed", "steps"),
    *("feedback", "estimates", "overrun", "coincident", "dialect", "trim", "seed", "version"),
)
"""The keys of the `--json` record that are the same for all runs."""


@dataclass(frozen=True)
class SchedulerOptions:
    """The policies, and their machine."""

    policy: list[str] | None = o.field(
        None, f"Compare this policy: {o.POLICIES}; 'all' compares all with easy, sorted by bounded slowdown.", group=o.SCHEDULER
    )
    machine_file: o.MachineOption = None
    schedule: list[Path] | None = o.field(
        None,
        "Compare this schedule of another program as well: .csv or .parquet with job_id, start and end, _jobs.csv of Batsim, or .swf.",
        group=o.SCHEDULER,
    )
    schedule_name: list[str] | None = o.field(
        None, "Name the schedules of other programs, in their order. Default: the names of their files.", group=o.SCHEDULER, advanced=True
    )


@dataclass(frozen=True)
class TableOptions(GroupOptions):
    """The tables that are shown."""

    metric: list[str] | None = o.field(
        None, "Show this metric as well: p99_wait, jain_users, FILE.py:NAME, ...; walltime list metrics shows all.", advanced=True
    )
    gains: bool = o.field(False, "Show which jobs and users gain and lose, and the largest changes.")
    no_spread: bool = o.field(
        False, "Leave out the intervals, which require simulations of copies of the log with slightly shifted submissions.", advanced=True
    )


@manual(
    "tutorial/comparison",
    ("Compare two policies, and write a report page.", "compare KTH-SP2 --policy fcfs --policy easy --report page.html"),
    (
        "Show which jobs and users gain from shortest-job-first backfilling.",
        "compare KTH-SP2 --policy easy --policy easy:backfill-order=sjf --gains",
    ),
)
def compare(
    trace: o.TraceArgument,
    *,
    compared: SchedulerOptions,
    run: SchedulingOptions,
    reading: LogOptions,
    part: JobSelectionWithLoads,
    shown: TableOptions,
    files: Files,
    output: PageOutput,
) -> None:
    """Simulate a log under several policies and compare their waits, slowdowns and utilization.

    By default, FCFS, EASY and conservative backfilling are compared; with a machine file that sets a policy, this policy is compared with
    FCFS and EASY. Intervals come from copies of the log with slightly shifted submissions.
    """
    from walltime.comparison.caveats import caveats_of
    from walltime.comparison.tables import breakdown_table, changes_table, sides_table, summary_table
    from walltime.policy import policy_variants
    from walltime.schedule.schedule import labels
    from walltime.schedule.side_by_side import compare as side_by_side
    from walltime.simulation.spread import COPIES

    machine = machine_in(compared.machine_file)
    site = [] if machine is None or machine.policy is None else [machine.policy, *OTHERS]
    every, many = compared.policy is not None and ALL in compared.policy, not run.is_single or len(part.loads) > 1
    named = compared.policy or site or list(DEFAULT)
    if every:
        named = [BASELINE, *(one for one in policy_variants() if one != BASELINE), *(own for own in named if own != ALL)]
    chosen = run.schedulers(named)
    groupings = shown.groupings
    if many:
        from walltime.comparison.many_runs_command import refuse, run_many

        refuse(
            {
                "--monthly": shown.monthly,
                "--by": groupings,
                "--gains": shown.gains,
                "--schedule": compared.schedule,
                "--metric": shown.metric,
                "--test-share": run.test_share < 1,
            }
        )
        run_many(trace, reading.load(trace, machine)[0], chosen, run, part, machine, output, files)
        return
    if shown.no_spread and run.level_given is not None:
        raise PolicyError("--level sets the level of the intervals that --no-spread leaves out; leave one out", "option_without_effect")
    workload, seconds_read = reading.load(trace, machine)
    workload = one_workload(run, part, workload)
    elsewhere = others(compared, workload, machine is not None)
    schedules = [run.run(workload, scheduler, machine=machine) for scheduler in chosen] + elsewhere
    trim = run.measuring
    if every:
        schedules[1:] = sorted(schedules[1:], key=lambda schedule: schedule.summary(trim).mean_bounded_slowdown)
    records = [run_record(schedule, run, trace, seconds_read)[0] for schedule in schedules]
    if files.out is not None:
        write_rows(files.out, side_by_side(*schedules, trim=trim).table())
    spread = None if shown.no_spread else spread_of(schedules, trim, COPIES if every else None, run.level)
    warnings = caveats_of(schedules, trim, run.estimates, spread)
    blocks = comparison_blocks(schedules, trim, warnings, spread)
    names = labels(schedules)
    table = summary_table(names, [schedule.summary(trim) for schedule in schedules], title=_title(schedules, trim))
    more = list(shown.tables(schedules, names, records, trim, lambda rows, text: breakdown_table(names, rows, text)))
    if shown.metric:
        from walltime.comparison.measures import measure

        rows = []
        for record, name, schedule in zip(records, names, schedules, strict=True):
            values = {metric: schedule.metric(metric, trim) for metric in shown.metric}
            record["metrics"] = {metric: value if math.isfinite(value) else None for metric, value in values.items()}
            rows.append([name, *(Cell(measure(metric).show(value), value=value) for metric, value in values.items())])
        more.append(Table(["policy", *(measure(metric).label for metric in shown.metric)], rows, "Other metrics"))
    if shown.gains:
        for record, name, schedule in zip(records[1:], names[1:], schedules[1:], strict=True):
            change = schedules[0].gains(schedule, trim)
            record["gains"] = change.as_dict()
            title = f"from {names[0]} to {name}"
            more += [sides_table(change, f"Winners and losers, {title}"), changes_table(change, f"Largest changes, {title}")]
    if output.report is not None:
        write_run_page(output.report, schedules, run, spread)
    drawn = draw_figures(files.figure, schedules, trim, files.size)
    record = as_object(records, output.report, warnings, spread)
    blocks[2:2] = more
    outputs = {counted(len(schedules), "row"): files.out, **drawn}
    output.show(record, blocks, [table.without("jobs measured", "mean slowdown"), *more], **outputs)


def others(compared: SchedulerOptions, workload: Workload, on_machine: bool) -> list[Schedule]:
    """Return the schedules of other programs; raises PolicyError for names without schedules, and on a machine file."""
    from walltime.schedule import Schedule

    files, names = compared.schedule or [], compared.schedule_name or []
    if len(names) > len(files):
        raise PolicyError(
            f"--schedule-name names {len(names)} schedules, but only {len(files)} are given; leave out names", "option_without_effect"
        )
    if files and on_machine:
        raise PolicyError("schedules of other programs are compared on a single pool only; leave out --machine", "unsupported_machine")
    names = [*names, *(file.name for file in files[len(names) :])]
    return [Schedule.from_table(file, workload, name) for file, name in zip(files, names, strict=True)]


def spread_of(schedules: Sequence[Schedule], trim: str, copies: int | None = None, level: float = LEVEL) -> Spread | None:
    """Return the spread of the averages in shaken copies of the log, with a progress bar for long runs; None if it would take too long."""
    from walltime.simulation.spread import COPIES, shaking_spread

    if len(schedules) < 2:
        return None
    with progress_bar(copies or COPIES, "copies of the log") as progress:
        return shaking_spread(schedules, trim, progress, copies, level)


def as_object(records: Sequence[dict[str, Any]], report: Path | None, sentences: Sequence[str], spread: Spread | None) -> dict[str, Any]:
    """Return the `--json` record: the shared keys, then the runs."""
    shared = {name: records[0][name] for name in SHARED}
    return shared | {"report": report, "caveats": sentences, "spread": None if spread is None else spread.as_dict(), "runs": list(records)}


def comparison_blocks(schedules: Sequence[Schedule], trim: str, sentences: Sequence[str], spread: Spread | None) -> list[Any]:
    """Return the answer in a sentence, a table with a row per policy, and the notes."""
    from walltime.comparison import answer
    from walltime.comparison.tables import policies_table
    from walltime.schedule.schedule import labels

    names, summaries = labels(schedules), [schedule.summary(trim) for schedule in schedules]
    blocks: list[Any] = [
        answer(schedules[0].workload.origin.site, names, schedules, summaries, spread),
        policies_table(names, summaries, _title(schedules, trim), spread),
    ]
    if spread is not None:
        blocks.append(
            f"±: {shown_level(spread.level)} prediction interval for one more copy of this log with submissions shifted by up to "
            f"{spread.seconds} s. "
            "Other logs may differ."
        )
    return [*blocks, *caveats(sentences)]


def _title(schedules: Sequence[Schedule], trim: str) -> str:
    first, workload = schedules[0].summary(trim), schedules[0].workload
    jobs = counted(first.jobs, "job") if trim == "none" else f"{counted(first.jobs, 'job')}, {first.measured_jobs:,} measured"
    return f"{workload.origin.site}: {jobs}, {counted(workload.machine_procs, 'processor')}, offered load {percent(first.offered_load)}"
