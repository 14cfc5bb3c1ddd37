"""The second give-back: slurmctld itself raises the limit of a job that it starts, by a script and a folder of small files.

The folder has a file for each waiting job that backfill may shorten, named as the job is (`7`, or `7_3` for a task of an array), with
nothing in it but two numbers of minutes: its limit as it is known, and the longest that its user may have chosen unseen. The script is
slurmctld's PrologSlurmctld; it needs nothing of the side-car but them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from walltime.errors import OutputError
from walltime.files import printable, whole_file
from walltime.logs.slurm.values import Minutes
from walltime.slurm.client import Client
from walltime.slurm.configuration import Configuration
from walltime.slurm.queue import KEY, QueueJob, check_key
from walltime.slurm.records import SlurmError

YEAR = 525_600
"""Minutes; what a job without a limit gets from the prolog, as in Slurm's accounting. The side-car takes the limit away after it."""
MOST = 999_999
"""Minutes; the script reads no more digits."""
KEEP_ORPHANS = 30 * 86_400
"""Seconds for which the file of a job that the ledger does not know is kept."""
NAME = "walltime-self-test-prolog"
SHORT, WHOLE = 12, 15
"""Minutes: the limit of the test's job, and the one that the prolog must raise it to."""
LOOKS = 3
"""So often a running job is looked at before the prolog is said not to have raised its limit."""
PATIENCE = 1800.0
"""Seconds for which the test's job may wait."""

SCRIPT = """\
#!/bin/sh
# PrologSlurmctld: raises the limit of a job that backfill has shortened to its user's, as the side-car has noted it in the spool folder.
# It never lowers a limit, touches no other job, and never fails a job. slurmctld runs it without PATH and without SLURM_CONF, as
# SlurmUser. After it has been put into slurm.conf slurmctld must be restarted: scontrol reconfigure is not enough.
spool={spool}
PATH={folder}:/usr/bin:/bin
export PATH{conf}

say() {{
    logger -t walltime-prolog -- "$1" 2>/dev/null
    return 0
}}

# minutes of a limit as squeue prints it (1-02:03:04, 2:03:04, 3:04), rounded up; nothing for words such as UNLIMITED
minutes_of() {{
    rest=$1 days=0
    case $rest in *[!0-9:-]* | "") return ;; esac
    case $rest in *-*) days=${{rest%%-*}} rest=${{rest#*-}} ;; esac
    seconds=${{rest##*:}} rest=${{rest%:*}}
    case $rest in *:*) hours=${{rest%%:*}} rest=${{rest#*:}} ;; *) hours=0 ;; esac
    for part in days hours rest seconds; do # 08 would be an octal number
        eval "value=\\$$part"
        case $value in 0?*) value=${{value#0}} ;; esac
        eval "$part=\\$value"
    done
    total=$((days * 1440 + hours * 60 + rest))
    [ "$seconds" -eq 0 ] || total=$((total + 1))
    echo "$total"
}}

give_back() {{
    case ${{SLURM_ARRAY_JOB_ID:-}} in
        "" | 0) key=${{SLURM_JOB_ID:-}} ;;
        *) key=${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID:-}} ;;
    esac
    case $key in "" | *[!0-9_]* | _* | *_ | *_*_*) return ;; esac
    [ -f "$spool/$key" ] && [ ! -L "$spool/$key" ] || return
    IFS=' ' read -r known minutes <"$spool/$key" || return
    minutes=${{minutes:-$known}}
    for part in "$known" "$minutes"; do
        case $part in "" | 0* | *[!0-9]* | ???????*) say "job $key: its file has no number of minutes" && return ;; esac
    done
    for try in 1 2 3; do
        shown=$(timeout 10 squeue --noheader --jobs="$key" --Format=TimeLimit:30,MinTime:30 2>/dev/null)
        set -f
        set -- $shown
        case ${{2:-}} in
            "") sleep 1 && continue ;;
            N/A | 0:00 | 00:00) return ;; # it has no TimeMin, so its limit is what its user wants
        esac
        now=$(minutes_of "$1")
        # a job that has its known limit was not shortened
        [ -n "$now" ] && [ "$now" -lt "$known" ] && [ "$now" -lt "$minutes" ] || return
        if timeout 10 scontrol update JobId="$key" TimeLimit="$minutes" >/dev/null 2>&1; then
            say "job $key: its limit of $now minutes is raised to $minutes"
            return
        fi
        sleep 1
    done
    say "job $key: its limit could not be raised to $minutes minutes"
}}

(give_back) </dev/null >/dev/null 2>&1
exit 0
"""


def script(spool: Path) -> str:
    """The script, for this spool folder, with the place of Slurm's commands and, where SLURM_CONF says it, of slurm.conf."""
    found = shutil.which("scontrol")
    conf = os.environ.get("SLURM_CONF", "")
    return SCRIPT.format(
        spool=shlex.quote(str(spool.absolute())),
        folder=shlex.quote(str(Path(found).parent) if found else "/usr/bin"),
        conf=f"\nSLURM_CONF={shlex.quote(conf)}\nexport SLURM_CONF" if conf else "",
    )


class Spool:
    """The folder. Nobody but its owner may write into it, since slurmctld acts on it; raises OutputError."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            found = folder.stat()
            if not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(20, "is no folder")
            if found.st_mode & 0o022:
                raise OutputError(f"{printable(folder)}: others may write into it, and slurmctld acts on what it has; chmod 755 it")
            if found.st_uid not in (os.geteuid(), 0):
                raise OutputError(f"{printable(folder)}: belongs to somebody else; it must be a folder of the side-car's user")
            for part in folder.glob(".walltime-*.part"):  # of a side-car that was killed
                part.unlink()
            self._known = {one.name: (-1, -1) for one in os.scandir(folder) if KEY.fullmatch(one.name)}
        except OSError as error:
            raise OutputError(
                f"{printable(folder)}: cannot be used as a spool folder ({(error.strerror or str(error)).lower()})"
            ) from error

    def put(self, key: str, known: int, longest: Minutes) -> None:
        """The job must have `known` minutes, and if it has less, so many as its user can have chosen, None for any; raises OutputError."""
        wanted = min(known, MOST), min(longest or YEAR, MOST)
        if self._known.get(key) != wanted:
            path = self.folder / check_key(key)
            with whole_file(path) as file:
                file.write(f"{wanted[0]} {wanted[1]}\n".encode())
            path.chmod(0o644)  # slurmctld's user reads it
            self._known[key] = wanted

    def orphans(self, known: set[str]) -> dict[str, tuple[int, int]]:
        """What the files say of jobs that are not known; a ledger that was lost knew of them."""
        found = {}
        for key in self._known:
            if key not in known:
                with suppress(OSError, ValueError):
                    words = [int(word) for word in (self.folder / key).read_text().split()]
                    if words and time.time() - (self.folder / key).stat().st_mtime < KEEP_ORPHANS:
                        found[key] = words[0], words[-1]
        return found

    def discard(self, key: str) -> None:
        """As `remove`; a file that cannot be removed does no harm."""
        with suppress(OutputError):
            self.remove(key)

    def remove(self, key: str) -> None:
        """Nothing is to be raised any more; raises OutputError."""
        try:
            (self.folder / check_key(key)).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{printable(self.folder)}: cannot be written ({(error.strerror or str(error)).lower()})") from error
        self._known.pop(key, None)

    def keep(self, wanted: Mapping[str, tuple[int, Minutes]], untouched: Collection[str] = ()) -> None:
        """These files, those that are not touched, and no others; raises OutputError."""
        for key in [key for key in self._known if key not in wanted and key not in untouched]:
            self.remove(key)
        for key, (known, longest) in wanted.items():
            self.put(key, known, longest)


@dataclass
class PrologTest:
    """A job of the side-car's own with a TimeMin and too short a limit, which only the prolog may raise; `step` it once a round.

    `works`: None until it is known. `missing`: why it does not.
    """

    slurm: Client
    spool: Spool
    options: Sequence[str]
    say: Callable[[str], None]
    works: bool | None = None
    missing: str = ""
    _key: str = ""
    _since: float = 0.0
    _looks: int = 0

    def step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> None:
        """Go on; raises SlurmError if Slurm did not answer, and OutputError, and may then be stepped again."""
        if self.works is not None:
            return
        if not self._key:
            for left in self.slurm.jobs_named((NAME,), user):  # by a side-car that was killed
                self._cancel(left)
            self._key = self.slurm.submit_test(NAME, SHORT, 600, self.options)
            self._since, self._looks = monotonic, 0
            self.spool.put(self._key, WHOLE, WHOLE)
            self.slurm.set_time_min(self._key, SHORT - 1)
            self.slurm.release(self._key)
            return
        job = next((job for job in queue if job.key == self._key), None)
        if job is not None and job.runs and job.limit is not None and job.limit >= WHOLE:
            self._end(True)
            self.say("self-test: the prolog works")
        elif job is not None and job.state == "RUNNING":
            self._looks += 1
            if self._looks >= LOOKS:
                self._end(False, _why(cluster))
        elif (job is None and monotonic - self._since > 60) or monotonic - self._since > PATIENCE:
            self._end(False, "its self-test job left the queue" if job is None else "its self-test job does not start")

    @property
    def key(self) -> str:
        """The job's number while the test is under way; its file must stay."""
        return self._key if self.works is None else ""

    def _end(self, works: bool, why: str = "") -> None:
        self.works, self.missing = works, why
        self._cancel(self._key)
        if not works:
            self.say(f"self-test: prolog missing: {why}")

    def _cancel(self, key: str) -> None:
        with suppress(SlurmError, OutputError):
            self.spool.remove(key)
            self.slurm.cancel(key)


def _why(cluster: Configuration) -> str:
    """Why the prolog may not have run, by the settings."""
    said = cluster.settings.get("PrologSlurmctld", "(null)")
    if said in ("", "(null)"):
        return "slurm.conf has no PrologSlurmctld; see --print-prolog"
    return f"PrologSlurmctld={said[:80]} raised nothing; slurmctld must be restarted after it has been set, and see its log"
