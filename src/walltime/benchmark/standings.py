"""Rank schedulers in a suite, by multiple comparisons with the best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.benchmark.result import Result, is_equal, metric_of, totals
from walltime.benchmark.suite import read_suite
from walltime.errors import OutputError, PolicyError
from walltime.metrics import Interval
from walltime.metrics.series import same_subject, stratified_errors
from walltime.simulation.windows import log_cost, percent
from walltime.wording import shown

Array = np.ndarray
DRAWS = 2000
"""Number of random draws of signs."""


def behind_best(costs: Array, subjects: Sequence[object], confidence: float = 0.90, seed: int = 0) -> tuple[Array, Array]:
    """Return simultaneous intervals of each scheduler's distance from the best, paired by windows.

    `costs`: logarithms of costs, float64, shape (schedulers, windows), lower is better, at least 2 schedulers; `subjects`: the fixed
    subject of each window, so that only differences within a subject are random. The ends are differences of logarithms of at least 0; with
    a lower end of 0, the scheduler may be the best itself.

    The bounds hold for all pairs of schedulers simultaneously, so selecting the best causes no bias. Source: Hsu, Multiple Comparisons,
    1996, chapters 4 and 5 (comparisons with the best from those of all pairs, as in Tukey's method); the bound is the quantile of the
    largest difference over random signs of the windows' deviations (Wu, Ann. Statist. 14 (1986)), as windows are paired and deviations are
    not normal.

    >>> low, high = behind_best(np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.1]]), ["one log"] * 4)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.95], [0.0, 1.1])
    """
    one, other = np.triu_indices(len(costs), 1)
    apart = costs[one] - costs[other]
    mean, (error, _) = apart.mean(axis=1), stratified_errors(apart, subjects)
    width = _bound(costs, one, other, subjects, confidence, seed) * error
    low, high = np.zeros((2, len(costs), len(costs)))
    low[one, other], high[one, other] = mean - width, mean + width
    low[other, one], high[other, one] = -mean - width, width - mean
    return low.max(axis=1), high.max(axis=1)


def _bound(costs: Array, one: Array, other: Array, subjects: Sequence[object], confidence: float, seed: int) -> float:
    """Return the quantile, over random signs, of the largest difference of any pair in units of its standard error."""
    draw = np.random.Generator(np.random.Philox(seed))
    signs = np.asarray(2.0 * draw.integers(0, 2, (DRAWS, costs.shape[1])) - 1)
    groups = [group for group in same_subject(subjects) if len(group) > 1]
    shifted, power = np.zeros((2, DRAWS, len(one)))
    for group in groups:
        count = len(group)
        away = costs[:, group] - costs[:, group].mean(axis=1, keepdims=True)
        away *= np.sqrt(count / (count - 1))  # corrects the smaller variance of deviations from their own mean
        sums = signs[:, group] @ away.T
        apart = sums[:, one] - sums[:, other]
        squares = ((away[one] - away[other]) ** 2).sum(axis=1)
        shifted += apart
        power += np.maximum(squares - apart**2 / count, 0) * count / (count - 1)
    ratios = np.divide(np.abs(shifted), np.sqrt(power), out=np.zeros_like(power), where=power > 0)
    return float(np.quantile(ratios.max(axis=1), confidence))


BEST, LOWEST, MAY_BE_BEST, BEHIND = "best", "lowest", "may be the best", "behind"


@dataclass(frozen=True)
class Standing:
    """The standing of a scheduler in a suite.

    `totals`: geometric mean of each metric; `total`: that mean for the first metric, with its interval. `behind`: difference from the
    lowest result in %, with the interval of the distance from the best; None for a single scheduler. These 90 % intervals are simultaneous.
    `remark`: `best` if all others are behind, otherwise `lowest`; `may be the best` or `behind`.
    """

    suite: str
    scheduler: str
    totals: dict[str, float]
    total: Interval
    behind: Interval | None
    remark: str
    wins: int
    """number of windows in which no other scheduler was better"""
    windows: int

    @property
    def is_clear(self) -> bool:
        """Return whether the scheduler is clearly behind the best."""
        return self.remark == BEHIND


def leaderboard(results: Sequence[Result]) -> dict[str, list[Standing]]:
    """Return the standings of each suite in these results, in ascending order of cost.

    Differences are paired by windows, with simultaneous intervals (`behind_best`). Raises PolicyError for results of
    different versions or definitions of a suite, or for two results of a scheduler, and OutputError for an incomplete result.
    """
    boards: dict[str, list[Standing]] = {}
    for name in dict.fromkeys(result["suite"] for result in results):
        mine = [result for result in results if result["suite"] == name]
        suite = read_suite(name)
        if any((one.get("version"), one.get("definition")) != (suite.version, suite.definition) for one in mine):
            raise PolicyError(
                f"some results of the suite {name} are not of this program's version of the suite ({suite.version}); run the suite again"
            )
        labels = [one["policy"] for one in mine]
        if len(set(labels)) < len(labels):
            raise PolicyError(f"the suite {name} has two results of the same scheduler; remove one of the files", "repeated_result")
        first = suite.metrics[0]
        subjects = [subject.name for subject in suite.subjects for _ in subject.checksums]
        for one in mine:
            windows = one["windows"]
            finite = np.isfinite([metric_of(row, metric) for row in windows for metric in suite.metrics]).all()
            complete = finite and [row.get("subject") for row in windows] == subjects
            if not complete or not is_equal(one.get("totals"), totals(windows, suite.metrics)):
                raise OutputError(
                    f"the result of {shown(one['policy'])} in the suite {name} lacks windows or metrics, or its totals differ from the "
                    "windows'; check it with: walltime benchmark verify"
                )
        costs = np.array([[row[first] for row in one["windows"]] for one in mine])
        logs = log_cost(costs, first)
        order = np.argsort(logs.mean(axis=1), kind="stable")
        behind = _behind(logs, subjects, order[0])
        candidates = sum(one is None or one.low <= 0 for one in behind)
        what = "90 % confidence interval of the geometric mean under sampling of windows, for these subjects"
        rows = boards[name] = []
        for k in order:
            sums, one = totals(mine[k]["windows"], suite.metrics), behind[k]
            clear = one is not None and one.low > 0
            rows.append(
                Standing(
                    suite=name,
                    scheduler=labels[k],
                    totals={metric: sums[metric]["mean"] for metric in suite.metrics},
                    total=Interval(**sums[first], what=what),
                    behind=one,
                    remark=BEHIND if clear else MAY_BE_BEST if k != order[0] else BEST if candidates == 1 else LOWEST,
                    wins=int((costs[k] <= costs.min(axis=0)).sum()),
                    windows=costs.shape[1],
                )
            )
    return boards


def _behind(logs: np.ndarray, subjects: Sequence[str], lowest: int) -> list[Interval | None]:
    """Return the interval of each scheduler's distance from the best, percent."""
    if len(logs) < 2:
        return [None]
    what = "90 % confidence interval, for all schedulers at once, of the change in % against the best, whichever that is"
    low, high = behind_best(logs, subjects)
    mean = logs.mean(axis=1) - logs[lowest].mean()
    ends = zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)
    return [Interval(percent(middle), percent(below), percent(above), what) for middle, below, above in ends]
