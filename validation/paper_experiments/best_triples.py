"""Beyond the paper: the best triples of a log on shaken copies of it, with EASY, EASY++ and the paper's choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from validation.paper_experiments.shaken import METRIC, SHAKE, band_entries, difference, draw_bands, seeds_by_column, shaken_runs
from walltime.metrics import paired_difference
from walltime.papers import drawing
from walltime.papers.gaussier15 import E_LOSS, EASY, EASY_PP, Triple, slowdowns, triples
from walltime.papers.items import item
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study

Array = np.ndarray
SHAKES, FEW_SHAKES = 20, 3
BEST, FEW_BEST = 20, 3
METHOD = (
    f"Submissions are shaken by up to {SHAKE} s. Differences are taken seed by seed, with their 90 % confidence intervals. A triple is "
    "chosen as the best of thousands on one log, so part of its lead there is luck."
)
NAMES = {EASY: "EASY", EASY_PP: "EASY++", E_LOSS: "the paper's choice"}


@item("shaken")
def shaken(study: Study) -> Parts:
    """Beyond the paper: do the best triples stay the best?"""
    seeds = FEW_SHAKES if study.quick else SHAKES
    rows: Rows = []
    by_log: dict[str, dict[str, Array]] = {}
    panels: dict[str, dict[str, Array]] = {}
    for subject in study.with_users:
        recorded = slowdowns(study, subject, triples(study.quick))
        learned = sorted((t for t in triples(study.quick) if t.is_learned), key=lambda triple: recorded[triple.key])
        best = learned[: FEW_BEST if study.quick else BEST]
        words = {triple: triple.words for triple in dict.fromkeys((*best, E_LOSS, EASY_PP, EASY))}
        runs = shaken_runs(study, "shaken", subject, words, seeds=seeds)
        values = {triple: part[METRIC].to_numpy() for triple, part in runs.items()}
        firsts = np.argmin(list(values.values()), axis=0)
        for place, (triple, mine) in enumerate(values.items()):
            head: list[Entry] = [subject.name, NAMES.get(triple, triple.label), Value(recorded[triple.key], digits=1)]
            against = ("" if triple == other else difference(mine, values[other]) for other in (best[0], EASY_PP, EASY))
            rows.append([*head, *band_entries(mine), int((firsts == place).sum()), *against])
        by_log[subject.name] = {triple.label: mine for triple, mine in values.items()}
        panels[subject.name] = {NAMES.get(triple, str(place)): mine for place, (triple, mine) in enumerate(values.items(), 1)}
        yield from _claims(subject.name, best, values, firsts, 1 - recorded[best[0].key] / recorded[best[-1].key])
    columns = ["log", "scheduler", "as recorded", "shaken, mean", "5th to 95th percentile", "times best"]
    columns += ["against the best as recorded", "against EASY++", "against EASY"]
    caption = "Mean and band over shaken logs; the triples in the order of the log as recorded."
    yield drawing.chart("shaken", caption, seeds_by_column(by_log), panels, "mean bounded slowdown", draw_bands, legend=False)
    yield Table("shaken", "The best triples of the log, on shaken logs", columns, rows)
    yield f"{seeds} seeds, the same for all. {METHOD}"


def _claims(log: str, best: Sequence[Triple], values: Mapping[Triple, Array], firsts: Array, lead: float) -> Iterator[Claim]:
    """Yield the claims on one log; `lead`: by which share the best triple is below the last of the best on the log as recorded."""
    first, seeds = best[0], len(firsts)
    times = int((firsts == 0).sum())
    evidence = f"best on {times} of {seeds}; as recorded it leads number {len(best)} by {100 * lead:.1f} %"
    means = {triple: float(mine.mean()) for triple, mine in values.items()}
    place = sorted(means.values()).index(means[first]) + 1
    yield Claim(f"{log}: the best triple stays the best on most shaken logs", times > seeds / 2, evidence)
    yield Claim(f"{log}: the best triple has the lowest mean over shaken logs", place == 1, f"place {place} of {len(means)}")
    for triple, name in ((first, "the best triple"), (E_LOSS, "the paper's choice")):
        away = paired_difference(values[triple], values[EASY_PP])
        evidence = f"{difference(values[triple], values[EASY_PP])} against EASY++, {difference(values[triple], values[EASY])} against EASY"
        yield Claim(f"{log}: {name} is better than EASY++ on shaken logs, beyond chance", away.high < 0, evidence)
