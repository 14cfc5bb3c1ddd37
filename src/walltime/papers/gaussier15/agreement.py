"""gaussier15: every triple, how many of the published metrics ours equal, and what the authors may have meant."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.gaussier15.triples import (
    CORRECTORS,
    EASY,
    EASY_PP,
    FCFS,
    MEASURES,
    SJBF,
    Measured,
    Triple,
    learned,
    measure,
    subjects_with_users,
    triples,
)
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.predictors.gaussier15 import Gaussier15

Array = np.ndarray
EQUAL = 1e-9
WITHIN = (0.001, 0.01, 0.05)
"""Relative deviations."""
Published = Mapping[tuple[str, ...], Mapping[str, float]]


@item("triples")
def agreement(study: Study) -> list[Part]:
    """Every triple, beside the published metrics."""
    chosen = triples(study.quick)
    subjects = subjects_with_users(study)
    rows: list[list[Entry]] = []
    counts: list[list[Entry]] = []
    claims = Claims()
    bounded: dict[str, dict[str, Array]] = {}
    lines: list[tuple[object, ...]] = []
    for subject in subjects:
        ours, published = measure(study, subject, chosen), published_metrics(subject)
        for triple, mine in zip(chosen, ours, strict=True):
            printed = published.get(triple.key, {})
            if not triple.is_learned:
                rows.append([subject.name, triple.label, *(Value(mine[name], printed.get(name), EQUAL, digits=2) for name in MEASURES)])
            both = [*(mine[name] for name in MEASURES), *(printed.get(name) for name in MEASURES)]
            lines.append((subject.name, *triple.key, *both, mine.get("mean_accuracy")))
        counts += [count for kind in (False, True) for count in _counts(subject.name, chosen, ours, published, kind)]
        claims += _claims(subject.name, chosen, ours, published)
        bounded[subject.name] = {}
        for name, policy in (("shortest first", SJBF), ("in order", FCFS)):
            all_ours = [row["avgbsld"] for t, row in zip(chosen, ours, strict=True) if t.policy == policy]
            theirs = [published[t.key]["avgbsld"] for t in chosen if t.policy == policy and t.key in published]
            bounded[subject.name] |= {name: np.sort(all_ours), f"{name}, published": np.sort(theirs)}

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, (name, values) in enumerate(bounded[subjects[column].name].items()):
            if len(values):
                drawing.line(axes, np.arange(1, len(values) + 1), values, k, name)

    figure = drawing.panels([s.name for s in subjects], ["mean bounded slowdown"], draw, x="triples, from the best")
    columns = ["log", "triples", "measure", "compared", "equal to 9 digits", *(f"within {100 * limit:g} %" for limit in WITHIN)]
    data = by_column(["log", *NAMES, *MEASURES, *(f"published {name}" for name in MEASURES), "accuracy"], lines)
    title = "Triples whose average equals the published one"
    return [
        Chart("triples", figure, "Mean bounded slowdown of all triples, by the order in which jobs are backfilled.", data),
        Table("triples-deterministic", "Triples in which nothing is learned by regression", ["log", "scheduler", *MEASURES.values()], rows),
        Table("triples-equal", title, columns, counts, "Each column contains the one before it."),
        claims,
    ]


def _counts(log: str, chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, learned: bool) -> list[list[Entry]]:
    """How many of the learned, or of the other, triples are equal, or nearly so, in each measure."""
    rows: list[list[Entry]] = []
    for name, what in MEASURES.items():
        away = deviations(chosen, ours, published, name, learned)
        if len(away):
            numbers = [int((away <= limit).sum()) for limit in (EQUAL, *WITHIN)]
            rows.append([log, "learned" if learned else "deterministic", what, len(away), *numbers])
    return rows


def deviations(chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, name: str, learned: bool) -> Array:
    """The relative deviations (float64, at least 0) of this measure, over the triples that have a published value."""
    away = []
    for triple, mine in zip(chosen, ours, strict=True):
        printed = published.get(triple.key, {}).get(name)
        if printed and triple.is_learned == learned:
            away.append(abs(mine[name] / printed - 1))
    return np.array(away, np.float64)


def _claims(log: str, chosen: Sequence[Triple], ours: Sequence[Measured], published: Published) -> Claims:
    if not published:
        return Claims()
    fixed, learned = (deviations(chosen, ours, published, "avgbsld", kind) for kind in (False, True))
    evidence = f"{int((learned <= EQUAL).sum())} of {len(learned)} equal to 9 digits, {int((learned <= 0.01).sum())} within 1 %"
    return Claims(
        (f"{log}: every deterministic triple equals the published one", bool((fixed <= EQUAL).all()), f"{len(fixed)} triples"),
        (f"{log}: nearly all learned ones (99 %) do", bool(np.mean(learned <= EQUAL) >= 0.99), evidence),
    )


NAMES = ("scheduler", "corrector", "predictor", "prightside", "prightparam", "pleftside", "pleftparam", "pthreshold", "pweight")
"""Columns that name a triple; right is a prediction that is too long."""


def published_metrics(subject: Subject) -> dict[tuple[str, ...], Mapping[str, float]]:
    """The published values by triple (`Triple.key`); without those that are missing, or measured on other jobs than the subject's.

    The file is looked for beside the log, and in the folder `WALLTIME_PUBLISHED`, if set, or `sc15` in it. Empty without one.
    """
    file = _find(subject)
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


def _find(subject: Subject) -> Path | None:
    name = subject.facts.get("metrics")
    if name is None or subject.kind != PAPER:
        return None
    folder = os.environ.get("WALLTIME_PUBLISHED")
    places = [subject.file.parent, *([Path(folder), Path(folder) / "sc15"] if folder else [])]
    return next((place / name for place in places if (place / name).is_file()), None)


READINGS: Mapping[str, Mapping[str, str]] = {
    "as the program does": {},
    "the runtimes of the user's last jobs": {"features": "meant"},
    "the request before a job has ended": {"untaught": "request"},
    "negative weights are 0": {"negative_weights": "zero"},
    "all three": {"features": "meant", "untaught": "request", "negative_weights": "zero"},
}
SCHEMES = {
    "E-Loss": Gaussier15(),
    "square, 5 + log(m/r)": Gaussier15(under="square", over_coefficient=100.0, weight="log_n_over_r"),
}
"""The paper's choice, and one whose weights are negative for long jobs."""


@item("readings")
def readings(study: Study) -> list[Part]:
    """Beyond the paper: as run, and as may have been meant."""
    rows: list[list[Entry]] = []
    for subject in subjects_with_users(study):
        lines: list[tuple[str, str, str, Triple]] = [("EASY", "", "", EASY), ("EASY++", "", "tsafrir", EASY_PP)]
        for name, scheme in SCHEMES.items():
            for what, options in READINGS.items():
                for corrector in CORRECTORS if not study.quick else ("tsafrir",):
                    triple = learned("easy_plus_plus_scheduler", corrector, replace(scheme, **options))  # type: ignore[arg-type]
                    lines.append((name, what, corrector, triple))
        results = measure(study, subject, [triple for *_, triple in lines])
        for (name, what, corrector, triple), mine in zip(lines, results, strict=True):
            accuracy = Value(mine["mean_accuracy"], digits=3) if "mean_accuracy" in mine else None
            measured: list[Entry] = [accuracy, Value(mine["avgft"]), Value(mine["avgbsld"], digits=1), Value(mine["maxbsld"])]
            shown = CORRECTORS.get(corrector, "") if triple.policy == SJBF else ""
            rows.append([subject.name, name, what, shown, *measured])
    columns = ["log", "scheduler", "reading", "correction", "accuracy", "mean response (s)", "mean bounded slowdown", "largest"]
    note = "The learned ones backfill the shortest first. Accuracy: the smaller of runtime and prediction over the larger."
    title = "What the authors may have meant, and what the difference does"
    return [Table("readings", title, columns, rows, note), Notes([NOTE])]


NOTE = (
    "The program takes, for the runtimes of the user's last three jobs, the time since these were submitted; it predicts 1 s until a job "
    "has ended; and it learns the opposite from jobs whose weight is negative."
)
