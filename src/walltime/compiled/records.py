"""Types of the records of compiled functions."""

from __future__ import annotations

import numpy as np


def record_dtype(fields: str, floats: str = "") -> np.dtype[np.void]:
    """Return the type of a record with these fields, separated by spaces: int64, and float64 for those that `floats` repeats.

    A field with the name of an attribute of NumPy's records, such as `size`, is read right in compiled code and wrong without the compiler;
    tests/unit/engine/test_fields.py checks all types.
    """
    reals = floats.split()
    return np.dtype([(name, np.float64 if name in reals else np.int64) for name in fields.split()], align=True)
