"""Schedulers by their results in a suite, each against the best with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.benchmark.result import Result
from walltime.benchmark.suite import read_suite
from walltime.errors import PolicyError
from walltime.metrics import Interval, mean_interval
from walltime.schedule.windows import log_cost, percent


@dataclass(frozen=True)
class Standing:
    """A scheduler in a suite: the geometric mean of each metric, and of the first one how far it is above the best, in percent.

    `behind` is None for the best.
    """

    suite: str
    scheduler: str
    totals: dict[str, float]
    total: Interval
    behind: Interval | None
    wins: int
    """windows in which no other was better"""
    windows: int

    @property
    def is_clear(self) -> bool:
        """Whether it is clearly behind the best."""
        return self.behind is not None and self.behind.low > 0

    @property
    def remark(self) -> str:
        """How it compares with the best, in words."""
        return "best" if self.behind is None else "behind" if self.is_clear else "no clear difference"


def leaderboard(results: Sequence[Result]) -> dict[str, list[Standing]]:
    """The schedulers of each suite among these results, the best first.

    Differences are paired by windows, with 90 % intervals (Student's t). Raises PolicyError for results of different versions or
    definitions of a suite, or two of the same scheduler.
    """
    found: dict[str, list[Standing]] = {}
    for name in dict.fromkeys(result["suite"] for result in results):
        mine = [result for result in results if result["suite"] == name]
        suite = read_suite(name)
        if any((one["version"], one["definition"]) != (suite.version, suite.definition) for one in mine):
            raise PolicyError(f"the results of the suite {name} have another version or definition than this program's ({suite.version})")
        labels = [one["policy"] for one in mine]
        if len(set(labels)) < len(labels):
            raise PolicyError(f"the suite {name} has two results of one scheduler; remove one of the files")
        first = suite.metrics[0]
        costs = np.array([[row[first] for row in one["windows"]] for one in mine])
        logs = log_cost(costs, first)
        order = np.argsort(logs.mean(axis=1), kind="stable")
        best = logs[order[0]]
        found[name] = [
            Standing(
                suite=name,
                scheduler=labels[k],
                totals={metric: mine[k]["totals"][metric]["mean"] for metric in suite.metrics},
                total=Interval(**mine[k]["totals"][first], what="90 % confidence interval of the geometric mean over windows"),
                behind=None if k == order[0] else _change(logs[k] - best),
                wins=int((costs[k] <= costs.min(axis=0)).sum()),
                windows=costs.shape[1],
            )
            for k in order
        ]
    return found


def _change(differences: np.ndarray) -> Interval:
    found = mean_interval(differences)
    return Interval(percent(found.mean), percent(found.low), percent(found.high), f"{found.what}, of the logarithms, as a change in %")
