"""`walltime slurm what-happened`: the jobs that the side-car adjusted, after a day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import command_line
from walltime.slurm.commands.starts import unix_time


@dataclass(frozen=True)
class Span:
    """From when until when."""

    since: Annotated[str | None, o.option("--since", "Also in seconds since 1970.", None, metavar="TIME")] = None
    until: Annotated[str | None, o.option("--until", "", None, metavar="TIME")] = None


def what_happened(
    trace: Annotated[Path, typer.Argument(metavar="LOG", help="The cluster's job log, as sacct has printed it since.")],
    *,
    ledger: Annotated[Path, o.option("--ledger", panel=None, metavar="FOLDER")],
    span: Span,
    machine_file: o.MachineOption = None,
    policy: o.SitePolicyOption = None,
    reading: LogOptions,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Say what happened with the jobs that walltime slurm adjust has adjusted, by its ledger and the job log.

    Which were started by backfill, ahead of whom, how long they ran against TimeMin, prediction and limit, which limits were given back how
    late, and, first of all, whether any job was ended before its user's limit. With --machine also which jobs were delayed by those that
    outlived their TimeMin: that is simulated, all else is recorded.
    """
    from walltime.cli import output
    from walltime.machine import read_machine
    from walltime.provenance import version
    from walltime.report.html import write_page
    from walltime.slurm.sidecar import page as pages
    from walltime.slurm.sidecar.advice import ANY_SIZE
    from walltime.slurm.sidecar.ledger import read_events
    from walltime.slurm.sidecar.review import what_happened as find
    from walltime.slurm.sidecar.review import with_delays

    machine = None if machine_file is None else read_machine(machine_file)
    first, last = (None if time is None else float(unix_time(time, UTC)) for time in (span.since, span.until))
    events = read_events(ledger)
    if machine is None and reading.procs is None:
        reading = replace(reading, procs=ANY_SIZE)  # which nothing depends on that is recorded
    jobs, _ = reading.load(trace, machine)
    review = find(events, jobs, first, last)
    if machine is not None:
        review = with_delays(review, jobs, machine, policy)
    if report is not None:
        write_page(pages.adjust_page(review, None, jobs, {"command": command_line()}), report)
    if as_json:
        output.print_json(review.as_dict() | {"report": report, "version": version()})
        return
    output.print_blocks([*pages.review_sentences(review), *pages.review_tables(review)])
    output.print_blocks(output.caveats(list(review.notes)))
    if report is not None:
        typer.echo(f"report written to {report}")
