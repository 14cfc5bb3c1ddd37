"""`walltime slurm sacct-command`, `cluster-command` and `cluster`: a job log and the machine, as Slurm has them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.errors import PolicyError
from walltime.wording import printable

FIELDS = (
    "JobIDRaw,JobID,Cluster,User,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,"
    "NNodes,ReqTRES,AllocTRES,Reason,Flags,Priority,Reservation"
)
"""The fields that are asked for, besides the free texts, which stand last: sacct does not escape them."""
_DAY = re.compile(r"[0-9A-Za-z:/.+-]+")


def sacct_command(
    *,
    since: Annotated[str, o.option("--since", "Also as sacct takes it: now-90days.", None, metavar="TIME")] = "now-90days",
    until: Annotated[str, o.option("--until", "", None, metavar="TIME")] = "now",
    partition: Annotated[list[str] | None, o.own("Only this partition; repeat it for more.")] = None,
    steps: Annotated[bool, o.own("With the steps of jobs: several times as long, but lost starts of jobs can be found.")] = False,
    command_line: Annotated[
        bool, typer.Option("--submit-line/--no-submit-line", help="With command lines, which sacct has from Slurm 21.08 on.")
    ] = True,
    names: Annotated[bool, typer.Option("--job-names/--no-job-names", help="With job names.")] = True,
    out: Annotated[str, o.own("Write the log here: a file, gzipped.", metavar="FILE")] = "jobs.txt.gz",
    as_json: o.JsonOption = False,
) -> None:
    """Print the command that prints a cluster's job log, to be run there by somebody who may see all jobs.

    SLURM_TIME_FORMAT=%s prints times in seconds since 1970, which no change of clocks makes ambiguous; TZ=UTC is for versions that do
    not know it, and makes days begin at midnight UTC. --allusers: everybody's jobs. --allocations: jobs without their steps.
    --duplicates: also the earlier runs of jobs that were put back into the queue, which occupied processors too. --parsable2 with the
    delimiter 0x1f, and free texts last: sacct escapes nothing, and job names may contain anything. --noconvert: numbers without units.
    """
    for time in (since, until):
        if not _DAY.fullmatch(time):
            raise PolicyError(f"{time!r} is no time for sacct; write one as 2026-01-31 or now-90days")
    texts = ["SubmitLine"] * command_line + ["JobName"] * names
    words = ["sacct", "--allusers", *([] if steps else ["--allocations"]), "--duplicates", "--parsable2", "--noconvert"]
    words += [f"--starttime={since}", f"--endtime={until}"]
    words += [f"--partition={','.join(partition)}"] if partition else []
    command = f"TZ=UTC SLURM_TIME_FORMAT=%s {shlex.join(words)} --delimiter=$'\\x1f' --format={','.join([FIELDS, *texts])}"
    command += f" | gzip > {shlex.quote(out)}"
    if as_json:
        from walltime.cli import output
        from walltime.provenance import version

        output.print_json({"command": command, "version": version()})
    else:
        typer.echo(command)


def cluster_command(
    *,
    out: Annotated[str, o.own("Write what Slurm says here: the file of the command.", metavar="FILE")] = "cluster.txt",
    as_json: o.JsonOption = False,
) -> None:
    """Print the command that prints what Slurm says of a cluster, to be run there by anybody; walltime slurm cluster reads its output.

    It only reads: the settings, partitions, nodes and reservations by scontrol, shares and limits by sacctmgr, which may say no to some
    users and may be left out.
    """
    from walltime.slurm.client import CLUSTER

    command = f"{{ {'; '.join(map(shlex.join, CLUSTER.values()))}; }} > {shlex.quote(out)}"
    if as_json:
        from walltime.cli import output
        from walltime.provenance import version

        output.print_json({"command": command, "version": version()})
    else:
        typer.echo(command)


def cluster(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="What Slurm printed of the cluster, in one file or several.")],
    *,
    out: Annotated[Path | None, o.out("the machine", ".toml", panel=None, metavar="FILE")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Make a machine's file, for --machine, of what Slurm says of a cluster; print it, or write it with --out.

    The outputs of scontrol show config, partition, node and reservation, of sinfo --json, and of sacctmgr --parsable2 show associations
    and qos are told apart by their content; see walltime slurm cluster-command.
    """
    from walltime.cli import output
    from walltime.provenance import version
    from walltime.report.page import Items
    from walltime.slurm import read_cluster

    description = read_cluster(*files)
    if out is not None:
        from walltime.files import whole_file

        with whole_file(out) as file:
            file.write(description.text().encode())
    machine = description.machine
    counts = {
        "nodes": sum(pool.nodes for pool in machine.pools),
        "procs": machine.procs,
        **({machine.second: machine.second_total} if machine.second_total else {}),
        **{name: len(getattr(machine, name)) for name in ("pools", "partitions", "outages", "limits", "shares", "qos")},
    }
    if as_json:
        about = {"machine": machine.name, "policy": machine.policy, **counts, "notes": list(description.notes)}
        output.print_json({**about, "out": None if out is None else str(out), "version": version()})
    elif out is None:
        typer.echo(description.text(), nl=False)
    else:
        typer.echo(", ".join(f"{name} {count:,}" for name, count in counts.items()) + f"; policy {machine.policy}")
        for note in description.notes:
            output.print_blocks([Items([note])])
        typer.echo(f"written to {printable(out)}")
