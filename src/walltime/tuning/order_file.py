"""Read and write the files of searches: the order found, the settings of the search, and its logs."""

import os
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Self

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.files import whole_file
from walltime.specification import Specification
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.tuning.search import Optimiser
from walltime.wording import listed
from walltime.workload import Workload


@dataclass(frozen=True)
class LogIdentity:
    """A log of the search, identified by its content."""

    name: str
    """name of the log"""
    sha256: str = ""
    """checksum of its file"""
    jobs: int = 0
    """number of simulated jobs"""

    @classmethod
    def of(cls, log: Workload) -> Self:
        """Return the identity of a workload."""
        return cls(log.origin.name, log.origin.sha256 or "", len(log))


@dataclass(frozen=True)
class Point:
    """A simulated scheduler, with its objectives relative to EASY as geometric means over the logs.

    The objectives, in this order, are mean bounded slowdown, mean wait weighted by area, 99th percentile of the waits, longest
    wait, mean of the longest thousandth of the waits.
    """

    scheduler: str
    """specification of the scheduler"""
    training: tuple[float, ...]
    """results on the earlier jobs of the logs"""
    choosing: tuple[float, ...] = ()
    """results on the later jobs"""


PREDICTIONS_FOR = "100"
"""Default use of predictions: they decide the queue order, but not the planned runtimes."""


@dataclass(frozen=True)
class SearchSettings(Specification):
    """Settings of `search_orders`; raises PolicyError for invalid ones."""

    budget: Annotated[int, Field(least=1)] = 1500
    """number of evaluations; the search ends with the step that reaches it"""
    share: Annotated[float, Field(above=0, below=1)] = 0.6
    """share of each log's jobs for training; the later jobs are for choosing among the steps"""
    copies: Annotated[int, Field(least=1)] = 2
    """number of copies of each part: as recorded, and shaken; all schedulers use the same copies"""
    shaken: Annotated[int, Field(least=0)] = 60
    """largest shift of a submission in shaken copies, s"""
    penalty: Annotated[float, Field(least=0)] = 3.0
    """weight of longest waits above EASY's longest waits"""
    optimiser: Optimiser = "cma"
    """optimiser of the weights"""
    seed: int = 0
    """seed of the search"""
    predictor: str = ""
    """predictor whose predictions decide the order; empty for none"""
    predictions_for: str = PREDICTIONS_FOR
    """uses of the predictions, by default only the order"""


@dataclass(frozen=True)
class OrderFile(SearchSettings):
    """The result of `walltime search`, with its settings."""

    scheduler: str = field(kw_only=True)
    """the scheduler with the found order"""
    evaluations: int = 0
    """number of simulated schedulers, each on all parts"""
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

    @property
    def logs(self) -> str:
        """Return the names of the logs of the search, as text."""
        return listed([one.name for one in self.log]) if self.log else "no log"

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)


ORDER_FILE = TomlFile(OrderFile, "a file of walltime search", "docs/guides/tuning.md", PolicyError)


def read_order_file(path: str | os.PathLike[str]) -> OrderFile:
    """Read the file of a search; raises PolicyError for an invalid file."""
    return ORDER_FILE.read(path)


def write_order_file(path: str | os.PathLike[str], found: OrderFile) -> None:
    """Write the result of a search; raises OutputError if that fails."""
    with whole_file(path) as file:
        file.write(to_toml(found, NOTHING).encode())
