"""The machine that the side-car runs on: its clock, signals and systemd; and time budgets."""

import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from walltime.slurm.sidecar import installed_text

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


class Clock(Protocol):
    """A clock, which tests replace."""

    def time(self) -> float:
        """Return the Unix time, s."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary moment; they never fall."""


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)


@dataclass(frozen=True)
class Host:
    """The machine: its clock, the side-car's `user` in Slurm, and the function `say`, which prints one line.

    `stopped`: returns whether every TimeMin must be withdrawn; `blocked`: returns why no job may be adjusted, such as a missing log, or an
    empty text. `stays`: whether more rounds will follow.
    """

    clock: Clock
    user: str
    say: Callable[[str], None]
    stopped: Callable[[], bool] = lambda: False
    blocked: Callable[[], str] = lambda: ""
    stays: bool = True


class Budget:
    """Limits on the time, s, and on consecutive failures of one step."""

    def __init__(self, clock: Clock, seconds: float, failures: int):
        self._clock, self._end, self._most, self._failed = clock, clock.monotonic() + seconds, failures, 0

    def count(self, worked: bool) -> None:
        """Count a success or a failure."""
        self._failed = 0 if worked else self._failed + 1

    @property
    def spent(self) -> bool:
        """Return whether one of the limits is reached."""
        return self._failed >= self._most or self._clock.monotonic() >= self._end


class Signals:
    """Catches SIGTERM and SIGINT: they request a stop instead of ending the process."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._event.set()

    def stop_requested(self) -> bool:
        """Return whether a signal has arrived."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for this many seconds, or until a signal arrives."""
        self._event.wait(seconds)

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


class Systemd:
    """Sends notifications to systemd, if it listens (sd_notify)."""

    def __init__(self, address: str | None):
        self._address = "" if not address else "\0" + address[1:] if address.startswith("@") else address

    def notify(self, *words: str) -> None:
        """Send words such as `READY=1`, without waiting; failures are ignored."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.setblocking(False)
                one.sendto("\n".join(words).encode(), self._address)


def systemd_units(words: Sequence[str], user: str, folders: Sequence[str] = ()) -> str:
    """Return three systemd units, to be split into files, that run this command as `user`, who may write into `folders`."""
    values = {"@USER@": user, "@COMMAND@": " ".join(map(_quoted, words)), "@FOLDERS@": " ".join(_quoted(f"-{one}") for one in folders)}
    return installed_text("systemd.units", values).replace("ReadWritePaths=\n", "")


def _quoted(word: str) -> str:
    """Escape a word for a systemd unit.

    >>> _quoted("a b%$"), _quoted("--act")
    ('"a b%%$$"', '--act')
    """
    word = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
