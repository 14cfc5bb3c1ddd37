"""Beyond tang13: EASY++ and its parts compared with EASY on shaken logs; which users gain and which lose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from validation.paper_experiments.shaken import METRIC, SHAKE, band_entries, difference, draw_bands, seeds_by_column, shaken_runs
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.papers.tang13.schemes import keys_of

Array = np.ndarray
SHAKES, FEW_SHAKES = 25, 5
CLASSES = ("heavy", "medium", "light")


def variants(subject: Subject) -> dict[str, dict[str, Any]]:
    """Return the parameters of a campaign for each scheduler, by name."""
    triple = f"tang13:key={keys_of(subject)['triple']}"
    predicted = {"predictor": "tsafrir07", "predictions_for": "regular"}
    return {
        "EASY": {},
        "EASY + SJBF": {"backfill_order": "sjf"},
        "EASY + predictions": predicted,
        "EASY++": {**predicted, "backfill_order": "sjf"},
        "EASY++, at once to the estimate": {**predicted, "backfill_order": "sjf", "correction": "estimate"},
        "learned online + SJBF": {"predictor": "gaussier15", "backfill_order": "sjf"},
        "tang13: p85, selective": {"predictor": triple, "predictions_for": "selective"},
        "PERFECT++": {"predictor": "exact", "backfill_order": "sjf"},
    }


@item("easypp")
def easypp(study: Study) -> Parts:
    """Beyond the paper: EASY++ compared with EASY."""
    seeds = FEW_SHAKES if study.quick else SHAKES
    by_log: dict[str, dict[str, Array]] = {}
    rows: Rows = []
    users: Rows = []
    for subject in study.with_users:
        named = variants(subject)
        by_user, mine = (shaken_runs(study, "EASY++", subject, named, by=by, seeds=seeds, trim="tsafrir06") for by in ("user", None))
        slowdowns = by_log[subject.name] = {name: part[METRIC].to_numpy() for name, part in mine.items()}
        by_class: dict[str, dict[str, float]] = {}
        for name, words in named.items():
            change = "" if name == "EASY" else difference(slowdowns[name], slowdowns["EASY"])
            wait, exact = (mine[name][column].mean() for column in ("mean_wait", "mean_accuracy"))
            line: list[Entry] = [subject.name, name, *band_entries(slowdowns[name]), change, Value(wait)]
            rows.append([*line, Value(exact, digits=3) if "predictor" in words else None])
            part = by_user[name]
            measured = {kind: part.filter(part["group"] == kind)[METRIC] for kind in CLASSES}
            means = by_class[name] = {kind: float(values.mean()) for kind, values in measured.items() if len(values)}
            users.append([subject.name, name, *(Value(means[kind], digits=1) if kind in means else None for kind in CLASSES)])
        yield from _claims(subject.name, slowdowns, by_class)
    data, caption = seeds_by_column(by_log), "Mean and band over shaken logs."
    yield drawing.chart("easypp", caption, data, by_log, "mean bounded slowdown", draw_bands, legend=False)
    columns = ["log", "scheduler", "bounded slowdown", "5th to 95th percentile", "against EASY", "wait (s)", "accuracy"]
    yield Table("easypp", "EASY++ and its parts", columns, rows)
    yield Table("easypp-users", "Mean bounded slowdown by class of user", ["log", "scheduler", *CLASSES], users)
    yield (
        f"Submissions shaken by up to {SHAKE} s, {seeds} seeds, the same for all; the first 1 % of the jobs to end, and jobs that end "
        "after the last arrival, are not measured. The difference to EASY is taken seed by seed, with its 90 % confidence interval."
    )
    yield "SJBF: shortest predicted job backfilled first. Heavy users make up half of the processor time, light ones the last tenth."


def _claims(log: str, gains: Mapping[str, Array], by_class: Mapping[str, Mapping[str, float]]) -> Iterator[Claim]:
    """Yield the claims of EASY++'s authors, as far as they can be tested here."""
    easy, better, bound = (float(gains[name].mean()) for name in ("EASY", "EASY++", "PERFECT++"))
    yield Claim(f"{log}: EASY++ has a lower slowdown than EASY", better < easy, f"{easy:,.1f} to {better:,.1f}")
    yield Claim(f"{log}: PERFECT++ is the bound", bound <= min(float(v.mean()) for v in gains.values()), f"{bound:,.1f}")
    losers = [kind for kind, value in by_class["EASY++"].items() if value > by_class["EASY"][kind]]
    evidence = ", ".join(f"{kind} {by_class['EASY'][kind]:,.1f} to {value:,.1f}" for kind, value in by_class["EASY++"].items())
    yield Claim(f"{log}: no class of users loses by EASY++", not losers, evidence)
