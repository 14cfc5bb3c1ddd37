"""What the side-car runs on: the clock, the signals and the limits of time of its machine."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Protocol


class Clock(Protocol):
    """The time."""

    def time(self) -> float:
        """Unix time, s."""

    def monotonic(self) -> float:
        """Seconds since some moment; never set anew."""


class SystemClock:
    """The time of this machine."""

    def time(self) -> float:
        """Unix time, s."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()


@dataclass(frozen=True)
class Host:
    """The machine, the side-car's `user` in Slurm, and what is said to whom: `say` gets one line at a time.

    `stopped`: asked in each round whether everything is to be taken back; `blocked`: why nothing may be adjusted, such as a missing log.
    `stays`: whether more rounds will follow.
    """

    clock: Clock
    user: str
    say: Callable[[str], None]
    stopped: Callable[[], bool] = lambda: False
    blocked: Callable[[], str] = lambda: ""
    stays: bool = True


class Budget:
    """How long, s, and how many failures in a row are allowed in one go."""

    def __init__(self, clock: Clock, seconds: float, failures: int):
        self._clock, self._end, self._most, self._failed = clock, clock.monotonic() + seconds, failures, 0

    def count(self, worked: bool) -> None:
        """Something worked, or failed."""
        self._failed = 0 if worked else self._failed + 1

    @property
    def spent(self) -> bool:
        """Whether it is time to do something else."""
        return self._failed >= self._most or self._clock.monotonic() >= self._end


class Signals:
    """SIGTERM and SIGINT, noticed instead of obeyed: `asked` says whether one came, and `wait` returns when one comes."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._event.set()

    def asked(self) -> bool:
        """Whether the side-car is to end."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until it is to end."""
        self._event.wait(seconds)

    def restore(self) -> None:
        """Give the signals back to those who had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
