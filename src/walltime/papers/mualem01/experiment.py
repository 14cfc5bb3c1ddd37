"""The experiment of both papers on backfilling: EASY and conservative backfilling on one log; mualem01, Tables 3 and 4."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from walltime.estimates import parse_estimates
from walltime.papers.items import item
from walltime.papers.results import Claims, Entry, Notes, Part, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import Conservative, Easy
from walltime.schedule import Schedule
from walltime.simulation import simulate

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray

POLICIES = {"easy": Easy(), "conservative": Conservative()}
METRICS = {"response": "mean_response", "slowdown": "mean_bounded_slowdown_p1"}
DIGITS = {"response": 0, "slowdown": 1}
SEEDS, FEW_SEEDS = 10, 3
SHAKES, FEW_SHAKES = 20, 5
SHAKE = 30
"""Largest shift of a submission, s, in either direction."""
NOTICEABLE = 0.05
"""Printed differences above this must have the same sign here."""
CHAOS_NOTE = (
    f"Where a number is beyond the accepted deviation, the small print gives the spread of ours. For one run it is the 5th to the 95th "
    f"percentile of runs whose submit times are shaken by up to {SHAKE} s. For a mean over seeds it is the range in which two such means "
    "would differ by chance 9 times in 10. A printed number inside is marked ~, one outside !."
)


def sweep_cells(study: Study, subject: Subject, estimates: Sequence[str], seeds: int) -> pl.DataFrame:
    """Run both policies with these estimates; random ones with `seeds` seeds."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates]
    return study.cells(f"{subject.name}: EASY and conservative", subject, *axes, seeds=seeds)


def shaken_cells(study: Study, subject: Subject, estimates: Sequence[str]) -> pl.DataFrame:
    """Run the same with shaken submissions, for estimates without chance."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates], [{"shake": SHAKE}]
    return study.cells(f"{subject.name}: shaken", subject, *axes, seeds=FEW_SHAKES if study.quick else SHAKES)


def values_of(table: pl.DataFrame, policy: str, estimates: str, metric: str) -> Array:
    """Return the results of all seeds."""
    import polars as pl

    part = table.filter((pl.col("policy") == policy) & (pl.col("estimates") == estimates))
    return part[METRICS[metric]].to_numpy()


def chaos(cells: Array, shaken: Array | None) -> tuple[float, float] | None:
    """Return the range of a printed number due to chaos: see `CHAOS_NOTE`."""
    if len(cells) > 1:
        half = 1.645 * float(np.std(cells, ddof=1)) * float(np.sqrt(2 / len(cells)))
        return float(cells.mean()) - half, float(cells.mean()) + half
    if shaken is None or len(shaken) < 2:
        return None
    low, high = np.percentile(shaken, [5, 95])
    return float(low), float(high)


def label(estimates: str) -> str:
    """Return the name of estimates in the papers' tables."""
    return {"user": "original", "double": "x2"}.get(estimates, estimates.replace("f:", "f = "))


def compared(name: str, printed: Sequence[float | None], ours: Sequence[float]) -> Claims:
    """Compare the signs of a printed difference over `NOTICEABLE` and of ours; empty if nothing is printed or the difference is small."""
    first, second = printed
    if first is None or second is None or abs(second / first - 1) <= NOTICEABLE:
        return Claims()
    theirs, mine = second / first - 1, ours[1] / ours[0] - 1
    return Claims((f"{name}: {100 * theirs:+.0f} % in print", (theirs > 0) == (mine > 0), f"{100 * mine:+.1f} %"))


def schedule_of(subject: Subject, policy: str, overrun: str = "kill") -> Schedule:
    """Simulate the log under a policy, with the paper's original estimates."""
    return simulate(subject.workload.with_estimates(parse_estimates(subject.estimates)), POLICIES[policy], overrun=overrun)


FACTORS = (1, 2, 4, 11, 31, 101, 301)


@item("T3")
def table_3(study: Study) -> list[Part]:
    """Table 3: the quality of the estimates."""
    return _quality(study, "T3", "table3", [f"f:{factor}" for factor in FACTORS])


@item("T4")
def table_4(study: Study) -> list[Part]:
    """Table 4: doubled estimates."""
    return _quality(study, "T4", "table4", ["double"])


def _quality(study: Study, item: str, name: str, models: Sequence[str]) -> list[Part]:
    """Return a table of mualem01 with one row per log, policy and metric, and one column per kind of estimates."""
    names = ["user", *models]
    seeds = FEW_SEEDS if study.quick else SEEDS
    rows: Rows = []
    claims = Claims()
    for subject in study.with_estimates:
        table = sweep_cells(study, subject, names, seeds)
        shaken = shaken_cells(study, subject, [model for model in names if not parse_estimates(model).random])
        values: dict[tuple[str, str, str], tuple[float, float | None]] = {}
        for metric in METRICS:
            for policy in POLICIES:
                row: list[Entry] = [subject.name, metric, policy]
                for model in names:
                    cells = values_of(table, policy, model, metric)
                    where = {"log": subject.name, "policy": policy, "estimates": model, "metric": metric}
                    value = study.printed_value(subject, item, "value", **where)
                    band = chaos(cells, values_of(shaken, policy, model, metric))
                    row.append(Value(float(cells.mean()), value, study.printed.criteria[metric], DIGITS[metric], band))
                    values[metric, policy, model] = float(cells.mean()), value
                rows.append(row)
        claims += _orders(subject.name, values, names)
    note = f"Means over {seeds} seeds, the same for all; response in seconds, bounded slowdown in the form of mualem01."
    heads = ["log", "metric", "policy", *map(label, names)]
    return [Table(name, study.printed.tables[item].title, heads, rows), claims, Notes(note, CHAOS_NOTE)]


def _orders(log: str, values: Mapping[tuple[str, str, str], tuple[float, float | None]], names: list[str]) -> Claims:
    """Return every comparison whose printed difference is noticeable.

    The policies are compared under the same estimates, and each kind of estimates with the original ones and with the next kind.
    """
    claims = Claims()
    for metric in METRICS:
        for model in names:
            (easy, easy_print), (conservative, conservative_print) = (values[metric, policy, model] for policy in POLICIES)
            name = f"{log}, {metric}, {label(model)}: conservative against EASY"
            claims += compared(name, [easy_print, conservative_print], [easy, conservative])
        for policy in POLICIES:
            pairs = list(dict.fromkeys([("user", other) for other in names[1:]] + list(itertools.pairwise(names[1:]))))
            for first, second in pairs:
                a, b = values[metric, policy, first], values[metric, policy, second]
                claims += compared(f"{log}, {metric}, {policy}: {label(second)} against {label(first)}", [a[1], b[1]], [a[0], b[0]])
    return claims
