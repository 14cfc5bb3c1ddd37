"""The commands that tell what a Slurm cluster is doing now. They only read, and nothing of them passes through a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from walltime.errors import LogError
from walltime.slurm.records import COMMANDS
from walltime.slurm.squeue_text import FORMAT
from walltime.wording import harmless

Command = tuple[str, ...]

SQUEUE_JSON: Command = ("squeue", "--all", "--json")
SQUEUE_TEXT: Command = ("squeue", "--all", "--noheader", f"--format={FORMAT}")
"""For a squeue that has no --json."""
CLUSTER: dict[str, Command] = {
    "config.txt": ("scontrol", "show", "config"),
    "partition.txt": ("scontrol", "--oneliner", "show", "partition"),
    "node.txt": ("scontrol", "--oneliner", "show", "node"),
    "reservation.txt": ("scontrol", "--oneliner", "show", "reservation"),
    "associations.txt": tuple(shlex.split(COMMANDS[4])),
    "qos.txt": tuple(shlex.split(COMMANDS[5])),
}
"""What the cluster is, by the name of the file that the output goes to."""
SINFO: Command = ("sinfo", "--json")
"""For a cluster whose nodes scontrol does not tell."""
MAY_FAIL = ("reservation.txt", "associations.txt", "qos.txt")
"""Without these there is still a snapshot: sacctmgr may say no to some users."""
ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C"}
"""Times in UTC, so that no change of clocks makes them ambiguous."""
TIMEOUT = 120.0
"""Seconds that a command may take."""
Run = Callable[[Sequence[str], dict[str, str]], str]
"""Runs a command with additions to the environment, and gives its output; raises LogError."""


def shown_commands() -> list[str]:
    """All the commands, as one would type them; the last two only if the first or the node's fail."""
    return [f"TZ=UTC {shlex.join(one)}" for one in (SQUEUE_JSON, *CLUSTER.values())] + [
        f"TZ=UTC SLURM_TIME_FORMAT=%s {shlex.join(SQUEUE_TEXT[:-1])} --format=$'{FORMAT.replace(chr(31), chr(92) + 'x1f')}'",
        f"TZ=UTC {shlex.join(SINFO)}",
    ]


def run(command: Sequence[str], more: dict[str, str], timeout: float = TIMEOUT) -> str:
    """The output of a command; raises LogError, in one line, if it is not there, fails, or takes too long."""
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_TIME_FORMAT"} | more
    try:
        done = subprocess.run(
            list(command), env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False, shell=False
        )
    except FileNotFoundError:
        raise LogError(f"there is no {command[0]} here; run this where Slurm is, or give its outputs as files") from None
    except subprocess.TimeoutExpired:
        raise LogError(f"{command[0]} did not answer within {timeout:g} s; try again later, or give its outputs as files") from None
    except OSError as error:
        raise LogError(f"{command[0]} cannot be run ({(error.strerror or str(error)).lower()})") from error
    if done.returncode:
        said = harmless(" ".join(done.stderr.decode(errors="replace").split()), 200)
        raise LogError(f"{' '.join(command[:2])} failed with status {done.returncode}: {said or 'it says nothing'}")
    return done.stdout.decode(errors="replace")


def collect(folder: Path, runner: Run = run) -> list[str]:
    """Run the commands, each output into a file of this folder; returns notes on those that failed and can be missed."""
    notes: list[str] = []
    try:
        queue, name = runner(SQUEUE_JSON, ENVIRONMENT), "squeue.json"
        if not queue.lstrip().startswith("{"):
            raise LogError("squeue --json printed no JSON")
    except LogError as error:
        try:
            queue, name = runner(SQUEUE_TEXT, ENVIRONMENT | {"SLURM_TIME_FORMAT": "%s"}), "squeue.txt"
        except LogError:
            raise error from None  # what it said at first tells more
        notes.append("squeue --json failed: its text form was read, which says nothing of least times.")
    (folder / name).write_text(queue, encoding="utf-8")
    for file, command in CLUSTER.items():
        try:
            output = runner(command, ENVIRONMENT)
        except LogError as error:
            if file == "node.txt":
                output, file = runner(SINFO, ENVIRONMENT), "sinfo.json"
            elif file in MAY_FAIL:
                notes.append(f"Left out: {harmless(str(error), 200)}.")
                continue
            else:
                raise
        (folder / file).write_text(output, encoding="utf-8")
    return notes
