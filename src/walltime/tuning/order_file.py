"""Files of searches: the found order, the settings of the search, and the logs that the order was judged on."""

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
"""Number of hashes in a fingerprint."""
ALIKE = 0.1
"""Fingerprints with a larger common share belong to logs with common jobs; logs of different machines share almost nothing."""
SHORT = 60
"""Shorter jobs, s, are left out of a fingerprint, since many logs have equal ones."""


def fingerprint(log: Workload) -> tuple[int, ...]:
    """Return numbers that versions of a log share (cleaned, in part, or at another load), but different logs do not.

    They are the smallest hashes of the sizes and runtimes (s) of two consecutive jobs, a sample that does not depend on the position.
    """
    chosen = log.runtime >= SHORT
    runtime, procs = log.runtime[chosen].astype(np.uint64), log.procs[chosen].astype(np.uint64)
    mixed = np.zeros(max(len(runtime) - 1, 0), np.uint64)
    for values in (runtime[:-1], procs[:-1], runtime[1:], procs[1:]):
        mixed = (mixed ^ values) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return tuple(int(value) for value in np.unique(mixed >> np.uint64(12))[:PRINTS])


def are_alike(one: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two fingerprints belong to logs with common jobs."""
    if not one or not other:
        return False
    least = sorted({*one, *other})[: min(len(one), len(other))]
    return len({*least} & {*one} & {*other}) > ALIKE * len(least)


@dataclass(frozen=True)
class LogIdentity:
    """A log of the search, by its content."""

    name: str
    """name of the log"""
    sha256: str = ""
    """checksum of its file"""
    jobs: int = 0
    """number of simulated jobs"""
    prints: tuple[int, ...] = ()
    """fingerprint by which other versions are recognised"""

    @classmethod
    def of(cls, log: Workload) -> LogIdentity:
        """Return the identity of a workload."""
        return cls(log.origin.name, log.origin.sha256 or "", len(log), fingerprint(log))


@dataclass(frozen=True)
class LogJudgement:
    """A log that the order has been judged on."""

    name: str
    """name of the log"""
    sha256: str = ""
    """checksum of its file"""
    times: int = 1
    """number of judgements; only the first one is unbiased"""
    prints: tuple[int, ...] = ()
    """fingerprint by which other versions are recognised"""


@dataclass(frozen=True)
class Point:
    """A scheduler that was tried, with its objectives over EASY's, geometric means over the logs.

    In this order: mean bounded slowdown, mean wait by area, 99th percentile of the waits, longest
    wait, mean of the longest thousandth of the waits.
    """

    scheduler: str
    """specification of the scheduler"""
    training: tuple[float, ...]
    """on the earlier jobs of the logs"""
    choosing: tuple[float, ...] = ()
    """on the later jobs"""


@dataclass(frozen=True)
class OrderFile:
    """The result of `walltime search`."""

    scheduler: str
    """the scheduler with the found order"""
    seed: int = 0
    """seed of the search"""
    evaluations: int = 0
    """number of simulated schedulers, each on all parts"""
    budget: int = 0
    """number of evaluations after which the search ended"""
    share: float = 0.6
    """share of each log's jobs for training; the later jobs were for choosing"""
    copies: int = 2
    """copies of each part: as recorded, and shaken"""
    shaken: int = 60
    """largest shift of a submission in shaken copies, s"""
    penalty: float = 3.0
    """weight of longest waits above EASY's"""
    optimiser: str = "cma"
    """optimiser of the weights"""
    predictor: str = ""
    """predictor whose predictions decide the order; empty for none"""
    version: str = ""
    """version of the program"""
    log: tuple[LogIdentity, ...] = field(default=())
    """the logs of the search"""
    step: tuple[Point, ...] = field(default=())
    """the order after each step, and the chosen one"""
    front: tuple[Point, ...] = field(default=())
    """Pareto front of mean bounded slowdown and longest wait, in training"""
    named: tuple[Point, ...] = field(default=())
    """named orders"""
    final: tuple[LogJudgement, ...] = field(default=())
    """the final logs that the order has been judged on"""

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    def with_judgement(self, logs: list[Workload], again: bool) -> OrderFile:
        """Return the file after a judgement on these logs. Raises PolicyError for a log of the search, or one already used.

        Other versions of a log, with common jobs, count as that log.
        """
        used = list(self.final)
        for log in logs:
            own = LogIdentity.of(log)
            searched = next((one for one in self.log if _is_same(one, own)), None)
            if searched is not None:
                subject = own.name if searched.name == own.name else f"{own.name} has the jobs of {searched.name}, which"
                raise PolicyError(f"{subject} was used in the search and cannot serve as a test; give another log", "training_log")
            place = next((k for k, one in enumerate(used) if _is_same(one, own)), len(used))
            times = used[place].times if place < len(used) else 0
            if times and not again:
                subject = own.name if used[place].name == own.name else f"{own.name} has the jobs of {used[place].name}, which"
                count = "once" if times == 1 else f"{times} times"
                raise PolicyError(f"{subject} has served as a test {count} already; give another log, or again=True", "test_log_used")
            used[place : place + 1] = [LogJudgement(own.name, own.sha256, times + 1, own.prints)]
        return replace(self, final=tuple(used))


def _is_same(one: LogIdentity | LogJudgement, other: LogIdentity) -> bool:
    """Return whether these are one log, by their files, or by their jobs."""
    return (one.sha256 or one.name) == (other.sha256 or other.name) or are_alike(one.prints, other.prints)


ORDER_FILE = TomlFile(OrderFile, "a file of walltime search", "the guide on searching for orders", PolicyError)


def read_order_file(path: str | os.PathLike[str]) -> OrderFile:
    """Read the file of a search; raises PolicyError for an invalid file."""
    return ORDER_FILE.read(path)


def write_order_file(found: OrderFile, path: str | os.PathLike[str]) -> None:
    """Write the result of a search; raises OutputError if that fails."""
    with whole_file(path) as file:
        file.write(to_toml(found, NOTHING).encode())
