"""The only way to the cluster: Slurm's commands, as lists of words without a shell, with time-outs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from walltime.slurm.sidecar.configuration import Configuration, Minutes, SlurmError, read_configuration
from walltime.slurm.sidecar.queue import FORMAT, QueueJob, check_key, read_queue

TIMEOUT = 20.0
"""Seconds after which a command is ended; what it asked for may be done later all the same."""
MANY = 2000
"""More jobs than these are not asked for one by one: their numbers would not fit on a command line."""
ASSOCIATIONS = ("Account", "ParentName", "User", "MaxWall", "GrpTRESRunMins", "MaxTRESMins", "GrpTRESMins", "GrpWall")
QOS = ("Name", "MaxWall", "Flags", "GrpTRESRunMins", "MaxTRESRunMinsPA", "MaxTRESRunMinsPU", "MaxTRESMins", "GrpTRESMins", "GrpWall")
DENIED = ("access/permission denied", "invalid user id", "user not authorized", "operation not permitted")


class DeniedError(SlurmError):
    """Slurm does not allow a change."""


class Answer(NamedTuple):
    """What a command answered: its exit status, None after a time-out, and its two streams."""

    status: int | None
    out: str
    err: str


Runner = Callable[[Sequence[str], float], Answer]


def run(words: Sequence[str], timeout: float) -> Answer:
    """Run a command, with times in UTC and without what a user's environment would change in its output."""
    changing = ("SQUEUE_", "SBATCH_", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS", "SCONTROL_", "SLURM_JSON", "SLURM_YAML")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    environment |= {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}  # lists of an array's tasks in full
    try:
        done = subprocess.run(list(words), env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"no answer within {timeout:g} s")
    except OSError as error:
        return Answer(127, "", (error.strerror or str(error)).lower())
    return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Slurm:
    """A cluster. Every method raises SlurmError if there is no good answer; a change may have been made even then.

    `alive` is called after each command.
    """

    def __init__(self, runner: Runner = run, timeout: float = TIMEOUT, alive: Callable[[], None] = lambda: None):
        self._runner = runner
        self._timeout = timeout
        self.alive = alive

    def _ask(self, *words: str) -> str:
        answer = self._runner(words, self._timeout)
        self.alive()
        if answer.status == 0:
            return answer.out
        told = " ".join((answer.err or answer.out).split())[:200]
        kind = DeniedError if any(words in told.lower() for words in DENIED) else SlurmError
        raise kind(f"{' '.join(words[:3])}: {told or f'exit status {answer.status}'}")

    def configuration(self) -> Configuration:
        """The settings, partitions and reservations."""
        shown = [self._ask("scontrol", "show", "config")]
        shown += [self._ask("scontrol", "--oneliner", "--all", "show", kind) for kind in ("partition", "reservation")]
        return read_configuration(shown)

    def limits(self) -> tuple[str, str]:
        """The tables of associations and of qualities of service, with the limits on their jobs."""
        of = "--noheader", "--parsable2", "show"
        accounts = self._ask("sacctmgr", *of, "associations", f"format={','.join(ASSOCIATIONS)}")
        return accounts, self._ask("sacctmgr", *of, "qos", f"format={','.join(QOS)}")

    def admin_level(self, user: str) -> str:
        """The AdminLevel of a user, such as `Operator`; empty if Slurm does not know him."""
        return self._ask("sacctmgr", "--noheader", "--parsable2", "show", "user", f"name={user}", "format=AdminLevel").strip()

    def queue(self, tasks: int) -> list[QueueJob]:
        """The waiting and running jobs; of an array whose tasks are one record, the first `tasks` ones."""
        return read_queue(self._ask("squeue", "--all", "--noheader", f"--Format={FORMAT}"), tasks)

    def jobs(self, keys: Sequence[str], tasks: int) -> list[QueueJob]:
        """These jobs, also those that have ended a short while ago; whatever Slurm does not know any more is left out."""
        if not keys:
            return []
        chosen = [f"--jobs={','.join(map(check_key, keys))}"] if len(keys) <= MANY else []
        try:
            told = self._ask("squeue", "--all", "--noheader", "--states=all", *chosen, f"--Format={FORMAT}")
        except SlurmError as error:
            if len(keys) == 1 and "invalid job id" in str(error).lower():
                return []
            raise
        wanted = set(keys)
        return [job for job in read_queue(told, tasks) if job.key in wanted]

    def jobs_named(self, names: Sequence[str], user: str) -> list[str]:
        """The keys of a user's jobs with these names."""
        words = ("squeue", "--all", "--noheader", f"--user={user}", f"--name={','.join(names)}", "--Format=JobID:0|")
        return [check_key(line.removesuffix("|")) for line in self._ask(*words).splitlines() if line]

    def set_time_min(self, key: str, minutes: int) -> None:
        """Set the TimeMin of a waiting job; 0 takes it away."""
        self._ask("scontrol", "update", f"JobId={check_key(key)}", f"TimeMin={int(minutes)}")

    def set_limit(self, key: str, minutes: Minutes) -> None:
        """Set the time limit of a job; None is no limit."""
        self._ask("scontrol", "update", f"JobId={check_key(key)}", f"TimeLimit={'UNLIMITED' if minutes is None else int(minutes)}")

    def submit_test(self, name: str, minutes: int, seconds: int, options: Sequence[str]) -> str:
        """Submit a held job of one processor that sleeps; returns its number."""
        words = ("sbatch", "--parsable", "--hold", f"--job-name={name}", "--ntasks=1", f"--time={minutes}", "--no-requeue")
        printed = self._ask(*words, "--output=/dev/null", "--error=/dev/null", *options, f"--wrap=sleep {seconds}")
        return check_key(printed.strip().partition(";")[0])

    def release(self, key: str) -> None:
        """Release a held job."""
        self._ask("scontrol", "release", check_key(key))

    def cancel(self, key: str) -> None:
        """Cancel a job."""
        self._ask("scancel", check_key(key))
