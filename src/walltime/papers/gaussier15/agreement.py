"""gaussier15: every triple, and how many of the authors' published metrics ours equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.gaussier15.published import NAMES, published_metrics
from walltime.papers.gaussier15.triples import FCFS, MEASURES, SJBF, Measured, Triple, measure, subjects_with_users, triples
from walltime.papers.item import Item
from walltime.papers.results import Chart, Claim, Claims, Entry, Part, Table, Value
from walltime.papers.study import Study

Array = np.ndarray
EQUAL = 1e-9
WITHIN = (0.001, 0.01, 0.05)
"""Relative deviations."""
Published = Mapping[tuple[str, ...], Mapping[str, float]]


def agreement(study: Study) -> list[Part]:
    """The deterministic triples one by one, all of them counted, and every row as data."""
    chosen = triples(study.quick)
    subjects = subjects_with_users(study)
    rows: list[list[Entry]] = []
    counts: list[list[Entry]] = []
    claims: list[Claim] = []
    bounded: dict[str, dict[str, Array]] = {}
    data: dict[str, list[object]] = {
        name: [] for name in ("log", *NAMES, *MEASURES, *(f"published {name}" for name in MEASURES), "accuracy")
    }
    for subject in subjects:
        ours, published = measure(study, subject, chosen), published_metrics(subject)
        for triple, mine in zip(chosen, ours, strict=True):
            printed = published.get(triple.key, {})
            if not triple.is_learned:
                rows.append([subject.name, triple.label, *(Value(mine[name], printed.get(name), EQUAL, digits=2) for name in MEASURES)])
            line = [subject.name, *triple.key, *(mine[name] for name in MEASURES), *(printed.get(name) for name in MEASURES)]
            for column, entry in zip(data.values(), [*line, mine.get("mean_accuracy")], strict=True):
                column.append(entry)
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
    title = "Triples whose average equals the published one"
    return [
        Chart("triples", figure, "Mean bounded slowdown of all triples, by the order in which jobs are backfilled.", data),
        Table("triples-deterministic", "Triples in which nothing is learned by regression", ["log", "scheduler", *MEASURES.values()], rows),
        Table("triples-equal", title, columns, counts, "Each column contains the one before it."),
        Claims(claims),
    ]


def _counts(log: str, chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, learned: bool) -> list[list[Entry]]:
    """How many of the learned, or of the other, triples are equal, or nearly so, in each measure."""
    found: list[list[Entry]] = []
    for name, what in MEASURES.items():
        away = deviations(chosen, ours, published, name, learned)
        if len(away):
            numbers = [int((away <= limit).sum()) for limit in (EQUAL, *WITHIN)]
            found.append([log, "learned" if learned else "deterministic", what, len(away), *numbers])
    return found


def deviations(chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, name: str, learned: bool) -> Array:
    """The relative deviations (float64, at least 0) of this measure, over the triples that have a published value."""
    away = []
    for triple, mine in zip(chosen, ours, strict=True):
        printed = published.get(triple.key, {}).get(name)
        if printed and triple.is_learned == learned:
            away.append(abs(mine[name] / printed - 1))
    return np.array(away, np.float64)


def _claims(log: str, chosen: Sequence[Triple], ours: Sequence[Measured], published: Published) -> list[Claim]:
    if not published:
        return []
    fixed, learned = (deviations(chosen, ours, published, "avgbsld", kind) for kind in (False, True))
    told = f"{int((learned <= EQUAL).sum())} of {len(learned)} equal to 9 digits, {int((learned <= 0.01).sum())} within 1 %"
    return [
        (f"{log}: every deterministic triple equals the published one", bool((fixed <= EQUAL).all()), f"{len(fixed)} triples"),
        (f"{log}: nearly all learned ones (99 %) do", bool(np.mean(learned <= EQUAL) >= 0.99), told),
    ]


ITEMS: Sequence[Item] = (Item("gaussier15", "triples", "Every triple, beside the published metrics", agreement),)
