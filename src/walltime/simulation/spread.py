"""The spread of averages over shaken copies of the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError
from walltime.metrics.intervals import KINDS, LEVEL, check_level
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.wording import shown
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

SHAKE = 30
"""Largest shift of a submission, s, as in tsafrir06."""
COPIES, MIN_COPIES = 5, 3
"""Default and smallest number of shaken copies of the log."""
MAX_JOBS = 2_500_000
"""Largest number of simulated jobs, over all copies and policies."""
MAX_SECONDS = 5.0
"""Longest time of the simulations, s, as estimated from the duration of the given runs."""
MEASURES = ("mean_wait", "mean_bounded_slowdown")


@dataclass(frozen=True, eq=False)
class Spread:
    """Averages of schedules, and of the same policies on shaken copies of the log, which all policies share."""

    seconds: int
    """largest shift of a submission, s"""
    own: Sequence[metrics.Summary]
    """summary of each schedule"""
    shaken: Sequence[Sequence[metrics.Summary]]
    """summaries of the copies of each schedule"""
    level: float = LEVEL
    """level of the prediction intervals"""

    @property
    def copies(self) -> int:
        """Return the number of shaken copies."""
        return len(self.shaken[0])

    def _values(self, name: str, k: int) -> Array:
        return np.array([getattr(one, name) for one in (self.own[k], *self.shaken[k])])

    def scatter(self, name: str, k: int) -> float:
        """Return the half width of the prediction interval (Student's t) for this measure in one more copy, for schedule number `k`."""
        return metrics.prediction_interval(self._values(name, k), self.level).half_width

    def difference(self, name: str, a: int, b: int) -> tuple[float, float]:
        """Return the mean difference of this measure, schedule b minus a, over the log and its copies, and its scatter.

        The scatter is the half width of the prediction interval (Student's t) for another copy.
        """
        interval = metrics.prediction_interval(self._values(name, b) - self._values(name, a), self.level)
        return interval.mean, interval.half_width

    def clear(self, name: str, a: int, b: int) -> bool:
        """Return whether the difference exceeds its scatter; if not, one more copy may show no difference, or the opposite one."""
        mean, scatter = self.difference(name, a, b)
        return abs(mean) > scatter

    def as_dict(self) -> dict[str, Any]:
        """Return the scatter of each schedule and the differences from the first schedule, for JSON."""
        differences = [{name: self.difference(name, 0, k) for name in MEASURES} for k in range(1, len(self.own))]
        return {
            "shake": self.seconds,
            "of": KINDS["shaken.copy"].of,
            "level": self.level,
            "copies": self.copies,
            "scatter": [{name: self.scatter(name, k) for name in MEASURES} for k in range(len(self.own))],
            "differences": [
                {name: {"mean": mean, "scatter": scatter, "clear": abs(mean) > scatter} for name, (mean, scatter) in one.items()}
                for one in differences
            ],
        }


def shaking_spread(
    schedules: Sequence[Schedule],
    trim: str = "none",
    progress: Callable[[int], None] | None = None,
    copies: int | None = None,
    level: float = LEVEL,
) -> Spread | None:
    """Simulate up to 5 shaken copies of the log under the policies of these schedules; return None if that would take too long.

    Each submission is moved by up to 30 s, with seeds 0, 1, ... The time is too long if 3 copies have over 2.5 million jobs,
    would take over 5 s (from the time of the given runs), or need the reference engine. `copies`: this number, regardless of time.
    `progress` is called with the number of finished copies. `level`: the level of the prediction intervals. Source: Tsafrir, Ouaknine,
    Feitelson, MASCOTS 2007; comparing a difference with its scatter is ours.
    """
    jobs = sum(len(schedule) for schedule in schedules)
    if copies is None:
        copies = min(COPIES, MAX_JOBS // max(jobs, 1))
        seconds = copies * sum(schedule.seconds.get("simulate", 0.0) for schedule in schedules)
        if copies < MIN_COPIES or seconds > MAX_SECONDS or any(s.engine != "kernel" or not len(s) for s in schedules):
            return None
    elif isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
        raise PolicyError(f"the number of shaken copies must be a whole number of at least 1, not {shown(copies)}", "number_out_of_range")

    def run(seed: int, check: Callable[[int], None]) -> list[metrics.Summary]:
        shaken: dict[int, Workload] = {}
        rows = []
        for schedule in schedules:
            w = schedule.workload
            if id(w) not in shaken:
                shaken[id(w)] = shake(w, SHAKE, seed)
            rules: dict[str, Any] = {"dialect": schedule.dialect, "overrun": schedule.overrun}
            rules["machine"] = None if schedule.placement is None else schedule.placement.machine
            rows.append(simulate(shaken[id(w)], Scheduler.of_schedule(schedule), progress=check, **rules).summary(trim))
        return rows

    shaken = list(zip(*in_threads(run, copies, None, progress), strict=True))
    return Spread(SHAKE, [schedule.summary(trim) for schedule in schedules], shaken, check_level(level))
