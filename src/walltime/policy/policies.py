"""Policies in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from walltime.policy.base import Policy


@dataclass(frozen=True)
class PlainPolicy(Policy):
    """A policy of your own in plain Python: subclass it and say which waiting jobs start.

    It runs on the reference engine, which is slow; the built-in policies and orders run in the compiled kernel.
    """

    def choose(self, now: int, waiting: Sequence[Any], running: Sequence[Any], free: int) -> Iterable[Any]:
        """The jobs of `waiting` (in order of arrival) that start now, in this order.

        Called after the events of an instant. Jobs have `index, submit, believed, procs`, running ones also `start` and
        `expected_end`; times in seconds. Raises PolicyError at run time if a chosen job does not fit the `free` processors.
        """
        raise NotImplementedError
