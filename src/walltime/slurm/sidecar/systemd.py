"""systemd: the units that run the side-car, and what systemd is told while it runs."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from contextlib import suppress

from walltime.slurm.sidecar import installed_text

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


class Systemd:
    """What systemd is told, if it listens (sd_notify)."""

    def __init__(self, address: str | None):
        self._address = "" if not address else "\0" + address[1:] if address.startswith("@") else address

    def tell(self, *words: str) -> None:
        """Tell something such as `READY=1`; that nobody listens does not matter, and nobody is waited for."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.setblocking(False)
                one.sendto("\n".join(words).encode(), self._address)

    def alive(self) -> None:
        """The side-car still does something."""
        self.tell("WATCHDOG=1")


def service(words: Sequence[str], user: str, folders: Sequence[str] = ()) -> str:
    """The units that run these words as this user, who may write into these folders, to be cut into three files."""
    units = installed_text("systemd.units").replace("@USER@", user).replace("@COMMAND@", " ".join(map(_word, words)))
    folders_line = " ".join(_word(f"-{folder}") for folder in folders)
    return units.replace("@FOLDERS@", folders_line).replace("ReadWritePaths=\n", "")


def _word(word: str) -> str:
    """A word as systemd reads it.

    >>> _word("a b%$"), _word("--act")
    ('"a b%%$$"', '--act')
    """
    word = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
