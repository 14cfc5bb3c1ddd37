"""The only way to a cluster: Slurm's commands, as lists of words without a shell, with time-outs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from walltime.slurm.configuration import Configuration, Limits, read_configuration, read_limits
from walltime.slurm.records import ClusterRecords, SlurmError, read_text
from walltime.slurm.squeue_fields import FORMAT, QueueJob, check_key, read_queue
from walltime.slurm_values import Minutes

TIMEOUT = 20.0
"""Seconds after which a command is ended; what it asked for may be done later all the same."""
MANY = 2000
"""More jobs than these are not asked for one by one: their numbers would not fit on a command line."""
_SHOW = ("scontrol", "--oneliner", "--all", "show")
_LIMITS = "GrpJobs,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpWall,MaxWall"
CLUSTER = {
    "settings": ("scontrol", "show", "config"),
    "partitions": (*_SHOW, "partition"),
    "nodes": (*_SHOW, "node"),
    "reservations": (*_SHOW, "reservation"),
    "associations": (
        *("sacctmgr", "--parsable2", "show", "associations"),
        f"format=Cluster,Account,User,Partition,ParentName,Share,{_LIMITS},MaxJobs,MaxTRES,MaxTRESMins",
    ),
    "qos": (
        *("sacctmgr", "--parsable2", "show", "qos"),
        f"format=Name,Priority,Flags,UsageFactor,Preempt,{_LIMITS},MaxJobsPU,MaxTRESPU,MaxJobsPA,MaxTRESPA,MaxTRES,MaxTRESMins,"
        "MaxTRESRunMinsPA,MaxTRESRunMinsPU",
    ),
}
"""The commands that say what a cluster is, by the kind of records that they print; all of them only read."""
_CHANGING = ("SQUEUE_", "SBATCH_", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS", "SCONTROL_", "SLURM_JSON", "SLURM_YAML")
"""What in a user's environment would change the output of commands."""
DENIED = ("access/permission denied", "invalid user id", "user not authorized", "operation not permitted")


class DeniedError(SlurmError):
    """Slurm does not allow a change."""


class Answer(NamedTuple):
    """What a command answered: its exit status, None after a time-out, and its two streams."""

    status: int | None
    out: str
    err: str


Runner = Callable[[Sequence[str], float], Answer]
"""Runs a command, for so many seconds at most."""


def run(words: Sequence[str], timeout: float, text: str = "") -> Answer:
    """Run a command with this text as its input, with times in UTC, so that no change of clocks makes them ambiguous."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_CHANGING)}
    environment |= {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}  # lists of an array's tasks in full
    try:
        done = subprocess.run(list(words), env=environment, input=text.encode(), capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"no answer within {timeout:g} s")
    except FileNotFoundError:
        return Answer(127, "", f"there is no {words[0]} here")
    except OSError as error:
        return Answer(127, "", (error.strerror or str(error)).lower())
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Client:
    """A cluster. Every method raises SlurmError if there is no good answer; a change may have been made even then.

    `alive` is called after each command.
    """

    def __init__(self, runner: Runner = run, timeout: float = TIMEOUT, alive: Callable[[], None] = lambda: None):
        self._runner = runner
        self._timeout = timeout
        self.alive = alive

    def ask(self, *words: str) -> str:
        """The output of a command."""
        answer = self._runner(words, self._timeout)
        self.alive()
        if answer.status == 0:
            return answer.out
        reason = " ".join((answer.err or answer.out).split())[:200]
        kind = DeniedError if any(denied in reason.lower() for denied in DENIED) else SlurmError
        raise kind(f"{' '.join(words[:3])}: {reason or f'exit status {answer.status}'}", "command_failure")

    def records(self, *kinds: str) -> ClusterRecords:
        """What Slurm says of the cluster: records of these kinds of CLUSTER."""
        records = ClusterRecords()
        for kind in kinds:
            read_text(self.ask(*CLUSTER[kind]), records)
        return records

    def configuration(self) -> Configuration:
        """The settings, partitions and reservations."""
        return read_configuration(self.records("settings", "partitions", "reservations"))

    def limits(self) -> Limits:
        """The limits on jobs of associations and of qualities of service."""
        return read_limits(self.records("associations", "qos"))

    def admin_level(self, user: str) -> str:
        """The AdminLevel of a user, such as `Operator`; empty if Slurm does not know them."""
        return self.ask("sacctmgr", "--noheader", "--parsable2", "show", "user", f"name={user}", "format=AdminLevel").strip()

    def queue(self, tasks: int) -> list[QueueJob]:
        """The waiting and running jobs; of an array whose tasks are one record, the first `tasks` ones."""
        return self._queue((), tasks)

    def _queue(self, words: Sequence[str], tasks: int) -> list[QueueJob]:
        return read_queue(self.ask("squeue", "--all", "--noheader", *words, f"--Format={FORMAT}"), tasks)

    def jobs(self, keys: Sequence[str], tasks: int) -> list[QueueJob]:
        """These jobs, also those that have ended a short while ago; whatever Slurm does not know any more is left out."""
        if not keys:
            return []
        chosen = [f"--jobs={','.join(map(check_key, keys))}"] if len(keys) <= MANY else []
        try:
            jobs = self._queue(("--states=all", *chosen), tasks)
        except SlurmError as error:
            if len(keys) == 1 and "invalid job id" in str(error).lower():
                return []
            raise
        return [job for job in jobs if job.key in set(keys)]

    def jobs_named(self, names: Sequence[str], user: str) -> list[str]:
        """The keys of a user's jobs with these names."""
        words = ("squeue", "--all", "--noheader", f"--user={user}", f"--name={','.join(names)}", "--Format=JobID:0|")
        return [check_key(line.removesuffix("|")) for line in self.ask(*words).splitlines() if line]

    def set_time_min(self, key: str, minutes: int) -> None:
        """Set the TimeMin of a waiting job; 0 takes it away."""
        self.ask("scontrol", "update", f"JobId={check_key(key)}", f"TimeMin={int(minutes)}")

    def set_limit(self, key: str, minutes: Minutes) -> None:
        """Set the time limit of a job; None is no limit."""
        self.ask("scontrol", "update", f"JobId={check_key(key)}", f"TimeLimit={'UNLIMITED' if minutes is None else int(minutes)}")

    def submit_test(self, name: str, minutes: int, seconds: int, options: Sequence[str]) -> str:
        """Submit a held job of one processor that sleeps; returns its number."""
        words = ("sbatch", "--parsable", "--hold", f"--job-name={name}", "--ntasks=1", f"--time={minutes}", "--no-requeue")
        printed = self.ask(*words, "--output=/dev/null", "--error=/dev/null", *options, f"--wrap=sleep {seconds}")
        return check_key(printed.strip().partition(";")[0])

    def release(self, key: str) -> None:
        """Release a held job."""
        self.ask("scontrol", "release", check_key(key))

    def cancel(self, key: str) -> None:
        """Cancel a job."""
        self.ask("scancel", check_key(key))
