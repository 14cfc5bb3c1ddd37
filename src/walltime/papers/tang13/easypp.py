"""Beyond tang13: EASY++ and what it is made of, beside EASY, on shaken logs; who gains and who loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import percentile_band
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.shaken import METRIC, SHAKE, bars, difference, of_scheduler, seeds_by_column
from walltime.papers.study import Study
from walltime.papers.tang13.schemes import keys_of, learnable
from walltime.workload import Workload

Array = np.ndarray
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


@item("easypp")
def easypp(study: Study) -> list[Part]:
    """Beyond the paper: EASY++ beside EASY."""
    seeds = FEW_SHAKES if study.quick else SHAKES
    subjects = learnable(study)
    by_log: dict[str, dict[str, Array]] = {}
    rows: list[list[Entry]] = []
    users: list[list[Entry]] = []
    claims = Claims()
    for subject in subjects:
        named = variants(subject.workload)
        axes = [{"trace": str(subject.file.resolve()), **words} for words in named.values()], [{"shake": SHAKE}]
        by_user, cells = (
            study.cells(f"{subject.name}: EASY++", subject, *axes, seeds=seeds, trim="tsafrir06", by=by) for by in ("user", None)
        )
        mine = {name: of_scheduler(cells, words) for name, words in named.items()}
        by_log[subject.name] = {name: part[METRIC].to_numpy() for name, part in mine.items()}
        by_class: dict[str, dict[str, float]] = {}
        for name, words in named.items():
            values = by_log[subject.name][name]
            band = percentile_band(values)
            change = "" if name == "EASY" else difference(values, by_log[subject.name]["EASY"])
            wait, exact = (mine[name][column].mean() for column in ("mean_wait", "mean_accuracy"))
            line: list[Entry] = [
                subject.name,
                name,
                Value(band.mean, digits=1),
                f"{band.low:,.1f} to {band.high:,.1f}",
                change,
                Value(wait),
            ]
            rows.append([*line, Value(exact, digits=3) if "predictor" in words else None])
            part = of_scheduler(by_user, words)
            of_class = {kind: part.filter(part["group"] == kind)[METRIC] for kind in CLASSES}
            by_class[name] = {kind: float(measured.mean()) for kind, measured in of_class.items() if len(measured)}
            mine_by = [Value(by_class[name][kind], digits=1) if kind in by_class[name] else None for kind in CLASSES]
            users.append([subject.name, name, *mine_by])
        claims += _claims(subject.name, by_log[subject.name], by_class)

    def draw(axes: Axes, _row: int, column: int) -> None:
        bars(axes, by_log[subjects[column].name])

    figure = drawing.panels([s.name for s in subjects], ["mean bounded slowdown"], draw, legend=False)
    columns = ["log", "scheduler", "bounded slowdown", "5th to 95th percentile", "against EASY", "wait (s)", "accuracy"]
    notes = [
        f"Submissions shaken by up to {SHAKE} s, {seeds} seeds, the same for all; the first 1 % of the jobs to end, and those that end "
        "after the last arrival, are not measured. The difference to EASY is taken seed by seed, with its 90 % confidence interval.",
        "SJBF: shortest predicted job backfilled first. Heavy users are those that make up half of the processor time, light ones the "
        "last tenth.",
    ]
    return [
        Chart("easypp", figure, "Mean and band over shaken logs.", seeds_by_column(by_log)),
        Table("easypp", "EASY++ and its parts", columns, rows),
        Table("easypp-users", "Mean bounded slowdown by class of user", ["log", "scheduler", *CLASSES], users),
        claims,
        Notes(notes),
    ]


def _claims(log: str, gains: Mapping[str, Array], by_class: Mapping[str, Mapping[str, float]]) -> Claims:
    """What EASY++'s authors say of it, as far as it can be said here."""
    easy, better, bound = (float(gains[name].mean()) for name in ("EASY", "EASY++", "PERFECT++"))
    claims = Claims(
        (f"{log}: EASY++ has a lower slowdown than EASY", better < easy, f"{easy:,.1f} to {better:,.1f}"),
        (f"{log}: PERFECT++ is the bound", bound <= min(float(v.mean()) for v in gains.values()), f"{bound:,.1f}"),
    )
    losers = [kind for kind, value in by_class["EASY++"].items() if value > by_class["EASY"][kind]]
    evidence = ", ".join(f"{kind} {by_class['EASY'][kind]:,.1f} to {value:,.1f}" for kind, value in by_class["EASY++"].items())
    claims.add(f"{log}: no class of users loses by EASY++", not losers, evidence)
    return claims
