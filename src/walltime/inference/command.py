"""`walltime infer`: which rules has a site, besides its policy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli import output as terminal
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in
from walltime.cli.output import PageOutput, command_line, paragraphs, progress_bar
from walltime.errors import PolicyError


def infer(
    trace: o.TraceArgument,
    *,
    machine_file: o.MachineOption = None,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the machine with its rules", ".toml")] = None,
    eligible: Annotated[
        bool,
        typer.Option("--eligible", help="With --out: write a table, too, that says when each job seems to have been free to start."),
    ] = False,
    output: PageOutput,
) -> None:
    """Read a site's rules off its log: hours, outages, parts, limits; exit status 1 if the log does not fit its machine.

    Ctrl-C ends the search, and what was found until then is written.
    """
    from walltime.inference import infer as run
    from walltime.inference import page as rows
    from walltime.inference import write_site
    from walltime.report.page import Items

    if eligible and out is None:
        raise PolicyError("--eligible writes a table beside the machine; say where with --out, such as --out site.toml")
    machine = machine_in(machine_file)
    workload = stretch.alone(reading.load(trace, machine)[0])
    steps = [""]
    with progress_bar(100, "looking for rules", "%") as progress:
        inference = run(workload, machine=machine, progress=lambda share: progress(int(100 * share), note=steps[-1]), step=steps.append)
    written: list[Path] = []
    if out is not None and not inference.refused:
        written = write_site(inference, out, eligible)
    if output.report is not None:
        output.write(rows.inference_page(inference, workload, {"command": command_line()}))
    blocks: list[Any] = [*paragraphs(rows.verdict(inference)), "", *rows.tables_of(inference), Items(inference.notes)]
    output.show(inference.as_dict(), blocks, **dict(zip(("machine", "held_times"), written, strict=False)))
    if inference.refused:
        raise typer.Exit(1)
    if inference.stopped:
        raise typer.Exit(128 + terminal.received)
