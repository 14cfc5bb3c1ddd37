"""Table V of zhang20, the formulas as they were meant, and all of them under EASY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics.confidence import mean_interval
from walltime.papers import drawing
from walltime.papers.item import Item
from walltime.papers.results import Chart, Claim, Claims, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.papers.zhang20.windows import AS_MEANT, FORMULAS, MEANT, measure, windows

QUICK_WINDOWS = 2
HALF_DIGIT = 0.005
"""The printed means have two decimals."""
Found = Mapping[str, np.ndarray]
"""The mean bounded slowdown of each window, by formula."""


def table_5(study: Study) -> list[Part]:
    """The five formulas in the dialect of the program, without and with backfilling."""
    rows: list[list[str | Value]] = []
    for subject in study.subjects:
        for backfilling in (False, True):
            found = run(study, subject, FORMULAS, backfilling, "printed", "rlscheduler")
            rows.append([subject.name, _word(backfilling), *(_beside(study, subject, backfilling, f, v) for f, v in found.items())])
    return [
        Table("t5", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *FORMULAS], rows, _note(study)),
        Claims(_claims_of_print(study)),
    ]


def as_meant(study: Study) -> list[Part]:
    """All formulas in the same dialect, with the waiting time as defined."""
    rows: list[list[str | Value]] = []
    claims: list[Claim] = []
    for subject in study.subjects:
        for backfilling in (False, True):
            found = run(study, subject, AS_MEANT, backfilling, "meant", "rlscheduler")
            rows.append([subject.name, _word(backfilling), *(Value(float(v.mean()), digits=2) for v in found.values())])
            wrong = run(study, subject, {name: FORMULAS[name] for name in MEANT}, backfilling, "printed", "rlscheduler")
            for name, values in wrong.items():
                said = f"{subject.name}, {_word(backfilling)}: {name} is better with its waiting time than as printed"
                better = float(found[name].mean()) < float(values.mean())
                claims.append((said, better, f"{found[name].mean():,.2f} and {values.mean():,.2f}"))
            agent = study.printed.tables["T5"].value("agent", log=subject.name, backfilling=_word(backfilling))
            if agent is not None:
                best = min(found, key=lambda name: float(found[name].mean()))
                said = f"{subject.name}, {_word(backfilling)}: the agent is better than every formula, the ones that are not printed too"
                claims.append((said, agent < float(found[best].mean()), f"{agent:,.2f}, {best} {found[best].mean():,.2f}"))
    return [
        Table("meant", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *AS_MEANT], rows, _note(study)),
        Claims(claims),
    ]


def under_easy(study: Study) -> list[Part]:
    """All formulas as queue orders of EASY as the papers define it, with paired intervals over the windows."""
    rows: list[list[str | Value]] = []
    means: dict[str, dict[str, list[float]]] = {}
    for subject in study.subjects:
        found = run(study, subject, AS_MEANT, True, "meant", "papers")
        programs = run(study, subject, AS_MEANT, True, "meant", "rlscheduler")
        means[subject.name] = {"rlscheduler with backfilling": _means(programs), "EASY": _means(found)}
        for name, values in found.items():
            gain = mean_interval(values - found["fcfs"]) if len(values) > 1 and name != "fcfs" else None
            told = "" if gain is None else f"{gain.low:+,.1f} to {gain.high:+,.1f}"
            rows.append([subject.name, name, Value(float(values.mean()), digits=2), told, Value(float(programs[name].mean()), digits=2)])
    columns = ["log", "order", "EASY", "minus EASY with FCFS (90 %)", "rlscheduler with backfilling"]

    def draw(axes: Axes, row: int, column: int) -> None:
        drawing.bars(axes, list(means.values())[column], list(AS_MEANT))
        drawing.from_zero(axes)
        axes.tick_params(axis="x", rotation=45)

    data: dict[str, list[str | float]] = {
        "log": [name for name, ways in means.items() for _ in ways],
        "backfilling": [way for ways in means.values() for way in ways],
    }
    data |= {name: [values[place] for ways in means.values() for values in ways.values()] for place, name in enumerate(AS_MEANT)}
    caption = "Mean bounded slowdown, mean over the windows, by queue order: as the program backfills, and under EASY."
    return [
        Chart("easy-orders", drawing.panels(list(means), ["mean bounded slowdown"], draw), caption, data),
        Table("easy", "Mean bounded slowdown under EASY, by queue order", columns, rows, _note(study)),
        Notes(
            [
                "The difference is paired: of the same window under both orders. The windows overlap in part, and each begins on an empty "
                "machine, so the intervals are narrower than they would be for other jobs."
            ]
        ),
    ]


def run(
    study: Study, subject: Subject, formulas: Sequence[str] | Mapping[str, object], backfilling: bool, kind: str, dialect: str
) -> Found:
    """The mean bounded slowdowns of the windows under each formula; simulations that are stored are not repeated."""
    count = len(windows(subject.workload))
    count = min(count, QUICK_WINDOWS) if study.quick else count
    common = {"file": str(subject.file.resolve()), "sha256": subject.workload.origin.sha256, "dialect": dialect, "backfilling": backfilling}
    tasks = [common | {"as": kind, "formula": name, "window": number} for name in formulas for number in range(count)]
    found = study.kept(f"{subject.name}: {_word(backfilling)}, {dialect}", tasks, measure)
    values = np.array([one["slowdown"] for one in found]).reshape(-1, count)
    return dict(zip(formulas, values, strict=True))


def _means(found: Found) -> list[float]:
    return [float(values.mean()) for values in found.values()]


def _beside(study: Study, subject: Subject, backfilling: bool, formula: str, values: np.ndarray) -> Value:
    printed = None
    if subject.kind == "paper" and not study.quick:
        printed = study.printed.tables["T5"].value(formula, log=subject.name, backfilling=_word(backfilling))
    within = None if printed is None else HALF_DIGIT / printed
    return Value(float(values.mean()), printed, within, digits=2)


def _claims_of_print(study: Study) -> list[Claim]:
    claims: list[Claim] = []
    for row in study.printed.tables["T5"].rows:
        best = min(FORMULAS, key=lambda name: float(row[name]))
        said = f"{row['log']}, {row['backfilling']}, as printed: the agent is better than the five formulas"
        claims.append((said, row["agent"] < row[best], f"{row['agent']:,.2f}, {best} {row[best]:,.2f}"))
    return claims


def _word(backfilling: bool) -> str:
    return "with" if backfilling else "without"


def _note(study: Study) -> str:
    return f"{QUICK_WINDOWS} windows of the ten." if study.quick else ""


ITEMS = (
    Item("zhang20", "T5", "Table V: formulas without and with backfilling", table_5),
    Item("zhang20", "meant", "The formulas as they were meant, and others", as_meant),
    Item("zhang20", "easy", "The formulas as queue orders of EASY", under_easy),
)
