"""Queue orders of the later literature: scores that are short formulas."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import Field, dataclass
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.orders import ScoredOrder, check_starvation

Score = Callable[..., float]


def _lcfs(submit):
    return submit


def _ljf(believed):
    return believed


def _sqf(procs):
    return -procs


def _lqf(procs):
    return procs


def _saf(believed, procs):
    return -believed * procs


def _laf(believed, procs):
    return believed * procs


def _lxf(wait, believed):
    return (wait + believed) / believed


def _unicef(wait, believed, procs):
    return (wait + 1e-20) / (math.log2(procs + 1e-20) * believed)


@dataclass(frozen=True)
class Formula(ScoredOrder):
    """An order of `FORMULAS`, by name; with `starvation` (s), see `walltime.Order`.

    `believed` is the runtime that the scheduler plans with. UNICEF puts serial jobs first, since their score is infinite.
    Sources: Lelong, Reis and Trystram 2017 for `lcfs`, `ljf`, `sqf`, `lqf`, `saf`, `laf` and `lxf`; tang09 for UNICEF, with the
    guards of carastan17's code.

    >>> Formula("saf").score(wait=0, believed=60, procs=8, submit=0)
    -480.0
    """

    starvation: int | None = None

    def __post_init__(self) -> None:
        if self.name not in self.known():
            raise PolicyError(f"unknown formula {self.name!r}; known are {', '.join(self.known())}")
        check_starvation(self.starvation)

    @classmethod
    def known(cls) -> tuple[str, ...]:
        """The names that it may have."""
        return tuple(_PLAIN)

    @property
    def scoring(self) -> Score:
        """The formula."""
        return _PLAIN[self.name][0]

    @property
    def growing(self) -> bool:
        """None of these scores falls while a job waits."""
        return True


@dataclass(frozen=True)
class Fitted(Formula):
    """F1 to F4, fitted to simulations of small sets of jobs: the lowest value comes first.

    With r the believed runtime, n the processors and s the seconds from the first submission of the workload to the job's:
    log10(r) n + w log10(s), sqrt(r) n + w log10(s), r n + w log10(s), and r sqrt(n) + w log10(s); 0.1 for an s of 0.
    `submit_weight`: w, by default the published 870, 25,600, 6.86e6, and 5.30e5.

    Source: carastan17 (Carastan-Santos and de Camargo, SC'17).

    >>> Fitted("f3").label, Fitted("f1", submit_weight=500.0).label
    ('f3', 'f1:submit-weight=500.0')
    """

    submit_weight: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weight = _FITTED[self.name][1] if self.submit_weight is None else self.submit_weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise PolicyError(f"the submit weight of {self.name.upper()} must be a number of at least 0, not {weight!r}")
        object.__setattr__(self, "submit_weight", float(weight))

    @classmethod
    def known(cls) -> tuple[str, ...]:
        """The names that it may have."""
        return tuple(_FITTED)

    @property
    def scoring(self) -> Score:
        """The formula with its weight."""
        assert self.submit_weight is not None
        return _FITTED[self.name][0](self.submit_weight)

    def _says(self, option: Field[Any]) -> bool:
        if option.name == "submit_weight":
            return self.submit_weight != _FITTED[self.name][1]
        return super()._says(option)


@functools.cache
def _f1(weight: float) -> Score:
    def f1(believed, procs, elapsed):
        return -(math.log10(believed) * procs + weight * math.log10(max(elapsed, 0.1)))

    return f1


@functools.cache
def _f2(weight: float) -> Score:
    def f2(believed, procs, elapsed):
        return -(math.sqrt(believed) * procs + weight * math.log10(max(elapsed, 0.1)))

    return f2


@functools.cache
def _f3(weight: float) -> Score:
    def f3(believed, procs, elapsed):
        return -(believed * procs + weight * math.log10(max(elapsed, 0.1)))

    return f3


@functools.cache
def _f4(weight: float) -> Score:
    def f4(believed, procs, elapsed):
        return -(believed * math.sqrt(procs) + weight * math.log10(max(elapsed, 0.1)))

    return f4


_PLAIN: dict[str, tuple[Score, str]] = {
    "lcfs": (_lcfs, "the latest arrival"),
    "ljf": (_ljf, "the longest believed runtime"),
    "sqf": (_sqf, "the fewest processors"),
    "lqf": (_lqf, "the most processors"),
    "saf": (_saf, "the smallest area: believed runtime x processors"),
    "laf": (_laf, "the largest area"),
    "lxf": (_lxf, "the largest expansion factor: (wait + believed) / believed"),
    "unicef": (_unicef, "the highest wait / (log2(procs) x believed); serial jobs before all others"),
}
_FITTED: dict[str, tuple[Callable[[float], Score], float]] = {
    "f1": (_f1, 870.0),
    "f2": (_f2, 25_600.0),
    "f3": (_f3, 6.86e6),
    "f4": (_f4, 5.30e5),
}
FORMULAS: tuple[Formula, ...] = (*(Formula(name) for name in _PLAIN), *(Fitted(name) for name in _FITTED))
"""The orders of this module, with their published parameters."""
