"""The results of one round of the side-car."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from walltime.slurm.configuration import Mode


@dataclass
class Report:
    """The results of a round.

    `answered`: whether Slurm answered. `why`: why nothing is adjusted. `wanted`: the TimeMin (minutes) of jobs that would be adjusted;
    `left`: why other jobs are left alone; `unadjusted`: the predicted runtime of the adjustable jobs among them, as a share of the limit,
    None if unknown. `least_left`: the least time, s, that a job had left when its limit was raised. `with_time_min`: the number of jobs
    with the side-car's TimeMin. `removed`: number of removed TimeMin; `restored`: number of raised limits.
    """

    answered: bool = False
    mode: Mode = Mode.ADVICE
    why: str = ""
    waiting: int = 0
    adjusted: int = 0
    set_now: int = 0
    removed: int = 0
    restored: int = 0
    failures: int = 0
    alarms: int = 0
    with_time_min: int = 0
    least_left: float | None = None
    wanted: dict[str, int] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    unadjusted: dict[str, float | None] = field(default_factory=dict)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Return the number of waiting jobs that are left alone, by reason."""
        return dict(sorted(Counter(self.left.values()).items()))

    def line(self) -> str:
        """Return the results as one line of text."""
        why = f" ({self.why})" if self.why else ""
        numbers = {"TimeMin set": self.set_now, "TimeMin removed": self.removed, "limits restored": self.restored}
        parts = [f"{self.mode}{why}: {self.waiting:,} waiting, {self.adjusted + self.set_now:,} adjusted"]
        return ", ".join(parts + [f"{name}: {count:,}" for name, count in (numbers | {"failures": self.failures}).items() if count])
