"""Compare a column of a table with a pattern, or with another column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Literal

import numpy as np

from walltime.logs.cells import NUMBER
from walltime.logs.mapping import UNITS

Relation = Literal["exact", "limit"]


def agreeing(values: np.ndarray, others: np.ndarray, how: Relation) -> dict[str, float]:
    """Return, for each unit, the share of `values` that equal `others` (s), or that are limits of them."""
    there = np.isfinite(values) & np.isfinite(others) & (values > 0) & (others > 0)
    if not there.any():
        return {}
    values, others = values[there], others[there]
    if how == "limit":
        return {unit: float((others <= 1.05 * values * UNITS[unit] + 60).mean()) for unit in ("s", "ms", "min", "h")}
    coarse = 60.0 if (others % 60 == 0).all() or (values % 60 == 0).all() else 0.0  # times are given without seconds
    middle = 0.01 * float(np.median(others))
    return {
        unit: float((np.abs(values * UNITS[unit] - others) <= max(UNITS[unit], coarse, middle)).mean()) for unit in ("s", "ms", "min", "h")
    }


def middle_of(texts: Sequence[str]) -> float:
    """Return the median of the numbers among texts."""
    return median(float(text) for text in texts if NUMBER.fullmatch(text))


def share(texts: Sequence[str], pattern: re.Pattern[str]) -> float:
    """Return the share of texts that match a pattern; 0 without texts."""
    return sum(pattern.fullmatch(text) is not None for text in texts) / max(len(texts), 1)
