"""`walltime convert`: a log of any format as SWF, Parquet or CSV."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import read_shown
from walltime.cli.output import Output
from walltime.errors import PolicyError
from walltime.wording import counted


@dataclass(frozen=True)
class FileOptions:
    """How the log is read."""

    procs: o.ProcsOption = None
    skip_bad_lines: o.SkipBadLinesOption = False
    time_zone: o.TimeZoneOption = None
    mapping: o.MappingOption = None
    anonymise: o.AnonymiseOption = None


@manual(
    "guides/cluster-logs",
    ("Convert a cluster's accounting records to the Standard Workload Format.", "convert jobs.txt.gz --out log.swf.gz"),
    ("Replace the names of users and accounts with numbers.", "convert jobs.txt.gz --anonymise @key.txt --out public.swf.gz"),
)
def convert(
    trace: o.TraceArgument,
    written: Annotated[Path | None, o.argument("The file to write; the same as --out.", "OUT", callback=o.writable(*o.LOGS))] = None,
    *,
    out: Annotated[Path | None, o.out("the log", *o.LOGS)] = None,
    how: FileOptions,
    output: Output,
) -> None:
    """Convert a log of any format to SWF, Parquet or CSV, and report what was dropped and changed."""
    from walltime.logs.convert import with_procs, write_log
    from walltime.provenance import version
    from walltime.wording import printable

    if (out is None) == (written is None):
        raise PolicyError("one output file is needed; use walltime convert LOG --out FILE")
    out = out or written
    assert out is not None, "one of them is given"
    log = read_shown(trace, skip_bad_lines=how.skip_bad_lines, time_zone=how.time_zone, mapping=how.mapping, anonymise=how.anonymise)
    if how.procs is not None:
        log = with_procs(log, how.procs)
    write_log(out, log)
    counts = {"dropped": log.all_dropped(), "changed": dict(log.changed), "noticed": dict(log.noticed)}
    record = {"trace": str(trace), "format": log.format, "sha256": log.sha256, "records": log.records, **counts, "out": out}
    lines = [f"{did}: {', '.join(f'{count:,} {rule}' for rule, count in rules.items())}" for did, rules in counts.items() if rules]
    output.show(record | {"version": version()}, [*lines, f"{counted(log.records, 'record')} written to {printable(out)}"])
