"""`walltime explain`: why a job waited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.groups import Part, Reading, Scheduling
from walltime.errors import PolicyError

FIGURES = (".svg", ".png", ".pdf")


def explain(
    trace: o.TraceArgument,
    *,
    job: Annotated[int | None, typer.Option("--job", help="The number of a job in the log.", rich_help_panel=o.OUTPUT)] = None,
    longest: Annotated[
        int | None, typer.Option("--longest", min=1, metavar="N", help="List the N longest waits, a line each.", rich_help_panel=o.OUTPUT)
    ] = None,
    policy: o.PolicyOption = None,
    cluster: o.ClusterOption = None,
    run: Scheduling,
    reading: Reading,
    part: Part,
    no_sooner: Annotated[
        bool,
        typer.Option(
            "--no-sooner", help="Do not try what would have let it start sooner: that takes some 20 runs.", rich_help_panel=o.OUTPUT
        ),
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw the machine around the job here: .svg, .png or .pdf.", rich_help_panel=o.OUTPUT),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Say why a job waited: what was free, reserved and for whom, who overtook it, and what would have let it start sooner."""
    from walltime.cli import bars, common
    from walltime.explanation import explain as explain_job
    from walltime.explanation import longest_waits

    if (job is None) == (longest is None):
        raise PolicyError("name a job with --job, or ask for the longest waits with --longest N")
    if job is None and (figure is not None or no_sooner):
        raise PolicyError("--figure and --no-sooner are for one job; name it with --job")
    if run.replications > 1:
        raise PolicyError("walltime explain tells of one run; leave out --replications")
    if figure is not None:
        common.check_output(figure, FIGURES)
    machine = common.read_cluster(cluster)
    [chosen] = run.schedulers([policy or (None if machine is None else machine.policy) or "easy"])
    model = run.model()
    workload, _ = reading.load(trace, machine)
    variation = part.variation(run.feedback)
    workload = variation.replica(variation.apply(workload, run.seed), model, run.seed)
    common.note_feedback(workload)
    schedule = common.run_policy(workload, chosen, **run.rules, machine=machine)
    told = {"trace": str(trace), "sha256": workload.origin.sha256, "policy": schedule.label}
    if longest is not None:
        waits = longest_waits(schedule, longest)
        if as_json:
            common.print_json({**told, "longest_waits": [wait.as_dict() for wait in waits]})
            return
        for wait in waits:
            common.print_text(str(wait))
        if not waits:
            typer.echo("no job waited")
        return
    assert job is not None, "or the longest waits were asked for"
    with bars.row("what would have helped", unit="runs") as row:
        story = explain_job(schedule, job, sooner=not no_sooner, progress=row.update)
    if figure is not None:
        from walltime.report.explanation import write_explanation_figure

        write_explanation_figure(figure, story)
    if as_json:
        common.print_json({**told, **story.as_dict(), "figure": None if figure is None else str(figure)})
        return
    common.print_paragraphs(story.sentences)
    if figure is not None:
        typer.echo(f"\nfigure written to {figure}")
