"""The only way to the cluster: Slurm's commands, as lists of words without a shell, with time-outs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from walltime.adjust.facts import Facts, Minutes, SlurmError, read_facts
from walltime.adjust.queue import QueuedJob, check_key, read_queue

TIMEOUT = 20.0
"""Seconds after which a command is ended; what it asked for may be done later all the same."""
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
    """A cluster. Every method raises SlurmError if there is no good answer; a change may have been made even then."""

    def __init__(self, runner: Runner = run, timeout: float = TIMEOUT):
        self._runner = runner
        self._timeout = timeout

    def _ask(self, *words: str) -> str:
        answer = self._runner(words, self._timeout)
        if answer.status == 0:
            return answer.out
        told = " ".join((answer.err or answer.out).split())[:200]
        kind = DeniedError if any(words in told.lower() for words in DENIED) else SlurmError
        raise kind(f"{' '.join(words[:3])}: {told or f'exit status {answer.status}'}")

    def facts(self) -> Facts:
        """The settings, partitions and reservations."""
        shown = [self._ask("scontrol", "show", "config")]
        shown += [self._ask("scontrol", "--oneliner", "--all", "show", kind) for kind in ("partition", "reservation")]
        return read_facts(shown)

    def run_minute_limits(self) -> tuple[str, str]:
        """The tables of associations and of qualities of service, with their limits on running minutes."""
        of = "--noheader", "--parsable2", "show"
        accounts = self._ask("sacctmgr", *of, "associations", "format=Account,ParentName,User,GrpTRESRunMins")
        return accounts, self._ask("sacctmgr", *of, "qos", "format=Name,GrpTRESRunMins,MaxTRESRunMinsPA,MaxTRESRunMinsPU")

    def admin_level(self, user: str) -> str:
        """The AdminLevel of a user, such as `Operator`; empty if Slurm does not know him."""
        return self._ask("sacctmgr", "--noheader", "--parsable2", "show", "user", f"name={user}", "format=AdminLevel").strip()

    def queue(self, tasks: int) -> list[QueuedJob]:
        """The waiting and running jobs; of an array whose tasks are one record, the first `tasks` ones."""
        return read_queue(self._ask("squeue", "--all", "--json"), tasks)

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
