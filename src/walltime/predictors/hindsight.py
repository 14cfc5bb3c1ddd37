"""Test whether predictions use future data: by their closeness, by repeated recorded values, and by the order of twins."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from walltime.wording import counted
from walltime.workload import Array, Workload

RECORDED = ("wait", "start", "end", "runtime", "cpu_time", "used_memory", "status")
"""Columns of a log that are unknown when a job is submitted."""
WIDTHS = (0.03, 0.1)
"""Largest distances between close predictions and runtimes, as differences of logarithms: about 3 and 10 %."""
AROUND = 3
"""Predictions within this many widths of the runtime are compared."""
CLEAR = 4
"""No earlier runtime of the user, nor the request, is within this many widths of a compared prediction."""
SURE = 0.001
"""Significance level at which predictions are reported as using future data."""
LEAST = 60
"""Shorter predictions, s, are not tested, because whole seconds are too coarse for them."""
FEW = 20
"""Smallest number of predictions that are tested for repeated values."""
TWINS_WITHIN = 60
"""Similar jobs of one user are twins if they were submitted within this many seconds, and the first had not ended."""


def _chance(right: int, cases: int) -> float:
    """Return an upper bound on the probability of this many right cases if half are expected (Hoeffding's inequality)."""
    over = right / cases - 0.5 if cases else 0.0
    return math.exp(-2 * cases * over**2) if over > 0 else 1.0


class Close(NamedTuple):
    """Counts of predictions unlike any earlier runtime: `around` within `AROUND` widths of the runtime, and `close` within one width."""

    around: int
    close: int
    width: float

    @property
    def chance(self) -> float:
        """Return an upper bound on the probability of this many close predictions if half of them, not a third, are expected."""
        return _chance(self.close, self.around)


def closeness(workload: Workload, requested: Array, runtime: Array, predicted: Array, width: float) -> Close:
    """Count predictions (int64 s, one per job; below 0 for none) that are close to the runtimes but unlike any earlier runtime.

    A function of earlier jobs can be exact if users run the same job again. Therefore only predictions count that are neither near the
    runtime of an earlier job of the user nor near the request; this selection depends on the past alone. Over so short a distance, actual
    runtimes are distributed uniformly, so a third of the runtimes within three widths are within one.
    """
    user = workload.columns.get("user", np.zeros(len(workload), np.int64))
    place = np.unique(user, return_inverse=True)[1].astype(np.int64)
    real, expected, limit = (np.log(np.maximum(values, 1)) for values in (runtime, predicted, requested))
    keys, first = np.unique(_key(place, np.floor(real / width)), return_index=True)
    chosen = (predicted >= LEAST) & (runtime > 0) & (np.abs(expected - limit) > CLEAR * width)
    jobs = np.arange(len(workload))
    for step in range(-CLEAR, CLEAR + 1):
        wanted = _key(place, np.floor(expected / width) + step)
        at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        chosen &= ~((keys[at] == wanted) & (first[at] < jobs))
    apart = np.abs(expected - real)[chosen]
    return Close(int((apart < AROUND * width).sum()), int((apart < width).sum()), width)


def _key(place: Array, step: Array) -> Array:
    return place * 100_000 + step.astype(np.int64)


def repeated_column(workload: Workload, requested: Array, runtime: Array, predicted: Array) -> str | None:
    """Return the recorded column, such as `wait`, that most predictions equal to the second; None if there is none."""
    telling = (predicted >= LEAST) & (predicted % 60 != 0) & (predicted != requested)
    for name in ("wait", "cpu_time"):
        if name in workload.columns and telling.sum() >= FEW:
            values = workload.columns[name]
            if (np.abs(values - predicted) <= 1)[telling & (values != runtime)].sum() > telling.sum() / 2:
                return name
    return None


def hindsight_remarks(label: str, workload: Workload, requested: Array, runtime: Array, predicted: Array) -> list[str]:
    """Return sentences on properties that show the use of future data; empty if there are none."""
    if not len(workload):
        return []
    if (name := repeated_column(workload, requested, runtime, predicted)) is not None:
        return [f"{label} uses future data: most predictions equal the recorded {name} to the second, which is unknown at submission."]
    best = min((closeness(workload, requested, runtime, predicted, width) for width in WIDTHS), key=lambda one: one.chance)
    if best.chance * len(WIDTHS) > SURE:
        return []
    near, far = (100 * (math.exp(width) - 1) for width in (best.width, AROUND * best.width))
    return [
        f"{label} uses future data or job scripts: its predictions are closer to the runtimes than earlier jobs allow. "
        f"{best.around:,} predictions resemble no earlier runtime of their user, but are within {far:.0f} % of the job's own runtime; "
        f"{100 * best.close / best.around:.0f} % of these are within {near:.0f} % (expected: 33 %; probability by chance: below "
        f"{max(best.chance, 1e-12):.1g})."
    ]


class Twins(NamedTuple):
    """Counts of pairs of similar jobs: all `pairs` that differ in runtime and prediction, and those predicted in the `right` order."""

    pairs: int
    right: int

    @property
    def chance(self) -> float:
        """Return an upper bound on the probability that a function of earlier jobs predicts this many pairs in the right order."""
        return _chance(self.right, self.pairs)

    @property
    def suspicious(self) -> bool:
        """Return whether the predictions seem to use information that is unknown at submission."""
        return self.chance <= SURE


def twins(workload: Workload, requested: Array, runtime: Array, predicted: Array) -> Twins:
    """Count the pairs of twins and those in the right order; predictions and runtimes are int64 s, one per job, below 0 for none.

    Twins are two jobs of one user with the same request, size, group, executable, queue and partition, submitted within a minute; the first
    had not ended when the second was submitted, even if it had started at once. The information at their submission, from the log and from
    ended jobs, is the same for both, so a function of it is right for half of the pairs. Each job is in at most one pair.
    """
    names = [name for name in ("user", "group", "executable", "queue", "partition") if name in workload.columns]
    if "user" not in names:
        return Twins(0, 0)
    keys = [requested, workload.procs, *(workload.columns[name] for name in names)]
    order = np.lexsort((np.arange(len(workload)), *keys))
    same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
    first, second = order[:-1], order[1:]
    gap = workload.submit[second] - workload.submit[first]
    same &= (gap <= TWINS_WITHIN) & (runtime[first] > gap) & (workload.columns["user"][first] >= 0)
    index = np.arange(len(same))
    begin = np.maximum.accumulate(np.where(same & ~np.r_[False, same[:-1]], index, 0))
    pairs = same & ((index - begin) % 2 == 0)
    expected, real = (values[second] - values[first] for values in (predicted, runtime))
    pairs &= (expected != 0) & (real != 0) & (predicted[first] >= 0) & (predicted[second] >= 0)
    return Twins(int(pairs.sum()), int((pairs & ((expected > 0) == (real > 0))).sum()))


def twins_remark(label: str, workload: Workload, requested: Array, runtime: Array, predicted: Array) -> list[str]:
    """Return a sentence, in a list, on the test with twins if the predictions fail it; otherwise an empty list."""
    found = twins(workload, requested, runtime, predicted)
    if not found.suspicious:
        return []
    return [
        f"{label} uses future data or job scripts: it distinguishes jobs that are equal at submission. {counted(found.pairs, 'pair')} of "
        "jobs of one user have equal columns and were submitted within a minute, before the first ended. The predictions have the right "
        f"order for {100 * found.right / found.pairs:.0f} % of the pairs (expected: 50 %; probability by chance: below "
        f"{max(found.chance, 1e-12):.1g})."
    ]
