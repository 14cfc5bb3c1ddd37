"""The random numbers of a run for policies and predictors of one's own: a generator that depends on the run's seed only."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_seed: ContextVar[int] = ContextVar("_seed", default=0)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Give the runs in this context, of one thread, this seed, from 0 to 2**64 - 1."""
    before = _seed.set(int(seed))
    try:
        yield
    finally:
        _seed.reset(before)


def generator(user: str) -> np.random.Generator:
    """Return a new generator for the seed of this context; `user`: other ones get other numbers.

    >>> with seeded(3):
    ...     first, second = generator("policy").integers(1000), generator("policy").integers(1000)
    >>> bool(first == second)
    True
    """
    return np.random.Generator(np.random.Philox(key=_seed.get() + (zlib.crc32(user.encode()) << 64)))


def takes_generator(kind: Any) -> bool:
    """Return whether the method `begin` of a class has a parameter `rng`, for the generator of the run."""
    begin = getattr(kind, "begin", None)
    try:
        return begin is not None and "rng" in inspect.signature(begin).parameters
    except (TypeError, ValueError):
        return False
