"""`walltime clean`: write a log without flurries, at another load, or a part of it, as a new log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import JobSelectionWithLoad, LogOptions
from walltime.cli.output import PageOutput
from walltime.errors import PolicyError
from walltime.wording import human_percent, human_time

if TYPE_CHECKING:
    from walltime.tables import Table
    from walltime.workload.cleaning import CleaningReport, Flurry


@dataclass(frozen=True)
class Filters:
    """The jobs that are filtered out."""

    published: bool = o.field(False, "Apply the filters that the archive publishes for this log.", group=o.JOBS)
    flurries: bool = o.field(False, "Find and remove flurries: bursts of many jobs by one user.", group=o.JOBS)


@manual(
    "guides/varying",
    ("Remove the archive's known flurries from a log.", "clean KTH-SP2 --published --out clean.swf.gz"),
    ("Keep a part of a log, and scale it to a load of 90 %.", "clean KTH-SP2 --window 30d:60d --load 0.9 --out busy.swf.gz"),
)
def clean(
    context: typer.Context,
    trace: o.TraceArgument,
    *,
    part: JobSelectionWithLoad,
    filtering: Filters,
    seed: o.SeedOption = 0,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the remaining jobs", *o.LOGS)] = None,
    output: PageOutput,
) -> None:
    """Filter the jobs of a log, scale its load or shift its submissions, show what changed, and write the new log."""
    from walltime.logs.convert import write_workload
    from walltime.workload.cleaning import CleaningReport, clean as remove_jobs, find_flurries, published_filters

    _check_call(context)
    before, _ = reading.load(trace)
    filters = [*(part.remove or []), *(published_filters(before.origin.name) if filtering.published else ())]
    bursts = find_flurries(before) if filtering.flurries else []
    filters += [flurry.filter for flurry in bursts]
    cleaned = remove_jobs(before, filters) if filters else CleaningReport({}, before, before)
    variation = replace(part, remove=None).variation()
    after = variation.shaken(variation.apply(cleaned.after, seed), seed)
    report = CleaningReport(cleaned.removed, before, after)
    if out is not None:
        write_workload(out, after, extra_header=[f"; Note: {step}" for step in after.origin.steps])
    blocks, stay = list(_blocks(report, bursts)), f"{len(after):,} of the {len(before):,} jobs remain."
    output.write_blocks("a changed log", before.origin.name, [stay], blocks, after)
    output.show(_record(trace, report, bursts, out), blocks, log=out)


def _check_call(context: typer.Context) -> None:
    """Reject options that would have no effect."""
    source = context.get_parameter_source("scale_by")
    if source is not None and source.name == "COMMANDLINE" and not context.params["load"]:
        raise PolicyError("--scale-by needs --load; add --load N, or leave --scale-by out")


def _record(trace: Path, report: CleaningReport, bursts: list[Flurry], out: Path | None) -> dict[str, Any]:
    from walltime.provenance import version

    return {
        "trace": str(trace),
        "sha256": report.before.origin.sha256,
        "removed": dict(report.removed),
        "flurries": [{**vars(flurry), "filter": flurry.filter} for flurry in bursts],
        "before": {name: before for name, before, _ in report.rows()},
        "after": {name: after for name, _, after in report.rows()},
        "steps": list(report.after.origin.steps),
        "out": out,
        "version": version(),
    }


def _blocks(report: CleaningReport, bursts: list[Flurry]) -> Iterator[Table | str]:
    from walltime.tables import Table

    yield from report.after.origin.steps or ["No job was removed or changed."]
    if bursts:
        rows = [[str(f.user), f"{f.jobs:,}", f"{100 * f.share:.0f} %", f.filter] for f in bursts]
        yield Table(["user", "jobs", "share", "filter"], rows, "Flurries", texts=-1)
    if report.removed:
        yield Table(["jobs", "filter"], [[f"{count:,}", text] for text, count in report.removed.items()], "Removed jobs", texts=-1)
    rows = [[name.removesuffix(" (s)"), *(_value(name, value) for value in values)] for name, *values in report.rows()]
    yield Table(["", "before", "after"], rows, report.before.origin.name)


def _value(name: str, value: float) -> str:
    if math.isnan(value):
        return "unknown"
    if name.endswith(" (s)"):
        return human_time(value)
    if name == "offered load":
        return human_percent(100 * value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
