"""Beyond tang13: EASY++ and what it is made of, beside EASY, on shaken logs; who gains and who loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import mean_interval, paired_difference, percentile_band
from walltime.papers import drawing
from walltime.papers.item import Item
from walltime.papers.results import Chart, Claim, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.tang13.schemes import keys_of, learnable
from walltime.workload import Workload

Array = np.ndarray
SHAKE = 30
"""Seconds by which submissions are shaken."""
SHAKES, FEW_SHAKES = 25, 5
CLASSES = ("heavy", "medium", "light")


def variants(workload: Workload) -> dict[str, dict[str, Any]]:
    """Each scheduler by name, as the words of a campaign that make it."""
    triple = f"tang13:key={keys_of(workload)['triple']}"
    predicted = {"predictor": "tsafrir07", "believe": "regular"}
    return {
        "EASY": {},
        "EASY + SJBF": {"backfill_order": "sjf"},
        "EASY + predictions": predicted,
        "EASY++": {**predicted, "backfill_order": "sjf"},
        "EASY++, at once to the estimate": {**predicted, "backfill_order": "sjf", "correction": "estimate"},
        "learned on line + SJBF": {"predictor": "gaussier15", "backfill_order": "sjf"},
        "tang13: p85, selective": {"predictor": triple, "believe": "selective"},
        "PERFECT++": {"predictor": "exact", "backfill_order": "sjf"},
    }


def easypp(study: Study) -> list[Part]:
    """Mean bounded slowdown of each scheduler over shaken logs, its band, and the paired difference to EASY."""
    seeds = FEW_SHAKES if study.quick else SHAKES
    subjects = learnable(study)
    found: dict[str, dict[str, Array]] = {}
    accuracy: dict[str, dict[str, float]] = {}
    rows: list[list[Entry]] = []
    users: list[list[Entry]] = []
    claims: list[Claim] = []
    for subject in subjects:
        named = variants(subject.workload)
        what = f"{subject.name}: EASY++"
        axes = [{"trace": str(subject.file.resolve()), **words} for words in named.values()]
        table = study.cells(what, subject, axes, [{"shake": SHAKE}], seeds=seeds, trim="tsafrir06", by="user")
        cells = study.cells(what, subject, axes, [{"shake": SHAKE}], seeds=seeds, trim="tsafrir06")
        found[subject.name], accuracy[subject.name] = {}, {}
        by_class: dict[str, dict[str, float]] = {}
        for name, words in named.items():
            mine = _chosen(cells, words).sort("seed")
            values = mine["mean_bounded_slowdown"].to_numpy()
            found[subject.name][name] = values
            accuracy[subject.name][name] = float(np.mean(mine["mean_accuracy"].to_numpy())) if "predictor" in words else float("nan")
            band, base = percentile_band(values), found[subject.name]["EASY"]
            change = "" if name == "EASY" else _relative(values, base)
            wait, exact = float(mine["mean_wait"].to_numpy().mean()), accuracy[subject.name][name]
            told = f"{band.low:,.1f} to {band.high:,.1f}"
            line: list[Entry] = [subject.name, name, Value(band.mean, digits=1), told, change, Value(wait)]
            rows.append([*line, None if np.isnan(exact) else Value(exact, digits=3)])
            part = _chosen(table, words)
            by_class[name] = {
                kind: float(part.filter(part["group"] == kind)["mean_bounded_slowdown"].to_numpy().mean())
                for kind in CLASSES
                if (part["group"] == kind).any()
            }
            mine_by = [Value(by_class[name][kind], digits=1) if kind in by_class[name] else None for kind in CLASSES]
            users.append([subject.name, name, *mine_by])
        claims += _claims(subject.name, found[subject.name], by_class)

    def draw(axes: Axes, _row: int, column: int) -> None:
        mine = found[subjects[column].name]
        places = np.arange(len(mine))
        bands = [percentile_band(values) for values in mine.values()]
        means = np.array([band.mean for band in bands])
        spread = np.array([[band.mean - band.low for band in bands], [band.high - band.mean for band in bands]])
        axes.bar(places, means, 0.7, color=drawing.GREY, edgecolor=drawing.EDGE, linewidth=0.5)
        axes.errorbar(places, means, np.maximum(spread, 0), fmt="none", ecolor="black", elinewidth=1, capsize=2)
        axes.set_xticks(places, list(mine), rotation=75, fontsize=6.5, ha="right")
        drawing.from_zero(axes)

    figure = drawing.panels([s.name for s in subjects], ["mean bounded slowdown"], draw, legend=False)
    columns = ["log", "scheduler", "bounded slowdown", "5th to 95th percentile", "against EASY", "wait (s)", "accuracy"]
    data: dict[str, list[object]] = {"log": [], "scheduler": [], "seed": [], "mean_bounded_slowdown": []}
    for log, by_name in found.items():
        for name, values in by_name.items():
            for seed, value in enumerate(values.tolist()):
                for column, entry in zip(data, (log, name, seed, value), strict=True):
                    data[column].append(entry)
    notes = [
        f"Submissions shaken by up to {SHAKE} s, {seeds} seeds, the same for all; the first 1 % of the jobs to end, and those that end "
        "after the last arrival, are not measured. The difference to EASY is taken seed by seed, with its 90 % confidence interval.",
        "SJBF: shortest predicted job backfilled first. Heavy users are those that make up half of the processor time, light ones the "
        "last tenth.",
    ]
    return [
        Chart("easypp", figure, "Mean and band over shaken logs.", data),
        Table("easypp", "EASY++ and its parts", columns, rows),
        Table("easypp-users", "Mean bounded slowdown by class of user", ["log", "scheduler", *CLASSES], users),
        Claims(claims),
        Notes(notes),
    ]


def _chosen(table: Any, words: Mapping[str, Any]) -> Any:
    """The rows of one scheduler."""
    import polars as pl

    settings = {"predictor": None, "believe": "regular", "backfill_order": None, "correction": "tsafrir07"} | dict(words)
    chosen = table
    for name, value in settings.items():
        chosen = chosen.filter(pl.col(name).is_null() if value is None else pl.col(name) == value)
    return chosen


def _relative(values: Array, base: Array) -> str:
    away = paired_difference(values, base) if len(values) > 1 else mean_interval(np.array([values[0] - base[0]] * 2))
    middle = float(base.mean())
    return f"{100 * away.mean / middle:+.1f} % (+-{100 * away.half_width / middle:.1f})"


def _claims(log: str, found: Mapping[str, Array], by_class: Mapping[str, Mapping[str, float]]) -> list[Claim]:
    """What EASY++'s authors say of it, as far as it can be said here."""
    easy, better, bound = (float(found[name].mean()) for name in ("EASY", "EASY++", "PERFECT++"))
    claims: list[Claim] = [
        (f"{log}: EASY++ has a lower slowdown than EASY", better < easy, f"{easy:,.1f} to {better:,.1f}"),
        (f"{log}: PERFECT++ is the bound", bound <= min(float(v.mean()) for v in found.values()), f"{bound:,.1f}"),
    ]
    losers = [kind for kind, value in by_class["EASY++"].items() if value > by_class["EASY"][kind]]
    told = ", ".join(f"{kind} {by_class['EASY'][kind]:,.1f} to {value:,.1f}" for kind, value in by_class["EASY++"].items())
    claims.append((f"{log}: no class of users loses by EASY++", not losers, told))
    return claims


ITEMS: Sequence[Item] = (Item("tang13", "easypp", "Beyond the paper: EASY++ beside EASY", easypp),)
