"""`walltime compare`: one log, several policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Part, Reading, Scheduling
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.schedule import Schedule
    from walltime.simulation import Spread

DEFAULT = ("fcfs", "easy", "conservative")
OTHERS = ("fcfs", "easy")
"""What a site's own policy is compared with."""


def compare(
    trace: o.TraceArgument,
    *,
    policy: o.PoliciesOption = None,
    run: Scheduling,
    cluster: o.ClusterOption = None,
    reading: Reading,
    part: Part,
    monthly: o.MonthlyOption = False,
    month_of: o.ByOption = o.By.end,
    by: o.BreakdownOption = None,
    gains: Annotated[
        bool,
        typer.Option("--gains", help="Say who gains and who loses: jobs, users, the largest changes.", rich_help_panel=o.OUTPUT),
    ] = False,
    no_spread: Annotated[
        bool,
        typer.Option("--no-spread", help="Do not measure how far the means move when the log is shaken.", rich_help_panel=o.OUTPUT),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a row for each run here: .csv or .parquet.", rich_help_panel=o.OUTPUT)
    ] = None,
    report: o.ReportOption = None,
    figure: o.FigureOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Replay a log under several policies and compare the results."""
    from walltime.cli import common
    from walltime.cli.every_policy import ALL, refuse_beside_all, show_all
    from walltime.cli.many import is_many, refuse, run_many
    from walltime.cli.waits import breakdown_rows, parse_groupings, print_compared_breakdowns, print_gains
    from walltime.policy import EVERY
    from walltime.report.caveats import caveats_of
    from walltime.schedule.comparison import compare as side_by_side
    from walltime.simulation.first_look import COPIES

    machine = common.read_cluster(cluster)
    site = [] if machine is None or machine.policy is None else [machine.policy, *OTHERS]
    every = policy is not None and ALL in policy
    if every:
        page = {"--report": report, "--figure": figure, "--by": by, "--monthly": monthly, "--gains": gains}
        refuse_beside_all(page | {"--cluster": machine, "several runs": is_many(run, part)})
        policy = [*EVERY, *(own for own in policy or () if own != ALL)]
    chosen = run.schedulers(policy or site or list(DEFAULT))
    if report is not None:
        common.check_output(report, (".html", ".htm"))
    if out is not None:
        common.check_output(out, (".csv", ".parquet"))
    groupings = parse_groupings(by)
    if month_of != o.By.end and not monthly:
        raise PolicyError("--month-of determines how --monthly splits the jobs; give both")
    drawn = common.check_figures(figure)
    many = is_many(run, part)
    if many:
        refuse({"--figure": drawn, "--monthly": monthly, "--by": groupings, "--gains": gains})
    model = None if many else run.model()
    workload, seconds_read = reading.load(trace, machine)
    if model is None:
        run_many(trace, workload, chosen, run, part, report=report, out=out, as_json=as_json, machine=machine)
        return
    variation = part.variation(run.feedback)
    workload = variation.apply(workload, run.seed)
    common.note_feedback(workload)
    workload = variation.replica(workload, model, run.seed)
    common.note_cut_short(workload, model)
    schedules = [common.run_policy(workload, p, **run.rules, machine=machine) for p in chosen]
    if every:
        copies, form = None if no_spread else COPIES, as_object if as_json else None
        show_all(schedules, chosen, run, copies, trace=trace, seconds_read=seconds_read, out=out, as_object=form)
        return
    records = [
        common.run_record(s, run.trim.value, trace=trace, seconds_read=seconds_read, estimates=run.estimates, seed=run.seed)[0]
        for s in schedules
    ]
    months = [s.monthly(month_of.value) for s in schedules] if monthly else []
    breakdowns = [breakdown_rows(s, groupings, run.trim.value) for s in schedules]
    if groupings:
        for record, rows in zip(records, breakdowns, strict=True):
            record["breakdowns"] = rows
    if gains:
        for record, schedule in zip(records[1:], schedules[1:], strict=True):
            record["gains"] = schedules[0].gains(schedule, run.trim.value).as_dict()
    spread = None if no_spread else common.find_spread(schedules, run.trim.value)
    caveats = caveats_of(schedules, run.trim.value, run.estimates, spread)
    if report is not None:
        write_page(report, schedules, run.trim.value, spread, seed=run.seed, estimates=run.estimates, feedback=run.feedback or None)
    if out is not None:
        common.write_rows(side_by_side(*schedules, trim=run.trim.value).table(), out)
    common.draw_figures(drawn, schedules, run.trim.value)
    if as_json:
        common.print_json(as_object(records, months, report, caveats, spread))
        return
    print_comparison(schedules, run.trim.value, caveats, spread)
    if monthly:
        _print_months(schedules, months)
    print_compared_breakdowns(schedules, breakdowns)
    if gains:
        print_gains(schedules, run.trim.value)
    if report is not None:
        typer.echo(f"report written to {report}")
    if out is not None:
        typer.echo(f"{len(schedules)} rows written to {out}")
    for name, path in drawn:
        typer.echo(f"{name} drawn in {path}")


def write_page(path: Path, schedules: Sequence[Schedule], trim: str, spread: Spread | None, **settings: Any) -> None:
    """Write the HTML page, with the command line in its provenance."""
    from walltime.cli import common
    from walltime.report import write_report

    write_report(path, schedules, trim=trim, spread=spread, settings={"command": common.command_line(), **settings})


def as_object(
    records: Sequence[dict[str, Any]], months: Sequence[Sequence[Any]], report: Path | None, caveats: Sequence[str], spread: Spread | None
) -> dict[str, Any]:
    """What `--json` prints: what all runs share, then the runs."""
    shared = (
        "trace",
        "sha256",
        "procs",
        "jobs",
        "dropped",
        "changed",
        "noticed",
        "steps",
        "feedback",
        "estimates",
        "overrun",
        "coincident",
        "dialect",
        "trim",
        "seed",
        "version",
    )
    value: dict[str, Any] = {name: records[0][name] for name in shared}
    value["report"] = None if report is None else str(report)
    value["caveats"] = list(caveats)
    value["spread"] = None if spread is None else spread.as_dict()
    value["runs"] = list(records)
    for record, rows in zip(value["runs"], months, strict=False):
        record["months"] = [month.as_dict() for month in rows]
    return value


def print_comparison(schedules: Sequence[Schedule], trim: str, caveats: Sequence[str], spread: Spread | None) -> None:
    """Print one row per policy, then the answer in a sentence, then the caveats."""
    from walltime.cli.common import percent, print_caveats, print_table, print_text
    from walltime.report import answer, human_number, human_time, labels
    from walltime.schedule.comparison import compare as side_by_side

    comparison = side_by_side(*schedules, trim=trim)
    names = labels(schedules)
    workload = schedules[0].workload
    rows = [
        [
            name,
            human_time(s.mean_wait),
            f"{s.mean_wait:,.0f}",
            f"{s.mean_response:,.0f}",
            human_number(s.mean_bounded_slowdown),
            percent(s.utilization),
            f"{s.backfilled_percent:.1f} %",
            human_time(s.max_wait),
        ]
        for name, s in zip(names, comparison.summaries, strict=True)
    ]
    first = comparison.summaries[0]
    jobs = f"{first.jobs:,} jobs" if trim == "none" else f"{first.jobs:,} jobs, {first.measured_jobs:,} measured"
    title = f"{workload.origin.name}: {jobs}, {workload.machine_procs:,} processors, offered load {percent(first.offered_load)}"
    columns = ["policy", "mean wait", "(s)", "mean response (s)", "bounded slowdown", "utilization", "backfilled", "longest wait"]
    print_table(title, columns, rows)
    print_text(answer(workload.origin.name, names, schedules, comparison.summaries, spread))
    print_caveats(caveats)


def _print_months(schedules: Sequence[Schedule], months: Sequence[Sequence[Any]]) -> None:
    """The months as in mualem01, Table 1; they differ between policies, so load and jobs are those of the first."""
    from walltime.cli.common import print_table
    from walltime.metrics import relative_difference
    from walltime.report import labels

    names = labels(schedules)
    columns = ["month", "load", "jobs"]
    for what in ("response", "bsld"):
        columns += [f"{what} {name}" for name in names]
        if len(names) == 2:
            columns.append("diff")
    by_month = [{(m.year, m.month): m for m in rows} for rows in months]
    rows = []
    for key in sorted({key for table in by_month for key in table}):
        mine = [table.get(key) for table in by_month]
        row = [f"{key[0]}-{key[1]:02d}", f"{mine[0].load:.3f}" if mine[0] else "", f"{mine[0].jobs:,}" if mine[0] else ""]
        for name, digits in (("mean_response", 0), ("mean_bounded_slowdown", 1)):
            values = [getattr(m, name) if m else float("nan") for m in mine]
            row += [f"{value:,.{digits}f}" for value in values]
            if len(names) == 2:
                row.append(f"{relative_difference(values[1], values[0]):+.1f} %")
        rows.append(row)
    print_table(f"by month, all jobs; load and jobs under {names[0]}", columns, rows)
