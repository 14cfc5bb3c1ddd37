"""Beyond the paper: the best triples of a log on shaken copies of it, with EASY, EASY++ and the paper's choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import paired_difference, percentile_band
from walltime.papers import drawing
from walltime.papers.gaussier15.best import slowdowns
from walltime.papers.gaussier15.triples import E_LOSS, EASY, EASY_PP, Triple, subjects_with_users, triples
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.shaken import METRIC, SHAKE, bars, difference, of_scheduler, seeds_by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

Array = np.ndarray
SHAKES, FEW_SHAKES = 20, 3
BEST, FEW_BEST = 20, 3
METHOD = (
    f"Submissions are shaken by up to {SHAKE} s. Differences are taken seed by seed, with their 90 % confidence intervals. A triple is "
    "chosen as the best of thousands on one log, so part of its lead there is luck."
)
NAMES = {EASY: "EASY", EASY_PP: "EASY++", E_LOSS: "the paper's choice"}


@item("shaken")
def shaken(study: Study) -> list[Part]:
    """Beyond the paper: do the best triples stay the best?"""
    subjects = subjects_with_users(study)
    rows: list[list[Entry]] = []
    claims = Claims()
    by_log: dict[str, dict[Triple, Array]] = {}
    for subject in subjects:
        as_recorded = slowdowns(study, subject, triples(study.quick))
        learned = sorted((t for t in triples(study.quick) if t.is_learned), key=lambda triple: as_recorded[triple.key])
        best = learned[: FEW_BEST if study.quick else BEST]
        values = by_log[subject.name] = _simulate(study, subject, list(dict.fromkeys((*best, E_LOSS, EASY_PP, EASY))))
        firsts = np.array([np.argmin(column) for column in np.array(list(values.values())).T])
        for place, (triple, mine) in enumerate(values.items()):
            band = percentile_band(mine)
            line: list[Entry] = [subject.name, NAMES.get(triple, triple.label), Value(as_recorded[triple.key], digits=1)]
            line += [Value(band.mean, digits=1), f"{band.low:,.1f} to {band.high:,.1f}", int((firsts == place).sum())]
            rows.append([*line, *("" if triple == other else difference(mine, values[other]) for other in (best[0], EASY_PP, EASY))])
        claims += _claims(subject.name, best, values, firsts, as_recorded)

    def draw(axes: Axes, _row: int, column: int) -> None:
        values = by_log[subjects[column].name]
        bars(axes, {NAMES.get(triple, str(place)): mine for place, (triple, mine) in enumerate(values.items(), 1)})

    figure = drawing.panels([s.name for s in subjects], ["mean bounded slowdown"], draw, legend=False)
    data = seeds_by_column({log: {triple.label: mine for triple, mine in by_triple.items()} for log, by_triple in by_log.items()})
    columns = ["log", "scheduler", "as recorded", "shaken, mean", "5th to 95th percentile", "times best"]
    columns += ["against the best as recorded", "against EASY++", "against EASY"]
    seeds = FEW_SHAKES if study.quick else SHAKES
    return [
        Chart("shaken", figure, "Mean and band over shaken logs; the triples in the order of the log as recorded.", data),
        Table("shaken", "The best triples of the log, on shaken logs", columns, rows),
        claims,
        Notes([f"{seeds} seeds, the same for all. {METHOD}"]),
    ]


def _simulate(study: Study, subject: Subject, chosen: Sequence[Triple]) -> dict[Triple, Array]:
    """Mean bounded slowdown of each triple by seed."""
    axes = [{"trace": str(subject.file.resolve()), **triple.words} for triple in chosen]
    table = study.cells(f"{subject.name}: shaken", subject, axes, [{"shake": SHAKE}], seeds=FEW_SHAKES if study.quick else SHAKES)
    return {triple: of_scheduler(table, triple.words)[METRIC].to_numpy() for triple in chosen}


def _claims(log: str, best: Sequence[Triple], values: dict[Triple, Array], firsts: Array, as_recorded: dict[Any, float]) -> Claims:
    first, seeds = best[0], len(firsts)
    times = int((firsts == 0).sum())
    lead = as_recorded[best[0].key] / as_recorded[best[-1].key]
    evidence = f"best on {times} of {seeds}; as recorded it leads number {len(best)} by {100 * (1 - lead):.1f} %"
    means = {triple: float(mine.mean()) for triple, mine in values.items()}
    place = sorted(means.values()).index(means[first]) + 1
    claims = Claims(
        (f"{log}: the best triple stays the best on most shaken logs", times > seeds / 2, evidence),
        (f"{log}: the best triple has the lowest mean over shaken logs", place == 1, f"place {place} of {len(means)}"),
    )
    for triple, name in ((first, "the best triple"), (E_LOSS, "the paper's choice")):
        away = paired_difference(values[triple], values[EASY_PP])
        evidence = f"{difference(values[triple], values[EASY_PP])} against EASY++, {difference(values[triple], values[EASY])} against EASY"
        claims.add(f"{log}: {name} is better than EASY++ on shaken logs, beyond chance", bool(away.high < 0), evidence)
    return claims
