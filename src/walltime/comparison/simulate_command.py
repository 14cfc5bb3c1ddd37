"""`walltime simulate`: simulate a log under one policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import Files, JobSelectionWithLoads, LogOptions, PolicyOptions, SchedulingOptions, machine_in, one_workload
from walltime.cli.output import PageOutput, caveats, note, progress_bar
from walltime.cli.table import part_of
from walltime.errors import PolicyError
from walltime.metrics.intervals import LEVEL, shown_level
from walltime.tables import Cell, Facts, Table, time_cell
from walltime.wording import counted, human_number, human_time, percent, to_error

if TYPE_CHECKING:
    from walltime.metrics import BatchMeans, DynamicsSummary, RecordedWaits, Summary
    from walltime.report.page import Part
    from walltime.schedule import Schedule
    from walltime.schedule.groups import Edges
    from walltime.simulation import Fairness, Spread


@dataclass(frozen=True)
class GroupOptions:
    """The tables by groups of jobs."""

    monthly: o.MonthlyOption = False
    month_of: o.MonthOfOption = "end"
    by: o.BreakdownOption = None

    @property
    def groupings(self) -> dict[str, tuple[str, Edges]]:
        """Return the groupings by their spelling; raises PolicyError for an invalid one, and for --month-of without --monthly."""
        from walltime.schedule.groups import parse_grouping

        if self.month_of != "end" and not self.monthly:
            raise PolicyError("--month-of needs --monthly; add --monthly, or leave --month-of out")
        return {text: parse_grouping(text) for text in self.by or ()}

    def tables(
        self,
        schedules: Sequence[Schedule],
        names: Sequence[str],
        records: Sequence[dict[str, Any]],
        trim: str,
        table: Callable[[list[list[dict[str, Any]]], str], Table],
    ) -> Iterator[Table]:
        """Yield the tables, and enter their rows into the records; `table`: makes a table from each policy's rows and the grouping."""
        from walltime.comparison.tables import months_table

        if self.monthly:
            months = [schedule.monthly(self.month_of) for schedule in schedules]
            for record, of_policy in zip(records, months, strict=True):
                record["months"] = [month.as_dict() for month in of_policy]
            yield months_table(names, months)
        for text, (grouping, edges) in self.groupings.items():
            rows = [schedule.breakdown(grouping, edges, trim).to_dicts() for schedule in schedules]
            for record, mine in zip(records, rows, strict=True):
                record.setdefault("breakdowns", {})[text] = mine
            yield table(rows, text)


@dataclass(frozen=True)
class TableOptions(GroupOptions):
    """The tables that are shown."""

    batch_means: int | None = o.field(
        None,
        "Print the mean response time of a steady workload with its interval, from batches of at least this many jobs (mualem01: 3333).",
        min=1,
        metavar="JOBS",
        advanced=True,
    )
    dynamics: bool = o.field(
        False,
        "Show how often backfilled jobs delayed the head of the queue, and how often the shortest waiting job was started (tsafrir06).",
        advanced=True,
    )
    fair: bool = o.field(
        False, "Estimate how many jobs start later than they would have if no later jobs had arrived.", "--fairness", advanced=True
    )
    sample: int | None = o.field(
        None, "Sample this many jobs for --fairness. Default: 200.", "--fairness-sample", min=1, metavar="JOBS", advanced=True
    )


@dataclass(frozen=True)
class SimulationFiles(Files):
    """The files that are written."""

    out: Annotated[Path | None, o.out("the schedule", ".csv", ".parquet", ".swf", ".swf.gz")] = None
    timeline: Path | None = o.field(
        None, "Write queue and busy processors over time to this file (.csv or .parquet).", advanced=True, callback=o.writable(*o.TABLE)
    )
    every: str | None = o.field(
        None,
        "Write one row of --timeline for each interval of this length, as in 1h, 30m or 600. Default: a row for each change.",
        "--interval",
        metavar="TIME",
        advanced=True,
    )


@manual(
    "tutorial/your-log",
    ("Simulate a log under EASY backfilling.", "simulate KTH-SP2 --policy easy"),
    ("Write the schedule, and draw the queue over time.", "simulate KTH-SP2 --policy easy --out schedule.csv --figure queue=queue.svg"),
)
def simulate(
    trace: o.TraceArgument,
    *,
    simulated: PolicyOptions,
    run: SchedulingOptions,
    reading: LogOptions,
    part: JobSelectionWithLoads,
    shown: TableOptions,
    files: SimulationFiles,
    verbose: o.VerboseOption = False,
    output: PageOutput,
) -> None:
    """Simulate a log under one policy, and show how long jobs wait and how busy the machine is."""
    from walltime.comparison.caveats import caveats_of
    from walltime.comparison.tables import RECORDED_SHORT, groups_table, recorded_tables
    from walltime.workload.filters import parse_seconds

    machine = machine_in(simulated.machine_file)
    [chosen] = run.schedulers([simulated.policy or (machine.policy if machine is not None else None) or "easy"])
    groupings = shown.groupings
    length = None if files.every is None else parse_seconds(files.every)
    if files.every is not None and files.timeline is None:
        raise PolicyError("--interval needs --timeline; add --timeline FILE, or leave --interval out")
    if shown.sample is not None and not shown.fair:
        raise PolicyError("--fairness-sample needs --fairness; add --fairness, or leave --fairness-sample out")
    if not run.is_single or len(part.loads) > 1:
        from walltime.comparison.many_runs_command import refuse, run_many

        single: dict[str, object] = {"--out": files.out, "--monthly": shown.monthly, "--dynamics": shown.dynamics, "--by": groupings}
        single |= {"--test-share": run.test_share < 1, "--batch-means": shown.batch_means}
        refuse(single | {"--timeline": files.timeline, "--fairness": shown.fair})
        run_many(trace, reading.load(trace, machine)[0], [chosen], run, part, machine, output, files)
        return
    if run.level_given is not None and shown.batch_means is None:
        raise PolicyError("--level sets the level of intervals; add --replications or --batch-means", "option_without_effect")
    workload, seconds_read = reading.load(trace, machine)
    schedule = run.run(one_workload(run, part, workload), chosen, dynamics=shown.dynamics, machine=machine)
    trim = run.measuring
    record, summary = run_record(schedule, run, trace, seconds_read)
    sentences = caveats_of([schedule], trim, run.estimates)
    record["caveats"] = sentences
    recorded = schedule.recorded(trim)
    blocks: list[Part] = list(_blocks(schedule, summary, record, recorded, verbose))
    if shown.batch_means is not None:
        batches = schedule.batch_means(batch=shown.batch_means, confidence=run.level)
        record["batch_means"] = batches_object(batches, shown.batch_means)
        blocks += batches_lines(batches, shown.batch_means, run.level)
    if shown.dynamics:
        effects = schedule.dynamics_summary(trim)
        record["dynamics"] = effects.as_dict()
        blocks.append(_dynamics(effects, schedule))
    if schedule.predictions is not None:
        blocks.append(_predictions(schedule, trim))
    blocks += shown.tables([schedule], [schedule.title], [record], trim, lambda rows, text: groups_table(rows[0], text))
    if shown.fair:
        from walltime.simulation.fair_start import SAMPLE, fairness

        jobs = min(shown.sample or SAMPLE, len(schedule))
        with progress_bar(jobs, f"{schedule.label}, fair starts") as progress:
            starts = fairness(schedule, jobs or 1, run.seed, progress=progress)
        record["fairness"] = starts.as_dict()
        blocks.append(_fairness_facts(starts))
    if recorded is not None:
        record["recorded"] = recorded.as_dict() | {"by": {name: schedule.recorded_by(name, trim) for name in ("class", "month")}}
        compared = recorded_tables([schedule.title], [schedule], trim)
        blocks += [*compared[: 2 if verbose else 0], *compared[2 : 3 if shown.monthly else 2]]
        sentences = [*sentences, RECORDED_SHORT]
    blocks += caveats(sentences)
    if files.out is not None:
        schedule.write(files.out)
        record["out"] = files.out
    drawn = draw_figures(files.figure, [schedule], trim, files.size)
    if files.timeline is not None:
        from walltime.schedule.files import write_table

        write_table(files.timeline, schedule.timeline(length), schedule.workload, policy=schedule.label, **run.settings)
        record["timeline"] = files.timeline
    if output.report is not None:
        write_run_page(output.report, [schedule], run, None)
        record["report"] = output.report
    output.show(record, blocks, schedule=files.out, timeline=files.timeline, **drawn)


def run_record(schedule: Schedule, run: SchedulingOptions, trace: Path, seconds_read: float) -> tuple[dict[str, Any], Summary]:
    """Return the `--json` record of one run, and its summary."""
    from walltime.provenance import version

    trim, begin = run.measuring, time.perf_counter()
    summary = schedule.summary(trim)
    measure = time.perf_counter() - begin
    w = schedule.workload
    record = {
        "trace": str(trace),
        "sha256": w.origin.sha256,
        "procs": w.machine_procs,
        "policy": schedule.label,
        "engine": schedule.engine,
        "simulated_on": schedule.simulated_on,
        **summary.as_dict(),
        **{name: dict(getattr(w.origin, name)) for name in ("dropped", "changed", "noticed")},
        "steps": list(w.origin.steps),
        "killed": int((w.runtime > w.requested).sum()) if schedule.overrun == "kill" else 0,
        "estimates": run.estimates,
        "feedback": w.feedback,
        "overrun": schedule.overrun,
        "coincident": schedule.coincident,
        "dialect": schedule.dialect.label,
        "trim": trim,
        "seed": run.seed,
        "seconds": {"read": seconds_read, **schedule.seconds, "measure": measure},
        "version": version(),
    }
    if schedule.lost is not None:
        record["interruptions"] = schedule.interruptions()
    if schedule.predictions is not None:
        made = schedule.predictions.prediction
        words = {"predictor": made.predictor.label, "predictions_for": made.predictions_for.label, "correction": made.correction.label}
        record["predictions"] = words | {"learn_from": made.learn_from} | schedule.prediction_summary(trim).as_dict()
    return record, summary


def write_run_page(path: Path, schedules: Sequence[Schedule], run: SchedulingOptions, spread: Spread | None) -> None:
    """Write the page of these schedules, with the command line in its provenance."""
    from walltime.comparison import write_comparison_page

    settings = {"command": command_line(), "seed": run.seed, "estimates": run.estimates, "feedback": run.feedback or None}
    write_comparison_page(path, schedules, trim=run.measuring, spread=spread, settings=settings)


def draw_figures(texts: Sequence[str] | None, schedules: Sequence[Schedule], trim: str, size: str = "") -> dict[str, Path]:
    """Draw the requested figures of these schedules, and return their files by content; `size`: a width other than the usual."""
    drawn: dict[str, Path] = {}
    if not texts:
        return drawn
    figures = part_of("simulate --figure")
    for name, path in map(figures.named_file, texts):
        draw = figures.OF_SCHEDULES[name]
        more = {"trim": trim} if name in ("wait", "slowdown") else {}
        more |= {"width": size} if size else {}
        if name == "gantt" and len(schedules) > 1:
            axes = figures.gantts(schedules, **more)
        else:
            if name in figures.SINGLE and len(schedules) > 1:
                note(f"the figure {name} shows one schedule, here that of {schedules[0].label}; for others, simulate them one at a time")
            axes = draw(*schedules[: 1 if name in figures.SINGLE else None], **more)
        drawn[f"figure_of_{name}"] = figures.save(axes, path)
    return drawn


# ---------------------------------------------------------------------- printed parts


def _blocks(schedule: Schedule, s: Summary, record: dict[str, Any], recorded: RecordedWaits | None, verbose: bool) -> Iterator[Any]:
    """Yield the answer, the table of waits, and facts on the machine; `verbose`: with further averages and the speed."""
    from walltime.comparison import answer

    name = schedule.workload.origin.site
    yield answer(name, [schedule.title], [schedule], [s])
    rows = [["wait", *map(time_cell, (s.mean_wait, s.median_wait, s.p90_wait, s.max_wait))]]
    if recorded is not None:
        fields = ("mean", "median", "p90", "max")
        rows.append(["recorded wait", *(time_cell(getattr(recorded, f"{field}_recorded")) for field in fields)])
    if verbose:
        rows.append(["response", time_cell(s.mean_response), "", "", ""])
    rows.append(["bounded slowdown", Cell(human_number(s.mean_bounded_slowdown), value=s.mean_bounded_slowdown), "", "", ""])
    jobs = counted(s.jobs, "job") if s.measured_jobs == s.jobs else f"{s.measured_jobs:,} of {s.jobs:,} jobs measured"
    title = f"{schedule.title} on {name}: {jobs}, {counted(schedule.workload.machine_procs, 'processor')}"
    yield Table(["", "mean", "median", "90 %", "longest"], rows, title)
    facts = [
        ("utilization", percent(s.utilization), f"at an offered load of {percent(s.offered_load)}"),
        ("backfilled", f"{s.backfilled_percent:.1f} %", "of the jobs"),
        ("killed at the limit", f"{record['killed']:,}", "job" if record["killed"] == 1 else "jobs"),
    ]
    if verbose:
        seconds = record["seconds"]
        rate = s.jobs / seconds["simulate"] if seconds["simulate"] else 0.0
        facts += [
            ("mean slowdown", human_number(s.mean_slowdown), f"without {counted(s.zero_runtime_jobs, 'job')} of runtime 0"),
            ("bounded slowdown", f"{s.mean_bounded_slowdown_p1:,.2f}", "as defined in feitelson98 and mualem01"),
            ("time to read", human_time(seconds["read"]), ""),
            ("time to simulate", f"{seconds['simulate']:.3f} s", f"{rate:,.0f} jobs/s"),
        ]
    yield Facts("", facts)


def _predictions(schedule: Schedule, trim: str) -> Facts:
    assert schedule.predictions is not None, "there are some"
    p = schedule.prediction_summary(trim)
    late = f"by {human_time(p.mean_miss)} on average" if p.reserved_starts_missed else ""
    own = f"median {p.median_accuracy:.3f}; users' requests: {p.mean_accuracy_of_requests:.3f}"
    wrong = f"too long {p.oe_percent:.1f} %, too short {p.ue_percent:.1f} %, too short by 30 min or more {p.be_percent:.1f} %"
    rows = [
        ("mean accuracy", f"{p.mean_accuracy:.3f}", own),
        ("jobs predicted", f"{100 - p.na_percent:.1f} %", wrong),
        ("corrections", f"{p.corrections:,}", "for jobs that ran longer than predicted"),
        ("reserved starts missed", f"{p.reserved_starts_missed:,}", f"of {p.reserved_jobs:,} jobs with a reservation {late}".rstrip()),
    ]
    return Facts(f"Predictions by {schedule.predictions.prediction.title}", rows)


def _dynamics(d: DynamicsSummary, schedule: Schedule) -> Facts:
    wild = f"of the jobs, which delayed the head of the queue; mean runtime {human_time(d.mean_runtime_wild)}"
    delayed = f"of the jobs, which start {human_time(d.mean_delay)} after their first real shadow time on average"
    heads = [("wild backfills", f"{d.wild_percent:.2f} %", wild), ("delayed heads", f"{d.delayed_percent:.2f} %", delayed)]
    choices = [("shortest job first", f"{d.sjfness:.1f} %", f"of the starts; {d.sjfness_of_choices:.1f} % of those with a choice")]
    return Facts("Effects of backfilling", (heads if schedule.policy.reservations.of == "head" else []) + choices)


def _fairness_facts(f: Fairness) -> Facts:
    """Return facts on fairness: the number of jobs that start late because of later arrivals, and the waits by use."""
    of = f"all {f.jobs:,} jobs" if f.sample == f.jobs else f"a sample of {f.sample:,} of {f.jobs:,} jobs"
    late = f"of the jobs, by {human_time(f.mean_miss_of_late)} on average; {f.early_percent:.1f} % start earlier"
    rows = [
        ("start after the fair start", f"{f.late_percent:.1f} %", late),
        ("mean delay", human_time(f.mean_miss), f"over {of}; longest {human_time(f.max_miss)}"),
    ]
    if f.users:
        users = f"rank correlation over {counted(f.users, 'user')}; positive if heavier users wait longer"
        rows.append(("wait and use of users", f"{f.use_correlation:.2f}", users))
    return Facts("Fairness (the fair start of a job is its start if no later job had arrived)", rows)


def batches_object(means: BatchMeans, asked: int) -> dict[str, Any]:
    """Return batch means for `--json`; `asked`: the requested jobs in a batch."""
    return {
        "mean_response": means.mean,
        **{name: getattr(means.interval, name, None) for name in ("low", "high", "what")},
        "mean_of_all_jobs": means.whole,
        "batches": means.batches,
        "jobs_per_batch": means.batch,
        "correlation": means.correlation,
        "asked": {"jobs_per_batch": asked, "correlation": means.correlation_asked},
        "jobs_alike": means.alike,
        "jobs_needed": means.needed,
        "verdict": means.verdict,
        "reason": means.reason,
        "contradiction": means.contradiction,
    }


def batches_lines(means: BatchMeans, asked: int, level: float = LEVEL) -> list[str]:
    """Return the batch means in sentences, rounded to the digits that the error justifies."""
    merged = "" if means.batch == asked else f"; between batches of the requested {asked:,} jobs {means.correlation_asked:+.2f}"
    made = f"{means.batches} batches of {means.batch:,} jobs, correlation between neighbours {means.correlation:+.2f}{merged}"
    if means.interval is None:
        lines = [f"Mean response after the warm-up: {means.mean:,.0f} s, without an interval: the run is {means.reason} ({made})."]
    else:
        half = means.interval.half_width
        mean, low, high = (to_error(value, half) for value in (means.mean, means.interval.low, means.interval.high))
        what = f"{shown_level(level)} interval of the mean in the long run"
        lines = [f"Mean response by batch means: {mean} s ({what}: {low} to {high}; {means.verdict}; {made})."]
    return [*lines, *([means.contradiction] if means.contradiction else [])]
