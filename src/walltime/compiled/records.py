"""Types of the records of compiled functions."""

from __future__ import annotations

import numpy as np


def record_dtype(fields: str, floats: str = "") -> np.dtype[np.void]:
    """Return the type of a record with these fields, separated by spaces: float64 for those named in `floats`, int64 for all others.

    No field may have the name of an attribute of NumPy's records, such as `size`: without the compiler, Python would read the attribute.
    tests/unit/engine/test_fields.py checks all types.
    """
    reals = floats.split()
    return np.dtype([(name, np.float64 if name in reals else np.int64) for name in fields.split()], align=True)
