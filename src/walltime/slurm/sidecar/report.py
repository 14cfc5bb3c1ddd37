"""What a round is given, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from walltime.slurm.configuration import Mode
from walltime.slurm.queue import QueueJob
from walltime.slurm.sidecar.rules import counts


class Clock(Protocol):
    """The time."""

    def time(self) -> float:
        """Unix time, s."""

    def monotonic(self) -> float:
        """Seconds since some moment; never set anew."""


Predict = Callable[[QueueJob, float], float | None]


@dataclass
class Report:
    """What a round saw and did.

    `answered`: whether Slurm said how things are. `wanted`: the TimeMin (minutes) of jobs that would be adjusted; `left`: why others
    are not. `least_left`: what the shortest job had left, s, when its limit was raised. `alarms`: how many there were; `untaken`: how many
    jobs still have a TimeMin that is to be taken back.
    """

    answered: bool = False
    mode: Mode = Mode.ADVICE
    why: str = ""
    waiting: int = 0
    adjusted: int = 0
    set_now: int = 0
    taken_back: int = 0
    given_back: int = 0
    failures: int = 0
    alarms: int = 0
    untaken: int = 0
    least_left: float | None = None
    wanted: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many waiting jobs are left alone, by reason."""
        return counts(self.left)


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
