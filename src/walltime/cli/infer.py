"""`walltime infer`: which rules has a site, besides its policy?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading

__all__ = ["infer"]


def infer(
    trace: o.TraceArgument,
    *,
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="FILE", help="The machine's size and nodes: a file like cluster.toml.", rich_help_panel=o.RUN),
    ] = None,
    reading: Reading,
    window: o.WindowOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the machine with its rules here: .toml.", rich_help_panel=o.OUTPUT)
    ] = None,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Read a site's rules off its log: hours, outages, parts, limits; kept where they explain months not used to find them."""
    from walltime.cli import bars, common
    from walltime.report import inference as rows
    from walltime.simulation.variation import Variation
    from walltime.whatif import infer as run
    from walltime.whatif import write_site

    for path, endings in ((out, (".toml",)), (report, (".html", ".htm"))):
        if path is not None:
            common.check_output(path, endings)
    machine = common.read_cluster(cluster)
    workload, _ = reading.load(trace, machine)
    workload = Variation(window=window).apply(workload, 0)
    nodes = {pool.procs for pool in machine.pools} if machine is not None else {1}
    with bars.row("rules", None, "tried") as row:
        found = run(workload, procs_of_node=nodes.pop() if len(nodes) == 1 else 1, progress=row.update)
    if out is not None and not found.refused:
        write_site(found, out)
    if report is not None:
        rows.write_inference_report(report, found, workload, settings={"command": ["walltime", *sys.argv[1:]]})
    if as_json:
        common.print_json(found.as_dict())
        return
    common.print_paragraphs(rows.verdict(found))
    typer.echo("")
    for title, columns, lines in rows.tables_of(found):
        if lines:
            common.print_table(title, columns, lines)
    for text in found.notes:
        common.print_text(text, "* ")
    for what, path in (("machine", None if found.refused else out), ("report", report)):
        if path is not None:
            typer.echo(f"{what} written to {path}")
