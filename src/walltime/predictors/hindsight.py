"""Whether predictions made elsewhere know what is known only later: how close they are, and whether they repeat what was recorded."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from walltime.predictors.base import Array
from walltime.workload import Workload

RECORDED = ("wait", "start", "end", "runtime", "cpu_time", "used_memory", "status")
"""Columns of a log that nobody knows when a job is submitted."""
WIDTHS = (0.03, 0.1)
"""What close means: so far apart in logarithms, about 3 and 10 %."""
AROUND = 3
"""Predictions are compared within so many of these widths."""
CLEAR = 4
"""and so many widths around each there is no earlier runtime of its user, nor its request."""
SURE = 0.001
"""Chance of as many close predictions, below which they are said to know the future."""
LEAST = 60
"""Shorter predictions (s) are left out: whole seconds are coarse there."""
FEW = 20


class Close(NamedTuple):
    """Predictions that are like no earlier runtime: `around` are within `AROUND` widths of the runtime, of which `close` are within one."""

    around: int
    close: int
    width: float

    @property
    def chance(self) -> float:
        """An upper bound of the probability of as many close ones where half of them are expected, which is more than a third."""
        over = self.close / self.around - 0.5 if self.around else 0.0
        return math.exp(-2 * self.around * over**2) if over > 0 else 1.0


def closeness(workload: Workload, requested: Array, runtime: Array, predicted: Array, width: float) -> Close:
    """Compare predictions with runtimes (int64 s, one per job; below 0 for none) where predictions are like no earlier runtime.

    A function of earlier jobs can be exact where users run the same again. So only predictions count around which there is neither a
    runtime of an earlier job of the user nor the request; which these are depends on the past alone. Over so short a distance real runtimes
    are spread evenly, so that a third of those within three widths is within one.
    """
    user = workload.columns.get("user", np.zeros(len(workload), np.int64))
    place = np.unique(user, return_inverse=True)[1].astype(np.int64)
    real, told, limit = (np.log(np.maximum(values, 1)) for values in (runtime, predicted, requested))
    keys, first = np.unique(_key(place, np.floor(real / width)), return_index=True)
    chosen = (predicted >= LEAST) & (runtime > 0) & (np.abs(told - limit) > CLEAR * width)
    jobs = np.arange(len(workload))
    for step in range(-CLEAR, CLEAR + 1):
        wanted = _key(place, np.floor(told / width) + step)
        at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        chosen &= ~((keys[at] == wanted) & (first[at] < jobs))
    apart = np.abs(told - real)[chosen]
    return Close(int((apart < AROUND * width).sum()), int((apart < width).sum()), width)


def _key(place: Array, step: Array) -> Array:
    return place * 100_000 + step.astype(np.int64)


def repeated(workload: Workload, requested: Array, runtime: Array, predicted: Array) -> str | None:
    """What was recorded of the jobs that most of the predictions repeat to the second, such as `wait`; None if nothing."""
    telling = (predicted >= LEAST) & (predicted % 60 != 0) & (predicted != requested)
    for name in ("wait", "cpu_time"):
        values = workload.columns.get(name)
        if (
            values is not None
            and telling.sum() >= FEW
            and (np.abs(values - predicted) <= 1)[telling & (values != runtime)].sum() > telling.sum() / 2
        ):
            return name
    return None


def hindsight_remarks(label: str, workload: Workload, requested: Array, runtime: Array, predicted: Array) -> list[str]:
    """What is suspicious in predictions, as sentences; nothing for a function of earlier jobs."""
    if not len(workload):
        return []
    if (name := repeated(workload, requested, runtime, predicted)) is not None:
        return [f"most predictions of {label} are the {name} that the log recorded, to the second, which nobody knows at submission."]
    best = min((closeness(workload, requested, runtime, predicted, width) for width in WIDTHS), key=lambda one: one.chance)
    if best.chance * len(WIDTHS) > SURE:
        return []
    near, far = (100 * (math.exp(width) - 1) for width in (best.width, AROUND * best.width))
    return [
        f"{label} is closer to the runtimes than earlier jobs can tell: of {best.around:,} predictions that are like no earlier runtime of "
        f"their user and within {far:.0f} % of the real one, {100 * best.close / best.around:.0f} % are within {near:.0f} %, where a third"
        f" is expected (chance: below {max(best.chance, 1e-12):.1g}). Either it has seen the future or job scripts."
    ]
