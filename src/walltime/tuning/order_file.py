"""The file of a search: the order that was found, how it was found, and which logs it has been judged on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.files import whole_file
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.workload import Workload

PRINTS = 64
"""How many numbers a fingerprint has."""
ALIKE = 0.1
"""Logs whose fingerprints share more than this have jobs in common; those of different machines share next to nothing."""
SHORT = 60
"""Shorter jobs, s, are left out of a fingerprint: many logs have the same ones."""


def fingerprint(log: Workload) -> tuple[int, ...]:
    """Numbers that two versions of a log share, cleaned or not, a part of it, or at another load; and two logs do not.

    They are the smallest of the hashes of sizes and runtimes (s) of two jobs that follow each other, over all jobs: a sample that is the
    same wherever these jobs are.
    """
    chosen = log.runtime >= SHORT
    runtime, procs = log.runtime[chosen].astype(np.uint64), log.procs[chosen].astype(np.uint64)
    mixed = np.zeros(max(len(runtime) - 1, 0), np.uint64)
    for values in (runtime[:-1], procs[:-1], runtime[1:], procs[1:]):
        mixed = (mixed ^ values) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return tuple(int(value) for value in np.unique(mixed >> np.uint64(12))[:PRINTS])


def are_alike(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two fingerprints are of logs that have jobs in common."""
    if not one or not other:
        return False
    least = sorted({*one, *other})[: min(len(one), len(other))]
    return len({*least} & {*one} & {*other}) > ALIKE * len(least)


@dataclass(frozen=True)
class LogIdentity:
    """A log, by its content."""

    name: str
    """its name"""
    sha256: str = ""
    """of its file"""
    jobs: int = 0
    """jobs that were simulated"""
    prints: tuple[int, ...] = ()
    """by which other versions of it are recognised"""

    @classmethod
    def of(cls, log: Workload) -> LogIdentity:
        """A workload that was used."""
        return cls(log.origin.name, log.origin.sha256 or "", len(log), fingerprint(log))


@dataclass(frozen=True)
class LogJudgement:
    """A log on which the order has been judged."""

    name: str
    """its name"""
    sha256: str = ""
    """of its file"""
    times: int = 1
    """how many times; after the first it is no longer a log that nobody has seen"""
    prints: tuple[int, ...] = ()
    """by which other versions of it are recognised"""


@dataclass(frozen=True)
class Point:
    """A scheduler that was tried: its objectives over those of EASY, geometric means over the logs.

    In this order: mean bounded slowdown, mean wait by area, 99th percentile of the waits, longest
    wait, mean of the longest thousandth of the waits.
    """

    scheduler: str
    """its specification"""
    training: tuple[float, ...]
    """on the earlier jobs of the logs"""
    choosing: tuple[float, ...] = ()
    """on the later ones"""
    late: float = -1.0
    """percentage of sampled earlier jobs that start later than their fair start, below 0 if that was not asked for"""


@dataclass(frozen=True)
class OrderFile:
    """What `walltime search` found."""

    scheduler: str
    """the scheduler with the order that was found"""
    seed: int = 0
    """of the search"""
    evaluations: int = 0
    """schedulers that were simulated, each on all parts"""
    budget: int = 0
    """after how many evaluations the search was to end"""
    share: float = 0.6
    """of each log's jobs that was for training; the later ones were for choosing"""
    copies: int = 2
    """of each part: as recorded, and shaken"""
    shaken: int = 60
    """by up to so many seconds"""
    penalty: float = 3.0
    """weight of longest waits above EASY's"""
    optimiser: str = "cma"
    """of the weights"""
    predictor: str = ""
    """whose predictions decide the order; none if empty"""
    version: str = ""
    """of the program"""
    log: tuple[LogIdentity, ...] = field(default=())
    """the logs of the search"""
    step: tuple[Point, ...] = field(default=())
    """the order after each step, and the chosen one"""
    front: tuple[Point, ...] = field(default=())
    """what nothing that was tried beats in both mean bounded slowdown and longest wait, in training"""
    named: tuple[Point, ...] = field(default=())
    """orders that have a name"""
    final: tuple[LogJudgement, ...] = field(default=())
    """the final logs that it has been judged on"""

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def touching(self, logs: list[Workload], again: bool) -> OrderFile:
        """The file that says that these logs are looked at. Raises PolicyError for a log of the search, or one that has been looked at.

        Other versions of such a log, which have jobs in common with it, count as that log.
        """
        known = list(self.final)
        for log in logs:
            own = LogIdentity.of(log)
            of_search = next((one for one in self.log if _is_same(one, own)), None)
            if of_search is not None:
                called = own.name if of_search.name == own.name else f"{own.name} has the jobs of {of_search.name}, which"
                raise PolicyError(f"{called} was searched on, so it says nothing about the order; name another log", "training_log")
            place = next((k for k, one in enumerate(known) if _is_same(one, own)), len(known))
            times = known[place].times if place < len(known) else 0
            if times and not again:
                called = own.name if known[place].name == own.name else f"{own.name} has the jobs of {known[place].name}, which"
                before = "once" if times == 1 else f"{times} times"
                raise PolicyError(f"{called} has been looked at {before} already; name another log, or say again=True", "test_log_used")
            known[place : place + 1] = [LogJudgement(own.name, own.sha256, times + 1, own.prints)]
        return replace(self, final=tuple(known))


def _is_same(one: LogIdentity | LogJudgement, other: LogIdentity) -> bool:
    """Whether these are one log, by their files, or by their jobs."""
    if (one.sha256 or one.name) == (other.sha256 or other.name):
        return True
    return are_alike(one.prints, other.prints)


ORDER_FILE = TomlFile(OrderFile, "a file of walltime search", "the guide on searching for orders", PolicyError)
"""Such files."""


def read_order_file(path: str | os.PathLike[str]) -> OrderFile:
    """Read what a search wrote; raises PolicyError, in one line, for a file that is none."""
    return ORDER_FILE.read(path)


def write_order_file(found: OrderFile, path: str | os.PathLike[str]) -> None:
    """Write what a search found; raises OutputError if that fails."""
    with whole_file(path) as file:
        file.write(to_toml(found, NOTHING).encode())
