"""How far each of several schedulers is behind the best, whichever that is: all intervals hold at once, the choice of the best inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walltime.metrics.series import same_subject, stratified_errors

Array = np.ndarray
DRAWS = 2000
"""Draws of signs that the bound on all differences is found by."""


def behind_best(costs: Array, subjects: Sequence[object], confidence: float = 0.90, seed: int = 0) -> tuple[Array, Array]:
    """Multiple comparisons with the best, paired by windows: the ends of intervals that with this confidence hold all at once.

    `costs`: float64, logarithms, schedulers x windows, less is better, 2 schedulers or more; `subjects`: of each window, fixed, so that
    only differences within one are chance. Returns for each scheduler the ends of the interval of how far it is behind the best,
    differences of logarithms of at least 0. Where the lower one is 0, it may be the best itself.

    All pairs of schedulers are bounded at once, so it does not matter which of them is the best, or seems to be. Source: Hsu, Multiple
    Comparisons, 1996, chapters 4 and 5 (comparisons with the best from those of all pairs, as in Tukey's method); the bound is the quantile
    of the largest difference when the signs of the windows' deviations are drawn (Wu, Ann. Statist. 14 (1986)), as windows are paired and
    deviations are not normal.

    >>> low, high = behind_best(np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.1]]), ["one log"] * 4)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.95], [0.0, 1.1])
    """
    one, other = np.triu_indices(len(costs), 1)
    apart = costs[one] - costs[other]
    mean, (error, _) = apart.mean(axis=1), stratified_errors(apart, subjects)
    width = _bound(costs, one, other, subjects, confidence, seed) * error
    low, high = np.zeros((2, len(costs), len(costs)))
    low[one, other], high[one, other] = mean - width, mean + width
    low[other, one], high[other, one] = -mean - width, width - mean
    return low.max(axis=1), high.max(axis=1)


def _bound(costs: Array, one: Array, other: Array, subjects: Sequence[object], confidence: float, seed: int) -> float:
    """The quantile over draws of the largest difference of a pair, in its standard errors."""
    draw = np.random.Generator(np.random.Philox(seed))
    signs = np.asarray(2.0 * draw.integers(0, 2, (DRAWS, costs.shape[1])) - 1)
    groups = [group for group in same_subject(subjects) if len(group) > 1]
    shifted, power = np.zeros((2, DRAWS, len(one)))
    for group in groups:
        count = len(group)
        away = costs[:, group] - costs[:, group].mean(axis=1, keepdims=True)
        away *= np.sqrt(count / (count - 1))  # deviations from their own mean vary less
        sums = signs[:, group] @ away.T
        apart = sums[:, one] - sums[:, other]
        squares = ((away[one] - away[other]) ** 2).sum(axis=1)
        shifted += apart
        power += np.maximum(squares - apart**2 / count, 0) * count / (count - 1)
    ratios = np.divide(np.abs(shifted), np.sqrt(power), out=np.zeros_like(power), where=power > 0)
    return float(np.quantile(ratios.max(axis=1), confidence))
