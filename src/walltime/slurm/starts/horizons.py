"""Classes of predictions, by how far ahead they lie, and intervals that are widened or narrowed by class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Array = np.ndarray

CLASSES = {"under 1 h": 3600, "1 to 6 h": 6 * 3600, "over 6 h": 2**62}
"""Classes of how far ahead a predicted start (its median) lies, by their upper bounds, s."""
SPREAD = 60.0
"""The least distance of the end of an interval from the median that is multiplied, s."""
Factors = Mapping[str, tuple[float, float]]
"""For each class of CLASSES, what the distances of the early and the late quantile from the median are multiplied with."""


def class_of(ahead: float) -> str:
    """The class of a start so many s ahead.

    >>> class_of(60), class_of(3600), class_of(10**6)
    ('under 1 h', '1 to 6 h', 'over 6 h')
    """
    return next((name for name, bound in CLASSES.items() if ahead < bound), "over 6 h")


def adjusted(quantiles: Array, factors: Factors) -> Array:
    """Quantiles (s ahead; shape (3, jobs)) whose distances from the median are multiplied with the factors of the job's class.

    >>> adjusted(np.array([[500.0], [1000.0], [3000.0]]), {"under 1 h": (1.5, 2.0)}).T.tolist()
    [[250.0, 1000.0, 5000.0]]
    """
    early, median, late = quantiles
    low, high = early.copy(), late.copy()
    for k in np.flatnonzero(np.isfinite(median)).tolist():
        pair = factors.get(class_of(median[k]))
        if pair is not None:
            low[k] = max(0.0, median[k] - pair[0] * max(median[k] - early[k], SPREAD))
            high[k] = median[k] + pair[1] * max(late[k] - median[k], SPREAD)
    return np.stack([low, median, high])
