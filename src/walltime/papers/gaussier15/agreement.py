"""gaussier15: every triple, how many of our metrics equal the published ones, and what the authors may have meant."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.gaussier15.triples import (
    FCFS,
    MEASURES,
    SJBF,
    Measured,
    Triple,
    measure,
    triples,
)
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Part, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject

Array = np.ndarray
EQUAL = 1e-9
WITHIN = (0.001, 0.01, 0.05)
"""Relative deviations."""
Published = Mapping[tuple[str, ...], Mapping[str, float]]


@item("triples")
def agreement(study: Study) -> list[Part]:
    """Every triple, with the published metrics."""
    chosen = triples(study.quick)
    rows: Rows = []
    counts: Rows = []
    claims = Claims()
    bounded: dict[str, dict[str, Array]] = {}
    lines: list[tuple[object, ...]] = []
    for subject in study.with_users:
        ours, published = measure(study, subject, chosen), published_metrics(subject)
        for triple, mine in zip(chosen, ours, strict=True):
            printed = published.get(triple.key, {})
            if not triple.is_learned:
                rows.append([subject.name, triple.label, *(Value(mine[name], printed.get(name), EQUAL, digits=2) for name in MEASURES)])
            both = [*(mine[name] for name in MEASURES), *(printed.get(name) for name in MEASURES)]
            lines.append((subject.name, *triple.key, *both, mine.get("mean_accuracy")))
        for kind, regression in (("deterministic", False), ("learned", True)):
            for name, title in MEASURES.items():
                away = deviations(chosen, ours, published, name, regression)
                if len(away):
                    counts.append([subject.name, kind, title, len(away), *(int((away <= limit).sum()) for limit in (EQUAL, *WITHIN))])
        if published:
            fixed, equal = (deviations(chosen, ours, published, "avgbsld", kind) <= EQUAL for kind in (False, True))
            claims.add(f"{subject.name}: every deterministic triple equals the published one", bool(fixed.all()), f"{len(fixed)} triples")
            within = int((deviations(chosen, ours, published, "avgbsld", True) <= 0.01).sum())
            evidence = f"{int(equal.sum())} of {len(equal)} equal to 9 digits, {within} within 1 %"
            claims.add(f"{subject.name}: nearly all learned ones (99 %) do", bool(np.mean(equal) >= 0.99), evidence)
        mine_by = bounded[subject.name] = {}
        for name, policy in (("shortest first", SJBF), ("in order", FCFS)):
            mine_by[name] = np.sort([row["avgbsld"] for t, row in zip(chosen, ours, strict=True) if t.policy == policy])
            theirs = [published[t.key]["avgbsld"] for t in chosen if t.policy == policy and t.key in published]
            mine_by[f"{name}, published"] = np.sort(theirs)

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        for k, (name, values) in enumerate(by_name.items()):
            if len(values):
                drawing.line(axes, np.arange(1, len(values) + 1), values, k, name)

    figure = drawing.panels(bounded, "mean bounded slowdown", draw, x="triples, from the best")
    columns = ["log", "triples", "measure", "compared", "equal to 9 digits", *(f"within {100 * limit:g} %" for limit in WITHIN)]
    data = by_column(["log", *NAMES, *MEASURES, *(f"published {name}" for name in MEASURES), "accuracy"], lines)
    title = "Triples whose average equals the published one"
    return [
        Chart("triples", figure, "Mean bounded slowdown of all triples, by the order in which jobs are backfilled.", data),
        Table("triples-deterministic", "Triples in which nothing is learned by regression", ["log", "scheduler", *MEASURES.values()], rows),
        Table("triples-equal", title, columns, counts, "Each column contains the one before it."),
        claims,
    ]


def deviations(chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, name: str, learned: bool) -> Array:
    """Return the relative deviations (float64, at least 0) of this measure, over the triples that have a published value."""
    pairs = [(mine[name], published.get(t.key, {}).get(name)) for t, mine in zip(chosen, ours, strict=True) if t.is_learned == learned]
    return np.array([abs(mine / printed - 1) for mine, printed in pairs if printed], np.float64)


NAMES = ("scheduler", "corrector", "predictor", "prightside", "prightparam", "pleftside", "pleftparam", "pthreshold", "pweight")
"""Columns that name a triple; right is a prediction that is too long."""


def published_metrics(subject: Subject) -> dict[tuple[str, ...], Mapping[str, float]]:
    """Return the published values by triple (`Triple.key`), without missing ones and ones measured on other jobs than the subject's.

    The file is searched in the folder of the log, and in the folder `WALLTIME_PUBLISHED`, if set, or `sc15` in it. Empty without a file.
    """
    name = subject.facts.get("metrics")
    if name is None or subject.kind != PAPER:
        return {}
    published = os.environ.get("WALLTIME_PUBLISHED")
    folders = [subject.file.parent, *([Path(published), Path(published) / "sc15"] if published else [])]
    file = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if file is None:
        return {}
    metrics: dict[tuple[str, ...], Mapping[str, float]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["length"] == str(len(subject.workload)):
                values = {name: float(row[name]) for name in MEASURES if row[name] != "NA"}
                if values:
                    metrics[tuple(row[name] for name in NAMES)] = values
    return metrics
