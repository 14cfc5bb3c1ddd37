"""Schedulers by their results in a suite, each against the best with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.benchmark.best import behind_best
from walltime.benchmark.result import Result, metric_of, totals
from walltime.benchmark.suite import read_suite
from walltime.errors import OutputError, PolicyError
from walltime.metrics import Interval
from walltime.simulation.windows import log_cost, percent
from walltime.wording import shown

BEST, LOWEST, MAY_BE_BEST, BEHIND = "best", "lowest", "may be the best", "behind"


@dataclass(frozen=True)
class Standing:
    """A scheduler in a suite: the geometric mean of each metric, and of the first one how far it is behind the best, in percent.

    `behind`: how far it is above the lowest of these results, and the interval of how far it is behind the best, whichever that is; None
    where there is one scheduler only. With 90 % the intervals of all rows hold at once. `remark`: `best` if all others are behind, else
    the lowest is `lowest`; `may be the best` or `behind`.
    """

    suite: str
    scheduler: str
    totals: dict[str, float]
    total: Interval
    behind: Interval | None
    remark: str
    wins: int
    """windows in which no other was better"""
    windows: int

    @property
    def is_clear(self) -> bool:
        """Whether it is shown to be behind the best."""
        return self.remark == BEHIND


def leaderboard(results: Sequence[Result]) -> dict[str, list[Standing]]:
    """The schedulers of each suite among these results, the lowest first.

    Differences are paired by windows, and bounded all at once (`walltime.benchmark.best`), so that the choice of the best is inside the
    90 %. Raises PolicyError for results of different versions or definitions of a suite, or two of the same scheduler, and OutputError for
    one that is not whole.
    """
    boards: dict[str, list[Standing]] = {}
    for name in dict.fromkeys(result["suite"] for result in results):
        mine = [result for result in results if result["suite"] == name]
        suite = read_suite(name)
        if any((one.get("version"), one.get("definition")) != (suite.version, suite.definition) for one in mine):
            raise PolicyError(f"the results of the suite {name} have another version or definition than this program's ({suite.version})")
        labels = [one["policy"] for one in mine]
        if len(set(labels)) < len(labels):
            raise PolicyError(f"the suite {name} has two results of one scheduler; remove one of the files", "repeated_result")
        first = suite.metrics[0]
        subjects = [subject.name for subject in suite.subjects for _ in subject.checksums]
        for one in mine:
            values = [metric_of(row, metric) for row in one["windows"] for metric in suite.metrics]
            whole = [row.get("subject") for row in one["windows"]] == subjects and _has_totals(one, suite.metrics)
            if not whole or not np.isfinite(values).all():
                raise OutputError(
                    f"the result of {shown(one['policy'])} in the suite {name} lacks windows, metrics or totals; "
                    "see what is wrong with it: walltime benchmark verify"
                )
        costs = np.array([[row[first] for row in one["windows"]] for one in mine])
        logs = log_cost(costs, first)
        order = np.argsort(logs.mean(axis=1), kind="stable")
        behind = _behind(logs, subjects, order[0])
        may = sum(one is None or one.low <= 0 for one in behind)
        rows = boards[name] = []
        for k in order:
            sums, one = totals(mine[k]["windows"], suite.metrics), behind[k]
            clear = one is not None and one.low > 0
            rows.append(
                Standing(
                    suite=name,
                    scheduler=labels[k],
                    totals={metric: sums[metric]["mean"] for metric in suite.metrics},
                    total=Interval(
                        **sums[first], what="90 % confidence interval of the geometric mean over such windows, the subjects fixed"
                    ),
                    behind=one,
                    remark=BEHIND if clear else MAY_BE_BEST if k != order[0] else BEST if may == 1 else LOWEST,
                    wins=int((costs[k] <= costs.min(axis=0)).sum()),
                    windows=costs.shape[1],
                )
            )
    return boards


def _has_totals(result: Result, metrics: Sequence[str]) -> bool:
    said = result.get("totals")
    inside = [said.get(name) for name in metrics] if isinstance(said, dict) else [None]
    return all(
        isinstance(one, dict)
        and set(one) == {"mean", "low", "high"}
        and all(type(value) in (int, float) and abs(value) < math.inf for value in one.values())
        for one in inside
    )


def _behind(logs: np.ndarray, subjects: Sequence[str], lowest: int) -> list[Interval | None]:
    """How far each is behind the best, in percent."""
    if len(logs) < 2:
        return [None]
    what = "90 % confidence interval, for all schedulers at once, of the change in % against the best, whichever that is"
    low, high = behind_best(logs, subjects)
    mean = logs.mean(axis=1) - logs[lowest].mean()
    ends = zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)
    return [Interval(percent(middle), percent(below), percent(above), what) for middle, below, above in ends]
