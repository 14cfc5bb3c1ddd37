"""`walltime convert`: a log of any format as SWF, Parquet or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o


def convert(
    trace: o.TraceArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write: .swf, .swf.gz, .parquet, .csv or .csv.gz.")],
    *,
    procs: o.ProcsOption = None,
    skip_bad_lines: o.SkipBadLinesOption = False,
    time_zone: o.TimeZoneOption = None,
    mapping: o.MappingOption = None,
    anonymise: o.AnonymiseOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Write a log of any format as SWF, Parquet or CSV: all of its records, with what reading them dropped and changed."""
    from walltime.cli import common
    from walltime.files import printable
    from walltime.logs import read_log
    from walltime.logs.convert import ENDINGS, with_procs, write_log
    from walltime.provenance import version

    common.check_output(out, ENDINGS)
    log = read_log(trace, skip_bad_lines=skip_bad_lines, time_zone=time_zone, mapping=mapping, anonymise=anonymise)
    if procs is not None:
        log = with_procs(log, procs)
    write_log(out, log)
    counts = {"dropped": dict(log.dropped), "changed": dict(log.changed), "noticed": dict(log.noticed)}
    if log.bad_lines:
        counts["dropped"]["bad_line"] = len(log.bad_lines)
    if as_json:
        facts = {"trace": str(trace), "format": log.format, "sha256": log.sha256, "records": log.records, **counts, "out": str(out)}
        common.print_json({**facts, "version": version()})
        return
    for did, rules in counts.items():
        if rules:
            typer.echo(f"{did}: {', '.join(f'{count:,} {rule}' for rule, count in rules.items())}")
    typer.echo(f"{log.records:,} records written to {printable(out)}")
