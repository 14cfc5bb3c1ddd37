"""`walltime slurm what-happened`: the jobs that the side-car adjusted, after a day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import PageOutput, caveats, command_line
from walltime.slurm.commands.starts import unix_time


@dataclass(frozen=True)
class Span:
    """The reported time."""

    since: str | None = o.field(
        None,
        "Report from this time on (UTC), as in 2026-01-31T12:00:00 or in seconds since 1970. Default: the whole ledger.",
        group=o.JOBS,
        metavar="TIME",
    )
    until: str | None = o.field(
        None,
        "Report until this time (UTC), as in 2026-01-31T12:00:00 or in seconds since 1970. Default: the whole ledger.",
        group=o.JOBS,
        metavar="TIME",
    )


@manual(
    "guides/adjust-operate",
    ("Report on the adjusted jobs of a ledger.", "slurm what-happened jobs.txt.gz --ledger ledger"),
    ("Include the jobs that were delayed, which is simulated.", "slurm what-happened jobs.txt.gz --ledger ledger --machine machine.toml"),
)
def what_happened(
    trace: Annotated[Path, o.argument("The cluster's job log from sacct, up to the end of the adjusted jobs.", "LOG")],
    *,
    ledger: Annotated[Path, o.option("Read the side-car's ledger from this folder.", group=o.INPUT, metavar="FOLDER")],
    span: Span,
    machine_file: o.MachineOption = None,
    policy: o.SitePolicyOption = None,
    reading: LogOptions,
    output: PageOutput,
) -> None:
    """Report what became of the jobs that walltime slurm adjust has adjusted, from its ledger and the job log.

    The report shows first whether any job ended before its user's limit; then the jobs that backfill started and the jobs they overtook,
    the runtimes against TimeMin, prediction and limit, and how late limits were restored. With --machine it also shows which jobs were
    delayed by adjusted jobs that outlived their TimeMin; this part is simulated.
    """
    from walltime.machine import read_machine
    from walltime.provenance import version
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
    if output.report is not None:
        output.write(pages.adjust_page(review, None, jobs, {"command": command_line()}))
    record = review.as_dict() | {"report": output.report, "version": version()}
    output.show(record, [*pages.review_sentences(review), *pages.review_tables(review), *caveats(list(review.notes))])
