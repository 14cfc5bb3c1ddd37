"""A first look at a log: many policies sorted by a measure, with intervals from shaken copies of the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.schedule.schedule import Schedule
from walltime.simulation.spread import MEASURES, Spread

COPIES = 5
"""Shaken copies of the log."""


@dataclass(frozen=True)
class Look:
    """A policy: the mean of each of `MEASURES` over the log and its shaken copies, and what it has more of than the baseline.

    `means, differences`: for each measure the mean, and the interval in which a further copy would lie with a probability of 90 %; with one
    run only, its ends are nan. A difference is paired, copy by copy.
    """

    label: str
    means: dict[str, metrics.Interval]
    differences: dict[str, metrics.Interval]

    def verdict(self, name: str) -> str:
        """`better` or `worse` than the baseline, or `unclear` if a further copy may well show no difference, or the opposite."""
        difference = self.differences[name]
        if not (difference.low > 0 or difference.high < 0):
            return "unclear"
        return "worse" if difference.low > 0 else "better"

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        shown = {
            what: {name: {"mean": i.mean, "low": i.low, "high": i.high} for name, i in intervals.items()}
            for what, intervals in (("means", self.means), ("differences", self.differences))
        }
        return {"policy": self.label, **shown, "verdicts": {name: self.verdict(name) for name in self.means}}


def first_look(
    schedules: Sequence[Schedule], labels: Sequence[str], baseline: int, spread: Spread | None, trim: str = "none"
) -> list[Look]:
    """A `Look` at each schedule, the lowest mean bounded slowdown first.

    `baseline`: the place of the schedule that the others are compared with. `spread`: of these schedules; None for no intervals.
    """
    runs = [[schedule.summary(trim)] for schedule in schedules]
    if spread is not None:
        runs = [[own, *shaken] for own, shaken in zip(spread.own, spread.shaken, strict=True)]
    values = {name: np.array([[getattr(summary, name) for summary in row] for row in runs]) for name in MEASURES}
    looks = [
        Look(
            label,
            {name: _interval(values[name][k]) for name in MEASURES},
            {name: _interval(values[name][k] - values[name][baseline]) for name in MEASURES},
        )
        for k, label in enumerate(labels)
    ]
    return sorted(looks, key=lambda look: look.means["mean_bounded_slowdown"].mean)


def _interval(values: np.ndarray) -> metrics.Interval:
    """Mean of the log and its copies, and where a further copy would lie; of so few the mean over many more cannot be told."""
    if len(values) < 2:
        return metrics.Interval(float(values.mean()), math.nan, math.nan, "one run")
    return metrics.prediction_interval(values)
