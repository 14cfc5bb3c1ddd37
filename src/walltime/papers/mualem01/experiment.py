"""The experiment of both papers on backfilling: EASY and conservative backfilling on one log; mualem01, Tables 3 and 4, made with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from walltime.estimates import parse_estimates
from walltime.papers.items import item
from walltime.papers.printed import PrintedTable
from walltime.papers.results import Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
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
"""Seconds by which submissions are shaken, up or down, to see how chaotic a number is."""
NOTICEABLE = 0.05
"""Printed differences above this must have the same sign here."""
CHAOS_NOTE = (
    f"Where a number is beyond the accepted deviation, the small print says how far ours spreads: for one run, from the 5th to the 95th "
    f"percentile of runs whose submit times are shaken by up to {SHAKE} s; for a mean over seeds, the range in which two such means "
    "would differ by chance 9 times in 10. A printed number inside is marked ~, one outside !."
)


def sweep_cells(study: Study, subject: Subject, estimates: Sequence[str], seeds: int) -> pl.DataFrame:
    """Both policies with these estimates; random ones with `seeds` seeds."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates]
    return study.cells(f"{subject.name}: EASY and conservative", subject, *axes, seeds=seeds)


def shaken_cells(study: Study, subject: Subject, estimates: Sequence[str]) -> pl.DataFrame:
    """The same with shaken submissions, for estimates without chance."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates], [{"shake": SHAKE}]
    return study.cells(f"{subject.name}: shaken", subject, *axes, seeds=FEW_SHAKES if study.quick else SHAKES)


def values_of(table: pl.DataFrame, policy: str, estimates: str, metric: str) -> Array:
    """The results of all seeds."""
    import polars as pl

    part = table.filter((pl.col("policy") == policy) & (pl.col("estimates") == estimates))
    return part[METRICS[metric]].to_numpy()


def chaos(cells: Array, shaken: Array | None) -> tuple[float, float] | None:
    """The range of a printed number due to chaos: see `CHAOS_NOTE`."""
    if len(cells) > 1:
        half = 1.645 * float(np.std(cells, ddof=1)) * float(np.sqrt(2 / len(cells)))
        return float(cells.mean()) - half, float(cells.mean()) + half
    if shaken is None or len(shaken) < 2:
        return None
    low, high = np.percentile(shaken, [5, 95])
    return float(low), float(high)


def label(estimates: str) -> str:
    """Estimates as the papers' tables name them."""
    return {"user": "original", "double": "x2"}.get(estimates, estimates.replace("f:", "f = "))


def compared(what: str, printed: Sequence[float | None], ours: Sequence[float]) -> Claims:
    """The sign of a printed difference over `NOTICEABLE`, and ours; empty if nothing is printed or the difference is small."""
    first, second = printed
    if first is None or second is None or abs(second / first - 1) <= NOTICEABLE:
        return Claims()
    theirs, mine = second / first - 1, ours[1] / ours[0] - 1
    return Claims((f"{what}: {100 * theirs:+.0f} % in print", (theirs > 0) == (mine > 0), f"{100 * mine:+.1f} %"))


def schedule_of(subject: Subject, policy: str, overrun: str = "kill") -> Schedule:
    """The log under a policy, with the paper's original estimates."""
    return simulate(subject.workload.with_estimates(parse_estimates(subject.estimates)), POLICIES[policy], overrun=overrun)


FACTORS = (1, 2, 4, 11, 31, 101, 301)


@item("T3")
def table_3(study: Study) -> list[Part]:
    """Table 3: the quality of the estimates."""
    names = [f"f:{factor}" for factor in FACTORS]
    return _quality(study, "T3", "table3", names, METRICS, [s for s in study.subjects if s.has_estimates], study.printed.criteria)


@item("T4")
def table_4(study: Study) -> list[Part]:
    """Table 4: doubled estimates."""
    subjects = [s for s in study.subjects if s.has_estimates]
    return _quality(study, "T4", "table4", ["double"], METRICS, subjects, study.printed.criteria)


def _quality(
    study: Study,
    item: str,
    name: str,
    models: Sequence[str],
    metrics: Iterable[str],
    subjects: Sequence[Subject],
    criteria: Mapping[str, float],
) -> list[Part]:
    """A table of mualem01 with one row per log, policy and metric, one column per kind of estimates."""
    printed = study.printed.tables[item]
    names = ["user", *models]
    seeds = FEW_SEEDS if study.quick else SEEDS
    rows: list[list[Entry]] = []
    claims = Claims()
    for subject in subjects:
        table = sweep_cells(study, subject, names, seeds)
        shaken = shaken_cells(study, subject, [model for model in names if not parse_estimates(model).random])
        values: dict[tuple[str, str, str], tuple[float, float | None]] = {}
        for metric in metrics:
            for policy in POLICIES:
                row: list[Entry] = [subject.name, metric, policy]
                for model in names:
                    cells = values_of(table, policy, model, metric)
                    value = _printed(printed, subject, policy, model, metric)
                    band = chaos(cells, values_of(shaken, policy, model, metric))
                    row.append(Value(float(cells.mean()), value, criteria[metric], DIGITS[metric], band))
                    values[metric, policy, model] = float(cells.mean()), value
                rows.append(row)
        claims += _orders(subject.name, values, list(metrics), names)
    return [
        Table(name, printed.title, ["log", "metric", "policy", *(label(model) for model in names)], rows),
        claims,
        Notes(
            [
                f"Means over {seeds} seeds, the same for all; response in seconds, bounded slowdown in the form of mualem01.",
                CHAOS_NOTE,
            ]
        ),
    ]


def _printed(table: PrintedTable, subject: Subject, policy: str, estimates: str, metric: str) -> float | None:
    if subject.kind != PAPER:
        return None
    return table.value("value", log=subject.name, policy=policy, estimates=estimates, metric=metric)


def _orders(log: str, values: Mapping[tuple[str, str, str], tuple[float, float | None]], metrics: list[str], names: list[str]) -> Claims:
    """Every comparison whose printed difference is noticeable.

    Compared are the policies with the same estimates, and each kind of estimates with the original ones and with the next kind.
    """
    claims = Claims()
    for metric in metrics:
        for model in names:
            (easy, easy_print), (conservative, conservative_print) = (values[metric, policy, model] for policy in POLICIES)
            what = f"{log}, {metric}, {label(model)}: conservative against EASY"
            claims += compared(what, [easy_print, conservative_print], [easy, conservative])
        for policy in POLICIES:
            pairs = list(dict.fromkeys([("user", other) for other in names[1:]] + list(itertools.pairwise(names[1:]))))
            for first, second in pairs:
                a, b = values[metric, policy, first], values[metric, policy, second]
                claims += compared(f"{log}, {metric}, {policy}: {label(second)} against {label(first)}", [a[1], b[1]], [a[0], b[0]])
    return claims
