"""gaussier15: the triples as the program runs them, and as their authors may have meant them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from walltime.papers.gaussier15 import CORRECTORS, EASY, EASY_PP, SJBF, Triple, learned, measure
from walltime.papers.items import item
from walltime.papers.results import Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.predictors.gaussier15 import Gaussier15

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
def readings(study: Study) -> Parts:
    """Beyond the paper: as run, and as may have been meant."""
    rows: Rows = []
    lines: list[tuple[str, str, str, Triple]] = [("EASY", "", "", EASY), ("EASY++", "", "tsafrir", EASY_PP)]
    for name, scheme in SCHEMES.items():
        for reading, options in READINGS.items():
            for corrector in CORRECTORS if not study.quick else ("tsafrir",):
                triple = learned("easy_plus_plus_scheduler", corrector, replace(scheme, **options))  # type: ignore[arg-type]
                lines.append((name, reading, corrector, triple))
    for subject in study.with_users:
        results = measure(study, subject, [triple for *_, triple in lines])
        for (name, reading, corrector, triple), mine in zip(lines, results, strict=True):
            accuracy = Value(mine["mean_accuracy"], digits=3) if "mean_accuracy" in mine else None
            measured: list[Entry] = [accuracy, Value(mine["avgft"]), Value(mine["avgbsld"], digits=1), Value(mine["maxbsld"])]
            shown = CORRECTORS.get(corrector, "") if triple.policy == SJBF else ""
            rows.append([subject.name, name, reading, shown, *measured])
    columns = ["log", "scheduler", "interpretation", "correction", "accuracy", "mean response (s)", "mean bounded slowdown", "largest"]
    note = "The learned ones backfill the shortest first. Accuracy: the smaller of runtime and prediction over the larger."
    title = "What the authors may have meant, and its effect"
    yield Table("readings", title, columns, rows, note)
    yield (
        "As runtimes of the user's last three jobs, the program takes the time since these were submitted; it predicts 1 s until "
        "a job has ended; and it learns the opposite from jobs whose weight is negative."
    )
