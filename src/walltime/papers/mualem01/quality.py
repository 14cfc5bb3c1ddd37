"""mualem01, Tables 3 and 4: what the quality of the estimates does to EASY and conservative backfilling."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from walltime.estimates import parse_estimates
from walltime.papers.item import Item
from walltime.papers.mualem01.experiment import (
    CHAOS_NOTE,
    DIGITS,
    FEW_SEEDS,
    METRICS,
    POLICIES,
    SEEDS,
    chaos,
    compared,
    label,
    shaken_cells,
    sweep_cells,
    values_of,
)
from walltime.papers.printed_numbers import PrintedTable
from walltime.papers.results import Claim, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject

FACTORS = (1, 2, 4, 11, 31, 101, 301)


def table_3(study: Study) -> list[Part]:
    """The effect of the quality of the estimates."""
    names = [f"f:{factor}" for factor in FACTORS]
    return _quality(study, "T3", "table3", names, METRICS, [s for s in study.subjects if s.has_estimates], study.printed.criteria)


def table_4(study: Study) -> list[Part]:
    """The effect of doubling the users' estimates."""
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
    claims: list[Claim] = []
    for subject in subjects:
        table = sweep_cells(study, subject, names, seeds)
        shaken = shaken_cells(study, subject, [model for model in names if not parse_estimates(model).random])
        found: dict[tuple[str, str, str], tuple[float, float | None]] = {}
        for metric in metrics:
            for policy in POLICIES:
                row: list[Entry] = [subject.name, metric, policy]
                for model in names:
                    cells = values_of(table, policy, model, metric)
                    value = _printed(printed, subject, policy, model, metric)
                    band = chaos(cells, values_of(shaken, policy, model, metric))
                    row.append(Value(float(cells.mean()), value, criteria[metric], DIGITS[metric], band))
                    found[metric, policy, model] = float(cells.mean()), value
                rows.append(row)
        claims += _orders(subject.name, found, list(metrics), names)
    return [
        Table(name, printed.title, ["log", "metric", "policy", *(label(model) for model in names)], rows),
        Claims(claims),
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


def _orders(
    log: str, found: Mapping[tuple[str, str, str], tuple[float, float | None]], metrics: list[str], names: list[str]
) -> list[Claim]:
    """Every comparison whose printed difference is noticeable.

    Compared are the policies with the same estimates, and each kind of estimates with the original ones and with the next kind.
    """
    claims: list[Claim] = []
    for metric in metrics:
        for model in names:
            (easy, easy_print), (conservative, conservative_print) = (found[metric, policy, model] for policy in POLICIES)
            what = f"{log}, {metric}, {label(model)}: conservative against EASY"
            claims += compared(what, [easy_print, conservative_print], [easy, conservative])
        for policy in POLICIES:
            pairs = list(dict.fromkeys([("user", other) for other in names[1:]] + list(itertools.pairwise(names[1:]))))
            for first, second in pairs:
                a, b = found[metric, policy, first], found[metric, policy, second]
                claims += compared(f"{log}, {metric}, {policy}: {label(second)} against {label(first)}", [a[1], b[1]], [a[0], b[0]])
    return claims


ITEMS = (
    Item("mualem01", "T3", "Table 3: the quality of the estimates", table_3),
    Item("mualem01", "T4", "Table 4: doubled estimates", table_4),
)
