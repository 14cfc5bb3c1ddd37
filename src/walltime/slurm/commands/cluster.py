"""`walltime slurm sacct-command`, `cluster-command` and `cluster`: the job log and the machine file of a Slurm cluster."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.errors import PolicyError
from walltime.wording import printable

FIELDS = (
    "JobIDRaw,JobID,Cluster,User,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,"
    "NNodes,ReqMem,ReqTRES,AllocTRES,TotalCPU,UserCPU,MaxRSS,AveRSS,TRESUsageInTot,TRESUsageInAve,ConsumedEnergyRaw,Reason,Flags,Priority,"
    "Reservation,NodeList"
)
"""The requested fields, which all versions since 20.11 have. Free texts are added last, because sacct does not escape them."""
NEWER = {"Restarts": (24, 5), "Constraints": (20, 2), "Licenses": (24, 5), "SubmitLine": (21, 8)}
"""Fields that only later versions of Slurm have, each with the earliest version known to have it."""
_VERSION = re.compile(r"([0-9]{2})\.([0-9]{1,2})(?:\.[0-9]+)?")
_DAY = re.compile(r"[0-9A-Za-z:/.+-]+")


@manual(
    "guides/cluster-logs",
    ("Print the command for the jobs of the last 90 days.", "slurm sacct-command"),
    ("Print it for one partition since the new year.", "slurm sacct-command --since 2026-01-01 --partition batch"),
)
def sacct_command(
    *,
    since: Annotated[
        str, o.option("Get jobs from this time on, as in 2026-01-31, 2026-01-31T12:00:00 or now-90days.", group=o.JOBS, metavar="TIME")
    ] = "now-90days",
    until: Annotated[
        str, o.option("Get jobs until this time, as in 2026-01-31, 2026-01-31T12:00:00 or now.", group=o.JOBS, metavar="TIME")
    ] = "now",
    partition: Annotated[list[str] | None, o.option("Get only jobs of this partition. Default: all.", group=o.JOBS, metavar="NAME")] = None,
    steps: Annotated[
        bool,
        o.option(
            "Get job steps as well: they record the memory, processor time and GPUs used, and start times that job records lack. "
            "The log becomes several times as long.",
            "--steps/--no-steps",
            group=o.JOBS,
        ),
    ] = True,
    command_line: Annotated[
        bool, o.option("Get the command lines of jobs, which Slurm 21.08 and later record.", "--submit-line/--no-submit-line")
    ] = True,
    names: Annotated[bool, o.option("Get the names of jobs.", "--job-names/--no-job-names")] = True,
    slurm_version: Annotated[
        str | None, o.option("List the fields of this Slurm version, as in 22.05. Default: the fields that sacct lists.", metavar="VERSION")
    ] = None,
    out: Annotated[str, o.option("Let sacct write the log to this file, compressed with gzip.", metavar="FILE")] = "jobs.txt.gz",
    as_json: o.JsonOption = False,
) -> None:
    """Print the sacct command that exports a cluster's job log.

    Run the printed command on the cluster as a user who may see all jobs. It lists the jobs of all users, the earlier runs of requeued jobs
    and, with --steps, job steps. Times are in seconds since 1970 (or in UTC with old versions), numbers have no units, and free text comes
    last. The delimiter is the character 0x1F, which does not occur in constraints, names or command lines.
    """
    for time in (since, until):
        if not _DAY.fullmatch(time):
            raise PolicyError(f"{time!r} is not a time for sacct; write one as 2026-01-31 or now-90days")
    newer = {name: first for name, first in NEWER.items() if command_line or name != "SubmitLine"}
    fields = f"{FIELDS}$(sacct --helpformat | tr -s ' ' '\\n' | grep -xE '{'|'.join(newer)}' | sed 's/^/,/' | tr -d '\\n')"
    if slurm_version is not None:
        version = _VERSION.fullmatch(slurm_version)
        if version is None:
            raise PolicyError(f"{slurm_version!r} is not a version of Slurm; write one as 22.05")
        fields = ",".join([FIELDS, *(name for name, first in newer.items() if first <= (int(version[1]), int(version[2])))])
    words = ["sacct", "--allusers", *([] if steps else ["--allocations"]), "--duplicates", "--parsable2", "--noconvert"]
    words += [f"--starttime={since}", f"--endtime={until}"]
    words += [f"--partition={','.join(partition)}"] if partition else []
    command = f"TZ=UTC SLURM_TIME_FORMAT=%s {shlex.join(words)} --delimiter=$'\\x1f' --format={fields},AdminComment{',JobName' * names}"
    _print(f"{command} | gzip > {shlex.quote(out)}", as_json)


def _print(command: str, as_json: bool) -> None:
    if as_json:
        from walltime.cli.output import print_json
        from walltime.provenance import version

        print_json({"command": command, "version": version()})
    else:
        typer.echo(command)


@manual(
    "guides/machine-from-slurm",
    ("Print the command that describes the cluster.", "slurm cluster-command"),
    ("Print it with another output file.", "slurm cluster-command --out settings.txt"),
)
def cluster_command(
    *,
    out: Annotated[str, o.option("Let the printed command write Slurm's settings to this file.", metavar="FILE")] = "cluster.txt",
    as_json: o.JsonOption = False,
) -> None:
    """Print the command that exports the settings of a cluster, for walltime slurm cluster.

    Any user can run the printed command on the cluster. It only reads: settings, partitions, nodes and reservations with scontrol, and
    shares and limits with sacctmgr. Some sites allow only operators to run sacctmgr; that part can be left out.
    """
    from walltime.slurm.client import CLUSTER, PAST_RESERVATIONS

    _print(f"{{ {'; '.join(map(shlex.join, (*CLUSTER.values(), PAST_RESERVATIONS)))}; }} > {shlex.quote(out)}", as_json)


@manual(
    "guides/machine-from-slurm",
    ("Make a machine file from the settings of a cluster.", "slurm cluster cluster.txt --out machine.toml"),
    ("Print it.", "slurm cluster cluster.txt"),
)
def cluster(
    files: Annotated[
        list[Path], o.argument("The output of the command from walltime slurm cluster-command, in one file or several.", "FILE")
    ],
    *,
    out: Annotated[Path | None, o.out("the machine", ".toml", metavar="FILE")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Make a machine file, for --machine, from the settings of a Slurm cluster; print it, or write it with --out.

    The command recognises the outputs of scontrol show config, partition, node and reservation, of sinfo --json, and of sacctmgr
    --parsable2 show associations and qos.
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
        words = {"procs": "processors", "gpus": "GPUs", "mem_mb": "MB of memory", "qos": "QOS"}
        typer.echo(", ".join(f"{words.get(name, name)} {count:,}" for name, count in counts.items()) + f"; policy {machine.policy}")
        for note in description.notes:
            output.print_blocks([Items([note])])
        typer.echo(f"written to {printable(out)}")
