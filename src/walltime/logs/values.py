"""The valid values of the columns of a log, and their types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walltime.workload import MISSING, Column

Array = np.ndarray
LIMIT = 2.0**53
"""Below it every whole number is exact in a float64, so that one parser serves all fields."""
_TIMES = ("submit", "runtime", "requested")


def faults(column: Column, values: Array) -> Iterator[tuple[Array, str]]:
    """Which values (float64 or int64) are invalid in a column, as masks with the reason."""
    yield ~((values > -LIMIT) & (values < LIMIT)), "is not a number below 2**53"
    if column.dtype == "int64" and column.unit != "s":
        yield values != np.floor(values), "must be a whole number"
    if column.name in _TIMES:
        yield (values < 0) & (values != MISSING), "is negative, only -1 (unknown) may be"


def narrowed(values: Array) -> Array:
    """The values as int64 if all are whole, else as float64 (a copy)."""
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values.astype(np.float64)
