"""`walltime waste`: requested, allocated, used and lost hours of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.energy_options import EnergyOptions
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in
from walltime.cli.output import PageOutput, caveats
from walltime.files import whole_file
from walltime.usage.records import GROUPINGS, LISTED, Power, check_groupings


@dataclass(frozen=True)
class GroupOptions:
    """The groups of jobs."""

    by: list[str] | None = o.field(None, f"Group the jobs by this property: {', '.join(GROUPINGS)}. Default: user and group.", group=o.JOBS)
    listed: int = o.field(LISTED, "Show the first N groups of each table, and all others in one row.", group=o.JOBS, min=1)


@manual(
    "guides/waits",
    ("Show the requested, used and lost hours of the jobs of a log.", "waste jobs.txt.gz --report waste.html"),
    (
        "Show the last 100 jobs by job name, and write metrics for Prometheus.",
        "waste jobs.txt.gz --tail 100 --by executable --metrics waste.prom",
    ),
)
def waste(
    trace: Annotated[Path, o.argument("A job log, preferably with steps (walltime slurm sacct-command), plain or compressed.", "LOG")],
    *,
    grouping: GroupOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    machine_file: o.MachineOption = None,
    energy: EnergyOptions,
    use: o.UseOption = None,
    metrics: o.MetricsOption = None,
    output: PageOutput,
) -> None:
    """Show the requested, allocated, used and lost processor, GPU, memory and node hours of jobs, by user and cause."""
    from walltime.provenance import version
    from walltime.usage import page
    from walltime.usage.summary import waste as find

    check_groupings(grouping.by or ())
    machine = machine_in(machine_file)
    workload, joined, counts = reading.load(trace, machine, any_size=True)[0], list[str](), {}
    if use is not None:
        from walltime.logs.use_table import with_use

        table = with_use(workload, use)
        workload, joined, counts = table.workload, table.notes, {"use": table.as_dict()}
    workload = stretch.alone(workload)
    found = find(workload, listed=grouping.listed, power=Power(machine, energy.kwh_price, energy.carbon_of(workload)))
    if output.report is not None:
        output.write(page.page(found, command_line(), joined))
    if metrics is not None:
        with whole_file(metrics) as file:
            file.write(page.prometheus(found, *([grouping.by] if grouping.by else [])).encode())
    shown = [by for by in grouping.by if by in found.groups] if grouping.by else [by for by in ("user", "group") if by in found.distinct]
    missing = [f"The log does not record the {GROUPINGS[by]} of its jobs." for by in grouping.by or () if by not in found.groups]
    record = {"trace": workload.origin.name, "sha256": workload.origin.sha256, **found.as_dict(), **counts, "version": version()}
    tables = (table.without_unknown() for table in found.tables(shown))
    blocks = [page.answer(found), *tables, *caveats([*joined, *page.notes(found), *missing])]
    output.show(record, blocks, list(found.tables()), metrics=metrics)
