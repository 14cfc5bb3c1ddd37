"""The file of a search: the order that was found, how it was found, and which logs it has been judged on."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from walltime.errors import PolicyError
from walltime.files import whole_file
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.workload import Workload

__all__ = ["ORDER_FILE", "LogUsed", "OrderFile", "Point", "Touched", "read_order_file", "write_order_file"]


@dataclass(frozen=True)
class LogUsed:
    """A log, by its content."""

    name: str
    """its name"""
    sha256: str = ""
    """of its file"""
    jobs: int = 0
    """jobs that were simulated"""

    @classmethod
    def of(cls, log: Workload) -> LogUsed:
        """A workload that was used."""
        return cls(log.origin.name, log.origin.sha256 or "", len(log))


@dataclass(frozen=True)
class Touched:
    """A log on which the order has been judged."""

    name: str
    """its name"""
    sha256: str = ""
    """of its file"""
    times: int = 1
    """how many times; after the first it is no longer a log that nobody has seen"""


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
    version: str = ""
    """of the program"""
    log: tuple[LogUsed, ...] = field(default=())
    """the logs of the search"""
    step: tuple[Point, ...] = field(default=())
    """the order after each step, and the chosen one"""
    front: tuple[Point, ...] = field(default=())
    """what nothing that was tried beats in both mean bounded slowdown and longest wait, in training"""
    named: tuple[Point, ...] = field(default=())
    """orders that have a name"""
    final: tuple[Touched, ...] = field(default=())
    """the final logs that it has been judged on"""

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def touching(self, logs: list[Workload], again: bool) -> OrderFile:
        """The file that says that these logs are looked at. Raises PolicyError for a log of the search, or one that has been looked at."""
        of_search = {one.sha256 or one.name for one in self.log}
        known = {one.sha256 or one.name: one for one in self.final}
        for log in logs:
            key = log.origin.sha256 or log.origin.name
            if key in of_search:
                raise PolicyError(f"{log.origin.name} was searched on, so it says nothing about the order; name another log")
            times = known[key].times if key in known else 0
            if times and not again:
                before = "once" if times == 1 else f"{times} times"
                raise PolicyError(f"{log.origin.name} has been looked at {before} already; name another log, or say again=True")
            known[key] = Touched(log.origin.name, log.origin.sha256 or "", times + 1)
        return replace(self, final=tuple(known.values()))


ORDER_FILE = TomlFile(OrderFile, "a file of walltime search", "the guide on searching for orders", PolicyError)
"""Such files."""


def read_order_file(path: str | os.PathLike[str]) -> OrderFile:
    """Read what a search wrote; raises PolicyError, in one line, for a file that is none."""
    return ORDER_FILE.read(path)


def write_order_file(found: OrderFile, path: str | os.PathLike[str]) -> None:
    """Write what a search found; raises OutputError if that fails."""
    with whole_file(path) as file:
        file.write(to_toml(found, NOTHING).encode())
