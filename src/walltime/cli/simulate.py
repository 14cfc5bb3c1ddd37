"""`walltime simulate`: one log, one policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Part, Reading, Scheduling
from walltime.errors import PolicyError


def simulate(
    trace: o.TraceArgument,
    *,
    policy: o.PolicyOption = None,
    run: Scheduling,
    cluster: o.ClusterOption = None,
    reading: Reading,
    part: Part,
    batch_means: o.BatchMeansOption = None,
    monthly: o.MonthlyOption = False,
    month_of: o.ByOption = o.By.end,
    by: o.BreakdownOption = None,
    dynamics: Annotated[
        bool,
        typer.Option(
            "--dynamics",
            help="Also show which jobs backfilling delayed, and how often the shortest waiting job was chosen (tsafrir06).",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the schedule here: .csv, .parquet, .swf or .swf.gz.", rich_help_panel=o.OUTPUT)
    ] = None,
    figure: o.FigureOption = None,
    fair: Annotated[
        bool,
        typer.Option("--fairness", help="Also say how many jobs start late because of jobs that arrived later.", rich_help_panel=o.OUTPUT),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            "--fairness-sample", min=1, metavar="JOBS", help="Of so many jobs, drawn by --seed; default: 200.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", help="Write queue and busy processors over time here: .csv or .parquet.", rich_help_panel=o.OUTPUT),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            help="Rows of --timeline: means over so long, s or with m, h, d, w, e.g. 1h. Default: a row for each change.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Replay a log under one policy: how long jobs waited, and how busy the machine was."""
    from walltime.cli import common
    from walltime.cli.batches import batches_lines, batches_object
    from walltime.cli.compare import write_page
    from walltime.cli.many import is_many, refuse, run_many
    from walltime.cli.waits import breakdown_rows, parse_groupings, print_breakdowns, print_fairness, print_recorded, recorded_object
    from walltime.logs.filters import parse_seconds
    from walltime.report.caveats import caveats_of
    from walltime.schedule.files import FORMATS, write_table

    machine = common.read_cluster(cluster)
    [chosen] = run.schedulers([policy or (machine.policy if machine is not None else None) or "easy"])
    drawn = common.check_figures(figure)
    if out is not None:
        common.check_output(out, FORMATS)
    if report is not None:
        common.check_output(report, (".html", ".htm"))
    if timeline is not None:
        common.check_output(timeline, (".csv", ".parquet"))
    if every is not None and timeline is None:
        raise PolicyError("--interval says how long the rows of --timeline are; give both")
    length = None if every is None else parse_seconds(every)
    groupings = parse_groupings(by)
    if sample is not None and not fair:
        raise PolicyError("--fairness-sample says of how many jobs --fairness is; give both")
    if month_of != o.By.end and not monthly:
        raise PolicyError("--month-of determines how --monthly splits the jobs; give both")
    many = is_many(run, part)
    if many:
        one_run: dict[str, object] = {"--out": out, "--figure": drawn, "--monthly": monthly, "--dynamics": dynamics, "--by": groupings}
        refuse(one_run | {"--batch-means": batch_means, "--timeline": timeline, "--fairness": fair})
    model = None if many else run.model()
    workload, seconds_read = reading.load(trace, machine)
    if model is None:
        run_many(trace, workload, [chosen], run, part, report=report, as_json=as_json, machine=machine)
        return
    variation = part.variation(run.feedback)
    workload = variation.apply(workload, run.seed)
    common.note_feedback(workload)
    workload = variation.replica(workload, model, run.seed)
    common.note_cut_short(workload, model)
    schedule = common.run_policy(workload, chosen, **run.rules, dynamics=dynamics, machine=machine)
    record, summary = common.run_record(
        schedule, run.trim.value, trace=trace, seconds_read=seconds_read, estimates=run.estimates, seed=run.seed
    )
    batches = schedule.batch_means(batch=batch_means) if batch_means is not None else None
    if batches is not None and batch_means is not None:
        record["batch_means"] = batches_object(batches, batch_means)
    months = schedule.monthly(month_of.value) if monthly else []
    found = schedule.dynamics_summary(run.trim.value) if dynamics else None
    if found is not None:
        record["dynamics"] = found.as_dict()
    learned = schedule.prediction_summary(run.trim.value) if schedule.predictions is not None else None
    if out is not None:
        schedule.write(out)
        record["out"] = str(out)
    common.draw_figures(drawn, [schedule], run.trim.value)
    if timeline is not None:
        write_table(timeline, schedule.timeline(length), schedule.workload, policy=schedule.label, **run.settings)
        record["timeline"] = str(timeline)
    breakdowns = breakdown_rows(schedule, groupings, run.trim.value)
    if groupings:
        record["breakdowns"] = breakdowns
    fairness = common.find_fairness(schedule, sample, run.seed) if fair else None
    if fairness is not None:
        record["fairness"] = fairness.as_dict()
    caveats = caveats_of([schedule], run.trim.value, run.estimates)
    record["caveats"] = caveats
    if report is not None:
        settings = {"seed": run.seed, "estimates": run.estimates, "feedback": run.feedback or None}
        write_page(report, [schedule], run.trim.value, None, **settings)
        record["report"] = str(report)
    recorded = recorded_object(schedule, run.trim.value)
    if recorded is not None:
        record["recorded"] = recorded
    if as_json:
        if monthly:
            record["months"] = [month.as_dict() for month in months]
        common.print_json(record)
        return
    _print(record, summary, schedule)
    common.print_caveats(caveats)
    if batches is not None and batch_means is not None:
        for line in batches_lines(batches, batch_means):
            common.print_text(line)
    if found is not None:
        _print_dynamics(found, chosen.policy)
    if learned is not None:
        _print_predictions(schedule, learned)
    if monthly:
        _print_months(months)
    print_breakdowns(breakdowns)
    if fairness is not None:
        print_fairness(fairness)
    print_recorded(schedule, run.trim.value, monthly)
    if report is not None:
        typer.echo(f"report written to {report}")
    if out is not None:
        typer.echo(f"schedule written to {out}")
    for name, path in drawn:
        typer.echo(f"{name} drawn in {path}")
    if timeline is not None:
        typer.echo(f"timeline written to {timeline}")


def _print(record: dict[str, Any], s: Any, schedule: Any) -> None:
    from walltime.cli.common import percent, print_facts
    from walltime.report import human_number, human_time

    jobs = f"{s.measured_jobs:,} jobs" if s.measured_jobs == s.jobs else f"{s.measured_jobs:,} of {s.jobs:,} jobs measured"
    seconds = record["seconds"]
    rate = s.jobs / seconds["simulate"] if seconds["simulate"] else 0.0
    facts = [
        ("mean wait", human_time(s.mean_wait), f"{s.mean_wait:,.0f} s"),
        ("median, 90 %, longest wait", human_time(s.median_wait), f"{human_time(s.p90_wait)}, {human_time(s.max_wait)}"),
        ("mean response", human_time(s.mean_response), f"{s.mean_response:,.0f} s"),
        (
            "mean bounded slowdown",
            human_number(s.mean_bounded_slowdown),
            f"{s.mean_bounded_slowdown_p1:,.2f} in the form of feitelson98 and mualem01",
        ),
        (
            "mean slowdown",
            human_number(s.mean_slowdown),
            f"{s.zero_runtime_jobs} jobs with runtime 0 excluded" if s.zero_runtime_jobs else "",
        ),
        ("utilization", percent(s.utilization), f"of all jobs; offered load {percent(s.offered_load)}"),
        ("backfilled", f"{s.backfilled_percent:.1f} %", ""),
        ("killed at their limit", f"{record['killed']:,}", ""),
    ]
    title = f"{schedule.title} on {schedule.workload.origin.name}: {jobs}, {schedule.workload.machine_procs:,} processors"
    print_facts(title, facts)
    typer.echo(f"read in {seconds['read']:.2f} s, simulated in {seconds['simulate']:.3f} s ({rate:,.0f} jobs/s)")


def _print_predictions(schedule: Any, p: Any) -> None:
    from walltime.cli.common import print_facts
    from walltime.report import human_time

    known = 100 - p.na_percent
    late = f"by {human_time(p.mean_miss)} on average" if p.reserved_starts_missed else ""
    facts = [
        (
            "mean accuracy",
            f"{p.mean_accuracy:.3f}",
            f"median {p.median_accuracy:.3f}; of the users' requests {p.mean_accuracy_of_requests:.3f}",
        ),
        (
            "predicted",
            f"{known:.1f} %",
            f"too long {p.oe_percent:.1f} %, too short {p.ue_percent:.1f} %, by 30 min and more {p.be_percent:.1f} %",
        ),
        ("corrections", f"{p.corrections:,}", "of jobs that outlived their predictions"),
        ("reserved starts missed", f"{p.reserved_starts_missed:,}", f"of {p.reserved_jobs:,} jobs with a reservation {late}".rstrip()),
    ]
    print_facts(f"predictions by {schedule.predictions.prediction.title}", facts)


def _print_dynamics(d: Any, policy: Any) -> None:
    from walltime.cli.common import print_facts
    from walltime.policy import Easy
    from walltime.report import human_time

    of_heads = [
        (
            "wildly backfilled",
            f"{d.wild_percent:.2f} %",
            f"they delayed the head of the queue; mean runtime {human_time(d.mean_runtime_wild)}",
        ),
        ("delayed heads", f"{d.delayed_percent:.2f} %", f"later than their first real shadow by {human_time(d.mean_delay)} on average"),
    ]
    of_choices = [
        ("shortest job chosen", f"{d.sjfness:.1f} %", f"{d.sjfness_of_choices:.1f} % where there was a choice"),
    ]
    print_facts("effects of backfilling", (of_heads if isinstance(policy, Easy) else []) + of_choices)


def _print_months(months: list[Any]) -> None:
    from walltime.cli.common import print_table

    rows = [
        [
            f"{m.year}-{m.month:02d}",
            f"{m.load:.3f}",
            f"{m.jobs:,}",
            f"{m.mean_wait:,.0f}",
            f"{m.mean_response:,.0f}",
            f"{m.mean_bounded_slowdown:,.1f}",
        ]
        for m in months
    ]
    print_table("by month, all jobs", ["month", "load", "jobs", "mean wait (s)", "mean response (s)", "mean bounded slowdown"], rows)
