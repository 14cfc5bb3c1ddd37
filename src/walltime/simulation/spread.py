"""How far averages move when the log is shaken: what a difference between policies must exceed to mean anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError
from walltime.metrics.intervals import KINDS, LEVEL
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.wording import shown
from walltime.workload import Workload
from walltime.workload.scaling import shake

Array = np.ndarray

SHAKE = 30
"""Seconds by which each submission is moved at most, as in tsafrir06."""
COPIES, FEWEST = 5, 3
"""Shaken copies of the log, and how few are worth anything."""
MOST_JOBS = 2_500_000
"""Jobs that are simulated for it at most, over all copies and policies."""
MOST_SECONDS = 5.0
"""What the simulations may take, by the seconds of the runs themselves."""
MEASURES = ("mean_wait", "mean_bounded_slowdown")


@dataclass(frozen=True, eq=False)
class Spread:
    """Averages of some schedules, and of the same policies on shaken copies of the log; the same copies for all of them."""

    seconds: int
    """of the shake"""
    own: Sequence[metrics.Summary]
    """one per schedule"""
    shaken: Sequence[Sequence[metrics.Summary]]
    """for each schedule one per copy"""

    @property
    def copies(self) -> int:
        """Shaken copies of the log."""
        return len(self.shaken[0])

    def scatter(self, name: str, k: int) -> float:
        """Half the width of the interval in which this measure of one schedule lies in a further copy, 90 %, Student's t."""
        values = [getattr(one, name) for one in (self.own[k], *self.shaken[k])]
        return metrics.prediction_interval(np.array(values)).half_width

    def difference(self, name: str, a: int, b: int) -> tuple[float, float]:
        """What schedule b has more of this measure than a: the mean over the log and its copies, and by how much single ones scatter.

        The scatter is half the width of the band in which a further copy would lie with a probability of 90 % (Student's t).
        """
        runs = zip([self.own[a], *self.shaken[a]], [self.own[b], *self.shaken[b]], strict=True)
        values = np.array([getattr(after, name) - getattr(before, name) for before, after in runs])
        interval = metrics.prediction_interval(values)
        return interval.mean, interval.half_width

    def clear(self, name: str, a: int, b: int) -> bool:
        """Whether the difference is larger than its scatter; else a further copy may well show none, or the opposite."""
        mean, scatter = self.difference(name, a, b)
        return abs(mean) > scatter

    def as_dict(self) -> dict[str, Any]:
        """The scatter of each schedule and the differences to the first one, ready for JSON."""
        return {
            "shake": self.seconds,
            "of": KINDS["shaken.copy"].of,
            "level": LEVEL,
            "copies": self.copies,
            "scatter": [{name: self.scatter(name, k) for name in MEASURES} for k in range(len(self.own))],
            "differences": [{name: self._shown(name, k) for name in MEASURES} for k in range(1, len(self.own))],
        }

    def _shown(self, name: str, k: int) -> dict[str, Any]:
        mean, scatter = self.difference(name, 0, k)
        return {"mean": mean, "scatter": scatter, "clear": abs(mean) > scatter}


def shaking_spread(
    schedules: Sequence[Schedule], trim: str = "none", progress: Callable[[int], None] | None = None, copies: int | None = None
) -> Spread | None:
    """Simulate up to 5 shaken copies of the log under the policies of these schedules; None where that would take too long.

    Each submission is moved by up to 30 s, with seeds 0, 1, ... Too long is: over 2.5 million jobs for 3 copies, over 5 s by what the
    given runs took, or on the reference engine. `copies`: so many, however long they take. `progress` is called with the number of
    copies done.
    Source: Tsafrir, Ouaknine, Feitelson, MASCOTS 2007; that a difference is to exceed its scatter is ours.
    """
    jobs = sum(len(schedule) for schedule in schedules)
    if copies is None:
        copies = min(COPIES, MOST_JOBS // max(jobs, 1))
        seconds = copies * sum(schedule.seconds.get("simulate", 0.0) for schedule in schedules)
        if copies < FEWEST or seconds > MOST_SECONDS or any(s.engine != "kernel" or not len(s) for s in schedules):
            return None
    elif isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
        raise PolicyError(f"the number of shaken copies must be a whole number of at least 1, not {shown(copies)}", "number_out_of_range")
    schedulers = [Scheduler(s.policy, None if s.predictions is None else s.predictions.prediction) for s in schedules]

    def make_worker() -> Callable[[int, Callable[[int], None]], list[metrics.Summary]]:
        def run(seed: int, check: Callable[[int], None]) -> list[metrics.Summary]:
            shaken: dict[int, Workload] = {}
            rows = []
            for schedule, scheduler in zip(schedules, schedulers, strict=True):
                w = schedule.workload
                if id(w) not in shaken:
                    shaken[id(w)] = shake(w, SHAKE, seed)
                rules: dict[str, Any] = {"dialect": schedule.dialect, "overrun": schedule.overrun}
                rules["machine"] = None if schedule.placement is None else schedule.placement.machine
                rows.append(simulate(shaken[id(w)], scheduler, progress=check, **rules).summary(trim))
            return rows

        return run

    by_copy = in_threads(make_worker, copies, None, progress)
    shaken = list(zip(*by_copy, strict=True))
    return Spread(SHAKE, [schedule.summary(trim) for schedule in schedules], shaken)
