"""The random numbers of a run for user-defined policies and predictors: a generator that depends only on the run's seed."""

import inspect
import random
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any

import numpy as np

from walltime.plugins.dependencies import is_local

_seed: ContextVar[int] = ContextVar("_seed", default=0)
_global = threading.RLock()
"""Held by a run that may draw global random numbers, so that runs in other threads do not draw from the same sequence."""
_said: set[str] = set()
_python: Any = random.random.__self__  # type: ignore[attr-defined]
_numpy: Any = np.random.rand.__self__  # type: ignore[attr-defined]
"""The global generators, to which the functions of these modules belong."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Set the seed, from 0 to 2**64 - 1, of the runs in this context (one thread)."""
    before = _seed.set(int(seed))
    try:
        yield
    finally:
        _seed.reset(before)


@contextmanager
def global_numbers(own: Mapping[str, Any]) -> Iterator[None]:
    """Give `random` and `numpy.random` the seed of this context, if user code may draw from them, and restore them at the end.

    `own`: the user's classes by their labels. Warns once per class that has drawn such numbers, since only a generator makes runs
    independent.
    """
    users = [label for label, kind in own.items() if _may_draw(kind)]
    if not users:
        yield
        return
    with _global:
        before = random.getstate(), _numpy.get_state()
        random.seed(_seed.get())
        _numpy.seed(_seed.get() % 2**32)
        fresh = _drawn()
        try:
            yield
        finally:
            drawn = _drawn() != fresh
            random.setstate(before[0])
            _numpy.set_state(before[1])
    for label in users if drawn else ():
        if label not in _said:
            _said.add(label)
            warnings.warn(
                f"{label} draws from the global random numbers, which are seeded for each run; take the run's generator instead, as in "
                "begin(self, procs, rng) of a policy or begin(self, rng) of a predictor",
                stacklevel=3,
            )


def _drawn() -> tuple[Any, ...]:
    """Return the state of the global generators."""
    _, words, place, *others = _numpy.get_state(legacy=True)
    return random.getstate(), words.tobytes() if isinstance(words, np.ndarray) else words, place, *others


def _may_draw(kind: Any) -> bool:
    """Return whether the code of a class, or local code that it uses directly or indirectly, names `random` or one of its functions."""
    seen, ahead = set[int](), [kind]
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, type):
            ahead += [part for base in one.__mro__ if is_local(base) for part in vars(base).values()]
            continue
        function = inspect.unwrap(getattr(one, "fget", None) or getattr(one, "__func__", one))
        if (code := getattr(function, "__code__", None)) is None or not is_local(function):
            continue
        names = _names_in(code)
        values = [function.__globals__[name] for name in names & function.__globals__.keys()]
        if "random" in names or any(getattr(value, "__self__", None) in (_python, _numpy) for value in values if inspect.isroutine(value)):
            return True
        ahead += [getattr(value, name) for value in values if inspect.ismodule(value) for name in names & vars(value).keys()]
        ahead += [value if isinstance(value, type) or inspect.isroutine(value) else type(value) for value in values]
    return False


def _names_in(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names_in(one) for one in code.co_consts if isinstance(one, CodeType)))


def generator(user: str) -> np.random.Generator:
    """Return a new generator for the seed of this context; generators of different `user` names are independent.

    >>> with seeded(3):
    ...     first, second = generator("policy").integers(1000), generator("policy").integers(1000)
    >>> bool(first == second)
    True
    """
    return np.random.Generator(np.random.Philox(key=_seed.get() + (zlib.crc32(user.encode()) << 64)))


def numbers_of_jobs(ids: np.ndarray) -> np.ndarray:
    """Return a number from 0 to 1 for each job, float64, that depends only on the seed of this context and the job's number (int64).

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    """
    with np.errstate(over="ignore"):
        bits = np.asarray(ids, np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits += np.uint64(int(generator("order").integers(2**63)))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        bits ^= bits >> np.uint64(31)
    numbers: np.ndarray = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def takes_generator(kind: Any) -> bool:
    """Return whether the method `begin` of a class has a parameter `rng`, for the generator of the run."""
    begin = getattr(kind, "begin", None)
    try:
        return begin is not None and "rng" in inspect.signature(begin).parameters
    except (TypeError, ValueError):
        return False
