"""What a round saw and did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from walltime.slurm.configuration import Mode


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
        return dict(sorted(Counter(self.left.values()).items()))

    def line(self) -> str:
        """The round in one line."""
        why = f" ({self.why})" if self.why else ""
        numbers = {"set": self.set_now, "taken back": self.taken_back, "given back": self.given_back, "failures": self.failures}
        parts = [f"{self.mode}{why}: {self.waiting} waiting, {self.adjusted + self.set_now} adjusted"]
        return ", ".join(parts + [f"{count} {name}" for name, count in numbers.items() if count])
