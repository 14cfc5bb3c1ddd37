"""`walltime audit`: check a schedule of any simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading


def audit(
    trace: o.TraceArgument,
    schedule: Annotated[
        Path,
        typer.Argument(metavar="SCHEDULE", help="A schedule: .csv or .parquet with at least job_id, start, end, or .swf with wait times."),
    ],
    *,
    policy: Annotated[
        str | None, typer.Option("--policy", help="The policy whose guarantees to check; without it, only the rules for all schedules.")
    ] = None,
    order: o.OrderOption = "fcfs",
    estimates: o.EstimatesOption = "user",
    seed: o.SeedOption = 0,
    overrun: o.OverrunOption = o.Overrun.kill,
    coincident: o.CoincidentOption = None,
    dialect: o.DialectOption = "papers",
    feedback: o.FeedbackOption = False,
    cluster: o.ClusterOption = None,
    reading: Reading,
    as_json: o.JsonOption = False,
) -> None:
    """Check a schedule from any simulator against its log; exit status 1 if a rule is broken."""
    from walltime.cli import common
    from walltime.estimates import parse_estimates
    from walltime.schedule import audit as check
    from walltime.schedule import read_schedule
    from walltime.schedule.on_machine import placed_under

    scheduler = common.schedulers([policy], order, None)[0] if policy else None
    chosen = scheduler.policy if scheduler else None
    model = parse_estimates(estimates)
    machine = common.read_cluster(cluster)
    workload, _ = reading.load(trace, machine)
    workload = workload.with_feedback(feedback).with_estimates(model, seed)
    workload, placement = (workload, None) if machine is None else placed_under(workload, machine, chosen)
    bounded = scheduler is None or scheduler.prediction is None
    rules: dict[str, Any] = {"overrun": overrun.value, "dialect": o.read_dialect(dialect, coincident)}
    report = check(workload, read_schedule(schedule), chosen, bounded=bounded, placement=placement, **rules)
    if as_json:
        common.print_json({"trace": str(trace), "schedule": str(schedule), "policy": chosen.label if chosen else None, **report.as_dict()})
    elif report.ok:
        typer.echo(f"ok: {report}")
        for rule, why in report.skipped.items():
            typer.echo(f"not checked: {rule}: {why}")
    else:
        typer.echo(f"{schedule}: {report}")
        typer.echo("broken: " + ", ".join(f"{rule} {count:,} times" for rule, count in sorted(report.counts.items())))
    if not report.ok:
        raise typer.Exit(1)
