"""`walltime tune`: a queue order fitted to a log, tested on its later months; or one chosen every week."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.tuning import Tuning, Weekly
    from walltime.workload import Workload

FIT, BANDIT = "The fitting", "The choice every week"


def tune(
    trace: o.TraceArgument,
    *,
    policy: Annotated[str, typer.Option("--policy", help="The scheduler that gets the order, and the baseline.")] = "easy",
    metric: Annotated[
        str, typer.Option("--metric", help="What to lower: mean_bounded_slowdown, mean_wait, p99_wait, ...", rich_help_panel=o.RUN)
    ] = "mean_bounded_slowdown",
    score: Annotated[str, typer.Option("--score", help="linear or power.", rich_help_panel=FIT)] = "power",
    features: Annotated[
        str | None,
        typer.Option(
            "--features", help="wait, believed, procs, area; for linear also log-wait, ...: with commas between.", rich_help_panel=FIT
        ),
    ] = None,
    where: Annotated[str, typer.Option("--where", help="Use the score as order or as backfill-order.", rich_help_panel=FIT)] = "order",
    days: Annotated[int, typer.Option("--days", min=1, help="Length of a window.", rich_help_panel=FIT)] = 30,
    warm: Annotated[
        int, typer.Option("--warm", min=0, help="Days before and after it that are simulated, but not measured.", rich_help_panel=FIT)
    ] = 7,
    share: Annotated[float, typer.Option("--share", help="Share of the log for training, the first part.", rich_help_panel=FIT)] = 0.5,
    most: Annotated[int, typer.Option("--most", min=2, help="Windows for training at most.", rich_help_panel=FIT)] = 6,
    copies: Annotated[int, typer.Option("--copies", min=1, help="The log, and shaken copies of it, per window.", rich_help_panel=FIT)] = 2,
    shake: Annotated[int, typer.Option("--shake", min=1, help="Seconds by which these are shaken.", rich_help_panel=FIT)] = 60,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Candidates to simulate.", rich_help_panel=FIT)] = 150,
    optimiser: Annotated[str, typer.Option("--optimiser", help="cma (needs the extra tune) or random.", rich_help_panel=FIT)] = "cma",
    store: Annotated[
        Path | None, typer.Option("--store", help="Keep what is simulated in this folder, and go on from there.", rich_help_panel=FIT)
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Threads; default: one per core.", rich_help_panel=FIT)] = None,
    weekly: Annotated[
        str | None,
        typer.Option("--weekly", help="Choose an order every week instead: by simulate, epsilon or ucb.", rich_help_panel=BANDIT),
    ] = None,
    orders: Annotated[
        list[str] | None,
        typer.Option("--order", help="An order to choose from; repeat it. Default: those built in.", rich_help_panel=BANDIT),
    ] = None,
    look: Annotated[int, typer.Option("--look", min=1, help="Weeks to simulate before a choice.", rich_help_panel=BANDIT)] = 1,
    seed: o.SeedOption = 0,
    overrun: o.OverrunOption = o.Overrun.kill,
    reading: Reading,
    out: Annotated[Path | None, typer.Option("--out", help="Write the result here: .json.", rich_help_panel=o.OUTPUT)] = None,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Fit the order of the queue to the first months of a log, and say what it gains on the later ones."""
    from walltime.cli import common
    from walltime.tuning import choose_weekly
    from walltime.tuning import tune as fit

    for path, endings in ((out, (".json",)), (report, (".html", ".htm"))):
        if path is not None:
            common.check_output(path, endings)
    if weekly is None and (orders or look != 1):
        raise PolicyError("--order and --look are for --weekly; leave them out")
    workload, _ = reading.load(trace)
    shared: dict[str, Any] = {"metric": metric, "seed": seed, "overrun": overrun.value}
    found: Tuning | Weekly
    if weekly is not None:
        chosen: dict[str, Any] = {"orders": orders} if orders else {}
        span = int(workload.submit[-1] - workload.submit[0]) // (7 * 86_400) if len(workload) else 0
        with common.progress_bar(span, "weeks") as progress:
            found = choose_weekly(workload, policy, strategy=weekly, look=look, progress=progress, **chosen, **shared)
    else:
        shared |= {"score": score, "features": None if features is None else [name.strip() for name in features.split(",")], "where": where}
        shared |= {"days": days, "warm": warm, "share": share, "most": most, "copies": copies, "shake": shake, "budget": budget}
        with common.progress_bar(budget, "candidates") as progress:
            found = fit(workload, policy, optimiser=optimiser, store=store, workers=workers, progress=progress, **shared)
    _show(found, workload, out, report, as_json)


def _show(found: Tuning | Weekly, workload: Workload, out: Path | None, report: Path | None, as_json: bool) -> None:
    """Print the result, and write it to files."""
    from walltime.cli import common
    from walltime.report.tuning import tables, write_tuning_report

    if out is not None:
        common.write_json(found.as_dict(), out)
    if report is not None:
        write_tuning_report(report, found, workload, settings={"command": common.command_line()})
    if as_json:
        common.print_json(found.as_dict())
        return
    for title, columns, rows in tables(found):
        common.print_table(title, columns, rows)
    for sentence in found.verdict:
        common.print_text(sentence)
    common.print_caveats(found.caveats)
    for what, path in (("result", out), ("report", report)):
        if path is not None:
            typer.echo(f"{what} written to {path}")
