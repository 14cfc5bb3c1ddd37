"""The only access to a cluster: Slurm's commands, run without a shell and with time limits."""

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from walltime.slurm.configuration import Configuration, Limits, read_configuration, read_limits
from walltime.slurm.records import ClusterRecords, SlurmError, read_text
from walltime.slurm.squeue_fields import FORMAT, QueueJob, check_key, read_queue
from walltime.slurm_values import Minutes

TIMEOUT = 20.0
"""Seconds after which a command is ended; Slurm may still make its change later."""
LONGEST_JOB_LIST = 2000
"""Maximum number of jobs named on one command line; for more jobs, the whole queue is listed."""
_SHOW = ("scontrol", "--oneliner", "--all", "show")
_LIMITS = "GrpJobs,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpWall,MaxWall"
CLUSTER = {
    "settings": ("scontrol", "show", "config"),
    "partitions": (*_SHOW, "partition"),
    "nodes": (*_SHOW, "node"),
    "reservations": (*_SHOW, "reservation"),
    "associations": (
        *("sacctmgr", "--parsable2", "show", "associations"),
        f"format=Cluster,Account,User,Partition,ParentName,Share,Priority,{_LIMITS},MaxJobs,MaxTRES,MaxTRESMins",
    ),
    "qos": (
        *("sacctmgr", "--parsable2", "show", "qos"),
        f"format=Name,Priority,Flags,UsageFactor,Preempt,PreemptMode,GraceTime,PreemptExemptTime,{_LIMITS},MaxJobsPU,MaxTRESPU,MaxJobsPA,MaxTRESPA,MaxTRES,MaxTRESMins,"
        "MaxTRESRunMinsPA,MaxTRESRunMinsPU",
    ),
}
"""The commands that describe a cluster, by the kind of records that they print; all of them only read."""
PAST_RESERVATIONS = (
    *("sacctmgr", "--parsable2", "show", "reservation"),
    "start=now-365days",
    "format=Cluster,Name,Start,End,Flags,NodeNames",
)
"""The command that lists the reservations of the last year; scontrol shows only reservations that have not ended."""
_OUTPUT_VARIABLES = ("SQUEUE_", "SBATCH_", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS", "SCONTROL_", "SLURM_JSON", "SLURM_YAML")
"""Prefixes of environment variables that would change the output of commands."""
DENIED = ("access/permission denied", "invalid user id", "user not authorized", "operation not permitted")


class DeniedError(SlurmError):
    """Slurm denies a change."""


class CommandResult(NamedTuple):
    """The exit status of a command, None if it took too long, and its output streams."""

    status: int | None
    out: str
    err: str


Runner = Callable[[Sequence[str], float], CommandResult]
"""Runs a command, for at most this many seconds."""


def run(words: Sequence[str], timeout: float) -> CommandResult:
    """Run a command without input; it prints times in UTC, so that changes to and from summer time cannot make them ambiguous."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OUTPUT_VARIABLES)}
    environment |= {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}  # do not shorten the lists of an array's tasks
    try:
        done = subprocess.run(list(words), env=environment, input=b"", capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return CommandResult(None, "", f"no answer within {timeout:g} s")
    except FileNotFoundError:
        return CommandResult(127, "", f"command {words[0]} not found on this machine")
    except OSError as error:
        return CommandResult(127, "", (error.strerror or str(error)).lower())
    return CommandResult(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Client:
    """The Slurm commands of a cluster. Every method raises SlurmError if a command fails; Slurm may still make the change later.

    `alive` is called after each command.
    """

    def __init__(self, runner: Runner = run, timeout: float = TIMEOUT, alive: Callable[[], None] = lambda: None):
        self._runner = runner
        self._timeout = timeout
        self.alive = alive

    def output(self, *words: str) -> str:
        """Run a command, and return its output."""
        result = self._runner(words, self._timeout)
        self.alive()
        if result.status == 0:
            return result.out
        reason = " ".join((result.err or result.out).split())[:200]
        kind = DeniedError if any(denied in reason.lower() for denied in DENIED) else SlurmError
        raise kind(f"{' '.join(words[:3])}: {reason or f'exit status {result.status}'}", "command_failure")

    def records(self, *kinds: str) -> ClusterRecords:
        """Return Slurm's records of these kinds, which are keys of CLUSTER."""
        records = ClusterRecords()
        for kind in kinds:
            read_text(self.output(*CLUSTER[kind]), records)
        return records

    def configuration(self) -> Configuration:
        """Return the settings, partitions and reservations."""
        return read_configuration(self.records("settings", "partitions", "reservations"))

    def limits(self) -> Limits:
        """Return the limits that associations and qualities of service (QOS) set on jobs."""
        return read_limits(self.records("associations", "qos"))

    def admin_level(self, user: str) -> str:
        """Return the AdminLevel of a user, such as `Operator`; empty for a user that Slurm does not list."""
        return self.output("sacctmgr", "--noheader", "--parsable2", "show", "user", f"name={user}", "format=AdminLevel").strip()

    def queue(self, tasks: int, *words: str) -> list[QueueJob]:
        """Return the waiting and running jobs, but only the first `tasks` tasks of an array. `words`: options of squeue."""
        return read_queue(self.output("squeue", "--all", "--noheader", *words, f"--Format={FORMAT}"), tasks)

    def jobs(self, keys: Sequence[str], tasks: int) -> list[QueueJob]:
        """Return the jobs with these keys, including jobs that ended recently; jobs that Slurm no longer shows are missing."""
        if not keys:
            return []
        chosen = [f"--jobs={','.join(map(check_key, keys))}"] if len(keys) <= LONGEST_JOB_LIST else []
        try:
            jobs = self.queue(tasks, "--states=all", *chosen)
        except SlurmError as error:
            if len(keys) == 1 and "invalid job id" in str(error).lower():
                return []
            raise
        wanted = set(keys)
        return [job for job in jobs if job.key in wanted]

    def jobs_named(self, names: Sequence[str], user: str) -> list[str]:
        """Return the keys of a user's jobs with these names."""
        words = ("squeue", "--all", "--noheader", f"--user={user}", f"--name={','.join(names)}", "--Format=JobID:0|")
        return [check_key(line.removesuffix("|")) for line in self.output(*words).splitlines() if line]

    def set_time_min(self, key: str, minutes: int) -> None:
        """Set the TimeMin of a waiting job; 0 removes it."""
        self.output("scontrol", "update", f"JobId={check_key(key)}", f"TimeMin={int(minutes)}")

    def set_limit(self, key: str, minutes: Minutes) -> None:
        """Set the time limit of a job, minutes; None removes it."""
        self.output("scontrol", "update", f"JobId={check_key(key)}", f"TimeLimit={'UNLIMITED' if minutes is None else int(minutes)}")

    def submit_test(self, name: str, minutes: int, seconds: int, options: Sequence[str]) -> str:
        """Submit a held job of one processor that sleeps for `seconds`, with a limit in minutes; return its key."""
        words = ("sbatch", "--parsable", "--hold", f"--job-name={name}", "--ntasks=1", f"--time={minutes}", "--no-requeue")
        printed = self.output(*words, "--output=/dev/null", "--error=/dev/null", *options, f"--wrap=sleep {seconds}")
        return check_key(printed.strip().partition(";")[0])

    def release(self, key: str) -> None:
        """Release a held job."""
        self.output("scontrol", "release", check_key(key))

    def cancel(self, key: str) -> None:
        """Cancel a job."""
        self.output("scancel", check_key(key))
