"""The second safety net: slurmctld itself raises the limit of a job that it starts, by a script that reads a folder of small files.

The folder has a file for each waiting job that backfill may shorten, named after the job (`7`, or `7_3` for a task of an array). The file
contains two numbers of minutes: the job's known limit, and the longest limit that its user may have chosen since it was last seen. The
script is slurmctld's PrologSlurmctld; it needs only these files.
"""

import os
import shlex
import shutil
import stat
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from walltime.errors import OutputError
from walltime.files import whole_file
from walltime.slurm.sidecar import installed_text
from walltime.slurm.squeue_fields import KEY, check_key
from walltime.slurm_values import Minutes
from walltime.wording import printable

YEAR = 525_600
"""Minutes: the prolog's limit for a job without a limit, as in Slurm's accounting. The side-car removes the limit afterwards."""
LARGEST_VALUE = 999_999
"""Largest number of minutes in a file; the script reads six digits."""
KEEP_ORPHANS = 30 * 86_400
"""Seconds for which the file of a job without an entry in the ledger is kept."""


def script(spool: Path) -> str:
    """Return the script for this spool folder; it contains the path of Slurm's commands and, if SLURM_CONF is set, of slurm.conf."""
    scontrol = shutil.which("scontrol")
    conf = os.environ.get("SLURM_CONF", "")
    values = {
        "@SPOOL@": shlex.quote(str(spool.absolute())),
        "@FOLDER@": shlex.quote(str(Path(scontrol).parent) if scontrol else "/usr/bin"),
        "@CONF@": f"\nSLURM_CONF={shlex.quote(conf)}\nexport SLURM_CONF" if conf else "",
    }
    return installed_text("prolog.sh", values)


class Spool:
    """The folder. Only its owner may write into it, because slurmctld acts on its files. Raises OutputError."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            status = folder.stat()
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(20, "not a folder")
            if status.st_mode & 0o022:
                raise PermissionError(13, "others can write into it, but slurmctld acts on its files; use chmod 755")
            if status.st_uid not in (os.geteuid(), 0):
                raise PermissionError(13, "it belongs to another user; use a folder of the side-car's user")
            for part in folder.glob(".walltime-*.part"):  # from a side-car that was killed
                part.unlink()
            self._known = {one.name: (-1, -1) for one in os.scandir(folder) if KEY.fullmatch(one.name)}
        except OSError as error:
            raise OutputError(
                f"{printable(folder)}: not usable as a spool folder ({(error.strerror or str(error)).lower()}); use another",
                "unusable_folder",
            ) from error

    def put(self, key: str, known: int, longest: Minutes) -> None:
        """Write a job's file: if the job has less than `known` minutes, it gets `longest` (None: YEAR). Raises OutputError."""
        wanted = min(known, LARGEST_VALUE), min(longest or YEAR, LARGEST_VALUE)
        if self._known.get(key) != wanted:
            path = self.folder / check_key(key)
            with whole_file(path) as file:
                file.write(f"{wanted[0]} {wanted[1]}\n".encode())
            path.chmod(0o644)  # for slurmctld's user
            self._known[key] = wanted

    def orphans(self, known: set[str]) -> dict[str, tuple[int, int]]:
        """Return the two numbers in each file whose job is not in `known`; such files remain if the ledger is lost."""
        orphans = {}
        for key in self._known:
            if key not in known:
                with suppress(OSError, ValueError):
                    words = [int(word) for word in (self.folder / key).read_text().split()]
                    if words and time.time() - (self.folder / key).stat().st_mtime < KEEP_ORPHANS:
                        orphans[key] = words[0], words[-1]
        return orphans

    def remove(self, key: str) -> None:
        """Remove a job's file, so that its limit is no longer raised; raises OutputError."""
        try:
            (self.folder / check_key(key)).unlink(missing_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise OutputError(f"{printable(self.folder / key)}: cannot be removed ({reason})", "unwritable_file") from error
        self._known.pop(key, None)

    def keep(self, wanted: Mapping[str, tuple[int, Minutes]], untouched: Collection[str] = ()) -> None:
        """Write the files of the jobs in `wanted`, and remove all others except `untouched`; raises OutputError."""
        for key in [key for key in self._known if key not in wanted and key not in untouched]:
            self.remove(key)
        for key, (known, longest) in wanted.items():
            self.put(key, known, longest)
