"""Orders whose scores depend on the longest wait that there has been (kernel/longest.py): what the compiler is given of them.

The address of the record reaches the compiled order as one of its numbers, which is exact below 2**53.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from walltime.engine.kernel.longest import longest_at

__all__ = ["with_longest"]


@functools.lru_cache(maxsize=256)
def with_longest(scoring: Callable[..., float], asked: tuple[str, ...], numbers: int) -> tuple[Callable[..., float], tuple[str, ...]]:
    """A function of an order that names the longest wait, for `compile_score`, and what it asks for.

    It takes the order's numbers, then the record's address.
    """
    names = ("wait", "submit", *(name for name in asked if name not in ("wait", "submit", "longest")))
    own = [f"k{place}" for place in range(numbers)]
    known: dict[str, Any] = {"scoring": numba.njit(nogil=True, error_model="numpy")(scoring), "longest_at": longest_at, "int64": np.int64}
    lines = [f"def score({', '.join([*names, *own, 'address'])}):", "    longest = longest_at(int64(address), wait + submit)"]
    exec("\n".join([*lines, f"    return 1.0 * scoring({', '.join([*asked, *own])})"]), known)
    return known["score"], names
