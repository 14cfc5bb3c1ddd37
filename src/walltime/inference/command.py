"""`walltime infer`: infer the rules of a site from its log."""

from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o, output as terminal
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in
from walltime.cli.output import PageOutput, caveats, paragraphs, progress_bar
from walltime.errors import PolicyError


@manual(
    "guides/infer",
    ("Infer the rules of a site, and write them as a machine file.", "infer jobs.txt.gz --machine machine.toml --out site.toml"),
    ("Infer the rules of a machine of 100 equal processors.", "infer KTH-SP2 --procs 100 --out site.toml"),
)
def infer(
    trace: o.TraceArgument,
    *,
    machine_file: o.MachineOption = None,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the machine with its rules", ".toml")] = None,
    eligible: Annotated[
        bool,
        o.option("Write a table of the inferred eligible time of each job as well, next to the file of --out.", advanced=True),
    ] = False,
    verbose: o.VerboseOption = False,
    output: PageOutput,
) -> None:
    """Infer the rules of a site from its log: closed hours, outages, reserved parts of the machine, and limits.

    On a machine with preemption, each run of a preempted job is a separate job, and rules are chosen without jobs that may preempt others.
    Ctrl-C ends the search and writes the rules found so far. The exit status is 1 if the log does not fit its machine, or follows no rules.
    """
    from walltime.inference import infer as run, page as rows, write_site
    from walltime.report.page import Items

    if eligible and out is None:
        raise PolicyError("--eligible needs a machine file to write its table next to; add --out FILE, such as --out site.toml")
    machine = machine_in(machine_file)
    workload = stretch.alone(reading.load(trace, machine, join=False)[0])
    steps = [""]
    with progress_bar(100, "looking for rules", "%") as progress:
        inference = run(workload, machine=machine, progress=lambda share: progress(int(100 * share), note=steps[-1]), step=steps.append)
    written: list[Path] = []
    if out is not None and not inference.refused:
        written = write_site(out, inference, eligible)
    if output.report is not None:
        output.write(rows.inference_page(inference, workload, {"command": command_line()}))
    blocks: list[Any] = [rows.short_verdict(inference), *rows.short_tables(inference), *caveats(rows.short_notes(inference))]
    if verbose:
        blocks = [*paragraphs(rows.verdict(inference)), "", *rows.tables_of(inference), Items(inference.notes)]
    output.show(inference.as_dict(), blocks, rows.tables_of(inference), **dict(zip(("machine", "held_times"), written, strict=False)))
    if inference.refused:
        raise typer.Exit(1)
    if inference.stopped:
        raise typer.Exit(128 + terminal.received)
