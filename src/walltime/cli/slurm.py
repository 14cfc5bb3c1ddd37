"""`walltime slurm`: what a Slurm cluster needs."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.errors import PolicyError

app = typer.Typer(help="For Slurm clusters: how to get a log.", no_args_is_help=True, pretty_exceptions_enable=False)
FIELDS = (
    "JobIDRaw,JobID,Cluster,User,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,"
    "NNodes,ReqTRES,AllocTRES,Reason,Flags,Priority,Reservation"
)
"""The fields that are asked for, besides the free texts, which stand last: sacct does not escape them."""
_DAY = re.compile(r"[0-9A-Za-z:/.+-]+")


@app.callback()
def _slurm() -> None:
    """For Slurm clusters: how to get a log."""


@app.command("sacct-command")
def sacct_command(
    *,
    begin: Annotated[
        str, typer.Option("--begin", metavar="TIME", help="First day of the log, as sacct takes it: 2026-01-31, now-90days.")
    ] = "now-90days",
    end: Annotated[str, typer.Option("--end", metavar="TIME", help="Its last day.")] = "now",
    partition: Annotated[list[str] | None, typer.Option("--partition", help="Only this partition; repeat it for more.")] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="With the steps of jobs: several times as long, but lost starts of jobs can be found.")
    ] = False,
    command_line: Annotated[
        bool, typer.Option("--submit-line/--no-submit-line", help="With command lines, which sacct has from Slurm 21.08 on.")
    ] = True,
    names: Annotated[bool, typer.Option("--job-names/--no-job-names", help="With job names.")] = True,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The file that the command writes, gzipped.")] = "jobs.txt.gz",
    as_json: o.JsonOption = False,
) -> None:
    """Print the command that prints a cluster's job log, to be run there by somebody who may see all jobs.

    SLURM_TIME_FORMAT=%s prints times in seconds since 1970, which no change of clocks makes ambiguous; TZ=UTC is for versions that do
    not know it, and makes days begin at midnight UTC. --allusers: everybody's jobs. --allocations: jobs without their steps.
    --duplicates: also the earlier runs of jobs that were put back into the queue, which occupied processors too. --parsable2 with the
    delimiter 0x1f, and free texts last: sacct escapes nothing, and job names may contain anything. --noconvert: numbers without units.
    """
    for time in (begin, end):
        if not _DAY.fullmatch(time):
            raise PolicyError(f"{time!r} is no time for sacct; write one as 2026-01-31 or now-90days")
    texts = ["SubmitLine"] * command_line + ["JobName"] * names
    words = ["sacct", "--allusers", *([] if steps else ["--allocations"]), "--duplicates", "--parsable2", "--noconvert"]
    words += [f"--starttime={begin}", f"--endtime={end}"]
    words += [f"--partition={','.join(partition)}"] if partition else []
    command = f"TZ=UTC SLURM_TIME_FORMAT=%s {shlex.join(words)} --delimiter=$'\\x1f' --format={','.join([FIELDS, *texts])}"
    command += f" | gzip > {shlex.quote(out)}"
    if as_json:
        from walltime.cli import common
        from walltime.provenance import version

        common.print_json({"command": command, "version": version()})
    else:
        typer.echo(command)
