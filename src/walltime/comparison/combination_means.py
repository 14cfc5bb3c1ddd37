"""Compute the means of a campaign, with their bands, for each combination of parameters, and paired differences from a baseline."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.declared import valid_options
from walltime.errors import PolicyError
from walltime.metrics import Interval, holm, mean_interval, paired_difference, paired_probability, range_of_runs, relative_spread
from walltime.metrics.intervals import LEVEL, check_level
from walltime.metrics.summary import averages
from walltime.schedule.groups import group_rank
from walltime.simulation.replication import Replications

if TYPE_CHECKING:
    import polars as pl

METRICS = tuple(name for name, average in averages().items() if average.several)
"""Measures compared by default."""


@dataclass(frozen=True)
class CombinationMean:
    """The result of one measure for one combination of the varied parameters, over its seeds."""

    combination: Mapping[str, Any]
    group: str | None
    """group of jobs, if groups are compared"""
    metric: str
    runs: int
    band: Interval
    """mean, and the range in which a further run would lie"""
    spread: float
    """standard deviation over mean; nan for a single run"""
    difference: Interval | None
    """mean of the paired differences from the baseline, with its confidence interval; None for the baseline itself"""
    interval: Interval | None = None
    """mean over the seeds with its confidence interval; None for a single run"""

    level: float = LEVEL
    """level of the intervals"""
    probability: float | None = None
    """p-value of the difference, corrected for all comparisons in this measure (Holm); None without an interval"""

    @property
    def clear(self) -> bool | None:
        """Return whether the difference is significant at this level among all comparisons in this measure; None without an interval."""
        return None if self.probability is None else self.probability < 1 - self.level


def compare_cells(
    cells: pl.DataFrame,
    varied: Sequence[str],
    *,
    metrics: Sequence[str] = METRICS,
    baseline: Mapping[str, Any] | None = None,
    groups: pl.DataFrame | None = None,
    by: str | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
    level: float = LEVEL,
) -> list[CombinationMean]:
    """Return the results of each measure for each combination of parameters, compared with the baseline.

    `cells`: as in `Store.table`. `varied`: the parameters that distinguish the combinations, as in `Plan.varied`. `baseline`: values of one
    or more parameters; each combination is compared, seed by seed, with the combination in which these values replace its own. `groups,
    by`: the table of groups, and the grouping to use; groups come in their natural order. `orders`: for some of the parameters, their
    values in the order of the result; the values of others are sorted. `level`: the level of each single confidence interval. Only the
    verdicts (`clear`) are corrected for the number of comparisons in a measure, by Holm's method.

    Raises PolicyError for an unknown measure or baseline, a missing grouping, or a level outside of 0.5 to below 1.
    """
    import polars as pl

    level, table = check_level(level), cells
    if by is not None:
        if groups is None or not (groups["by"] == by).any():
            raise PolicyError(f"the campaign has no groups by {by!r}; add them to the plan: [campaign] groups = [{by!r}]")
        words = [*(name for name in varied if name in cells.columns), "seed"]
        table = groups.filter(pl.col("by") == by).join(cells.select("cell", *words), on="cell").sort("group")
    for metric in metrics:
        if metric not in table.columns or not table[metric].dtype.is_numeric():
            known = [name for name in averages() if name in table.columns]
            raise PolicyError(f"these results have no measure {metric!r}{valid_options(metric, known)}")
    words = [name for name in varied if name in table.columns]
    for name in baseline or {}:
        if name not in words:
            raise PolicyError(f"the baseline names {name!r}, which this plan does not vary; it varies {', '.join(words) or 'nothing'}")
    runs = _runs(table, words, by, orders or {})
    if baseline and not any(all(dict(zip(words, values, strict=True)).get(k) == v for k, v in baseline.items()) for values, _ in runs):
        raise PolicyError(
            f"no combination has the baseline {', '.join(f'{k}={v}' for k, v in baseline.items())}; use values that the plan contains"
        )
    lines = []
    for (values, group), rows in runs.items():
        combination = dict(zip(words, values, strict=True))
        other = tuple({**combination, **(baseline or {})}[name] for name in words)
        reference = runs.get((other, group)) if baseline and other != values else None
        for metric in metrics:
            by_seed = _defined(rows, metric)
            if not by_seed:
                continue
            of_runs = np.array(list(by_seed.values()))
            spread = relative_spread(of_runs) if len(of_runs) > 1 else math.nan
            difference, p = (None, None) if reference is None else _difference(by_seed, _defined(reference, metric), level)
            interval = mean_interval(of_runs, level) if len(of_runs) > 1 else None
            means = (len(of_runs), range_of_runs(of_runs), spread, difference, interval, level, p)
            lines.append(CombinationMean(combination, group, metric, *means))
    corrected = {name: iter(holm(np.array([one.probability for one in compared_in(lines, name)]))) for name in metrics}
    return [one if one.probability is None else replace(one, probability=float(next(corrected[one.metric]))) for one in lines]


def compared_in(lines: Sequence[CombinationMean], metric: str) -> list[CombinationMean]:
    """Return the lines with a tested difference in this measure."""
    return [line for line in lines if line.metric == metric and line.probability is not None]


def replication_cells(results: Sequence[Replications], combinations: Sequence[Mapping[str, Any]] | None = None) -> pl.DataFrame:
    """Return replications as a table like a campaign's: one row per result and seed, with its parameters and its summary.

    `combinations`: parameters of each result, such as its load; by default its policy, numbered if one occurs more than once.

    >>> from walltime import Easy, Workload, replicate
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> replication_cells([replicate(lambda seed: jobs, Easy(), [0, 1])]).select("policy", "seed", "mean_wait").rows()
    [('easy', 0, 3.0), ('easy', 1, 3.0)]
    """
    import polars as pl

    if combinations is None:
        labels = [result.scheduler.label for result in results]
        again = [labels[: k + 1].count(label) for k, label in enumerate(labels)]
        combinations = [{"policy": label if n == 1 else f"{label} ({n})"} for label, n in zip(labels, again, strict=True)]
    return pl.DataFrame(
        [
            {**combination, "seed": seed, **summary.as_dict()}
            for combination, result in zip(combinations, results, strict=True)
            for seed, summary in zip(result.seeds, result.summaries, strict=True)
        ],
        infer_schema_length=None,
    )


def _runs(
    table: pl.DataFrame, words: Sequence[str], by: str | None, orders: Mapping[str, Sequence[Any]]
) -> dict[tuple[tuple[Any, ...], str | None], list[dict[str, Any]]]:
    """Return the rows of each combination and group, in the order of the combinations."""
    runs: dict[tuple[tuple[Any, ...], str | None], list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        runs.setdefault((tuple(row[name] for name in words), row["group"] if by is not None else None), []).append(row)
    places = {name: {value: k for k, value in enumerate(values)} for name, values in orders.items()}

    def rank(key: tuple[tuple[Any, ...], str | None]) -> tuple[Any, ...]:
        values, group = key
        sides = [(places.get(name, {}).get(value, math.inf), _rank(value)) for name, value in zip(words, values, strict=True)]
        return sides, group_rank(by, group) if by is not None and group is not None else ()

    return {key: runs[key] for key in sorted(runs, key=rank)}


def _rank(value: Any) -> tuple[Any, ...]:
    """Return a sort key: missing values first, then numbers, then text, in which numbers are compared as such."""
    number = float(value) if isinstance(value, int | float) else math.inf
    parts = [(float(part), "") if part[0].isdecimal() else (math.inf, part) for part in re.findall(r"\d+(?:\.\d+)?|\D+", str(value))]
    return (value is not None, number, parts)


def _defined(rows: Sequence[Mapping[str, Any]], metric: str) -> dict[int | None, float]:
    return {row["seed"]: float(row[metric]) for row in rows if row[metric] is not None}


def _difference(mine: Mapping[int | None, float], theirs: Mapping[int | None, float], level: float) -> tuple[Interval | None, float | None]:
    """Return the difference paired by seed, and its p-value; a run without random parts is paired with every seed."""
    if list(mine) == [None] and list(theirs) != [None]:
        pairs = [(mine[None], value) for value in theirs.values()]
    elif list(theirs) == [None]:
        pairs = [(value, theirs[None]) for value in mine.values()]
    else:
        pairs = [(mine[seed], theirs[seed]) for seed in mine if seed in theirs]
    if not pairs:
        return None, None
    first, second = np.array(pairs).T
    if len(pairs) == 1:
        change = float(first[0] - second[0])
        return Interval(change, math.nan, math.nan, "difference of single runs"), None
    return paired_difference(first, second, level), paired_probability(first, second)
