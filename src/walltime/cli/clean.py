"""`walltime clean`: write a log without flurries, at another load, or a part of it, as a new log."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Part, Reading

NEEDED = {"times": ("--flurry-times", "flurries"), "share": ("--flurry-share", "flurries"), "scale_by": ("--scale-by", "load")}
"""Options that need another option: parameter, its option, and the parameter that it needs."""


def clean(
    context: typer.Context,
    trace: o.TraceArgument,
    *,
    part: Part,
    published: Annotated[
        bool, typer.Option("--published", help="Apply the archive's filters for this log.", rich_help_panel=o.VARY)
    ] = False,
    flurries: Annotated[
        bool, typer.Option("--flurries", help="Find bursts of single users, and remove them.", rich_help_panel=o.VARY)
    ] = False,
    times: Annotated[
        float,
        typer.Option(
            "--flurry-times", min=0, help="A flurry has more than this many times the median week's jobs.", rich_help_panel=o.VARY
        ),
    ] = 2.0,
    share: Annotated[
        float,
        typer.Option("--flurry-share", min=0, max=1, help="A flurry has more than this share of its weeks' jobs.", rich_help_panel=o.VARY),
    ] = 0.5,
    seed: o.SeedOption = 0,
    reading: Reading,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the remaining jobs here, as .swf or .swf.gz.", rich_help_panel=o.OUTPUT)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Clean, cut, scale or shake a log: show the changes, before and after, and write the result as a log."""
    from walltime.cli import common
    from walltime.logs import write_swf
    from walltime.logs.cleaning import CleaningReport, find_flurries, published_filters
    from walltime.logs.cleaning import clean as remove_jobs

    _check_call(context)
    if out is not None:
        common.check_output(out, (".swf", ".swf.gz"))
    before, _ = reading.load(trace)
    filters = [*(part.remove or []), *(published_filters(before.origin.name) if published else ())]
    found = find_flurries(before, times=times, share=share) if flurries else []
    filters += [flurry.filter for flurry in found]
    cleaned = remove_jobs(before, filters) if filters else CleaningReport({}, before, before)
    variation = replace(part, remove=None).variation()
    after = variation.shaken(variation.apply(cleaned.after, seed), seed)
    report = CleaningReport(cleaned.removed, before, after)
    if out is not None:
        write_swf(out, after, extra_header=[f"; Note: {step}" for step in after.origin.steps])
    if as_json:
        common.print_json(_as_object(trace, report, found, out))
    else:
        _print(report, found, out)


def _check_call(context: typer.Context) -> None:
    """Reject options that would have no effect."""
    from walltime.errors import PolicyError

    for name, (option, needed) in NEEDED.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and not context.params[needed]:
            raise PolicyError(f"{option} has no effect without --{needed}; give both or neither")


def _as_object(trace: Path, report: Any, found: list[Any], out: Path | None) -> dict[str, Any]:
    from walltime.provenance import version

    def plain(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "trace": str(trace),
        "sha256": report.before.origin.sha256,
        "removed": dict(report.removed),
        "flurries": [{**vars(flurry), "filter": flurry.filter} for flurry in found],
        "before": {name: plain(before) for name, before, _ in report.rows()},
        "after": {name: plain(after) for name, _, after in report.rows()},
        "steps": list(report.after.origin.steps),
        "out": None if out is None else str(out),
        "version": version(),
    }


def _print(report: Any, found: list[Any], out: Path | None) -> None:
    from walltime.cli.common import print_table, print_text_table

    if found:
        print_text_table(
            "flurries",
            ["user", "jobs", "share", "filter"],
            [[str(f.user), f"{f.jobs:,}", f"{100 * f.share:.0f} %", f.filter] for f in found],
        )
    if report.removed:
        print_text_table("removed", ["jobs", "filter"], [[f"{count:,}", text] for text, count in report.removed.items()])
    rows = [[name, _number(before), _number(after)] for name, before, after in report.rows()]
    print_table(report.before.origin.name, ["", "before", "after"], rows)
    for step in report.after.origin.steps:
        typer.echo(step)
    if not report.after.origin.steps:
        typer.echo("nothing was changed")
    if out is not None:
        typer.echo(f"log written to {out}")


def _number(value: float) -> str:
    if math.isnan(value):
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
