"""The tables of the coverage of intervals, made from the results of `validation/coverage.py`, and of their scopes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

from walltime.metrics.intervals import KINDS, LEVEL, SCOPES, SHOWN_LEVEL, IntervalKind

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("coverage.json")
NAMES = {
    "replications.mean": "mean over runs",
    "replications.difference": "difference, paired by seed",
    "replications.band": "range of single runs",
    "shaken.range": "range of shaken copies",
    "runs.percentiles": "percentiles of the runs",
    "shaken.copy": "one more shaken copy",
    "weeks": "mean over weeks",
    "weeks.logs": "range of resampled logs",
    "start-times": "start time",
    "suggestion.risk": "risk of being killed",
    "bootstrap": "bootstrap over users",
    "batch-means": "batch means",
    "batch-means.published": "batch means of mualem01",
    "benchmark.total": "total of a suite",
    "benchmark.behind": "distance from the best",
    "tuning.change": "change by a fitted order",
    "learn.windows": "change by an agent",
    "learn.seeds": "change by one more agent",
}
"""The names of the kinds of intervals in the documentation; names of experiments have a further word after a colon."""


def coverage(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown: `summary`, `measured` or `apart`; or a note that it was not measured."""
    stored: Numbers = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    return _summary(stored) if what == "summary" else _rows(stored, meant=what == "measured")


def track_record(_: str = "") -> str:
    """The directions and intervals of predicted changes on synthetic sites, by agreement with the log."""
    stored: Numbers = json.loads(FILE.with_name("changes.json").read_text())
    rows, upper = [], ""
    for one in stored["classes"]:
        agreement = f"{one['least']}{f' to {upper}' if upper else ' and more'}" if one["least"] >= 0 else f"under {upper}"
        upper = str(one["least"])
        rows.append((agreement, *_judged([one["judged"]])))
    rows.append(("all", *_judged([one["judged"] for one in stored["classes"]])))
    head = (
        "rank correlation",
        "sites",
        "true change in the 90 % interval",
        "right directions: changes of 2 to 5 %",
        "changes of 5 to 20 %",
        "changes over 20 %",
        "all changes",
        "withheld directions",
    )
    return table(head, rows)


def _judged(classes: list[Numbers]) -> list[str]:
    """The sites, intervals that hold, right directions and withheld ones of some classes."""
    sites, inside, changes = (sum(one[name] for one in classes) for name in ("sites", "inside", "changes"))
    reported = [[counts[k] for one in classes if (counts := one["directions"][j])[0]] for j in range(3) for k in (1, 2)]
    sums = [sum(column) for column in reported]
    sizes = [f"{right} of {cases}" if cases else "withheld" for right, cases in zip(sums[::2], sums[1::2], strict=True)]
    withheld = sum(cases for one in classes for known, _, cases in one["directions"] if not known)
    answers = f"{sum(sums[::2])} of {sum(sums[1::2])}"
    return [f"{sites}", f"{inside} of {changes} ({100 * inside / changes:.0f} %)", *sizes, answers, f"{withheld}"]


def _summary(stored: Numbers) -> str:
    """The range of the measured shares of each kind of interval at each nominal level, over the cases that it claims."""
    cases: dict[tuple[str, str, float], list[Numbers]] = {}
    for name, found in stored.items():
        for case in found["cases"]:
            if case["meant"]:
                cases.setdefault((NAMES[name.partition(":")[0]], found["of_what"], case["nominal"]), []).append(case)
    rows = []
    for (kind, scope, nominal), several in cases.items():
        shares = [case["measured"] for case in several if case["measured"] is not None]
        ends = [f"{100 * end(shares):.0f}" for end in (min, max) if shares]
        withheld = sum(case["withheld"] for case in several) / sum(case["trials"] + case["withheld"] for case in several)
        measured = " to ".join(dict.fromkeys(ends))
        rows.append((kind, scope, f"{100 * nominal:.0f}", measured, f"{len(several)}", f"{100 * withheld:.0f} %" if withheld else ""))
    return table(("interval", "scope", "nominal, %", "measured, %", "cases", "withheld"), rows)


def _rows(stored: Numbers, *, meant: bool) -> str:
    """The cases that an interval claims, or those that it might be taken for."""
    rows = [
        (NAMES[name.partition(":")[0]], found["of_what"], found["command"], case["case"], *_shares(case))
        for name, found in stored.items()
        for case in found["cases"]
        if case["meant"] == meant
    ]
    return table(("interval", "scope", "command", "case", "nominal, %", "measured, %", "intervals", "withheld"), rows)


def _shares(case: Numbers) -> tuple[str, ...]:
    measured = "" if case["measured"] is None else f"{100 * case['measured']:.0f} ± {100 * case['error']:.{_digits(case['error'])}f}"
    total = case["trials"] + case["withheld"]
    withheld = f"{100 * case['withheld'] / total:.0f} %: {case['why'][0]}" if case["withheld"] else ""
    return f"{100 * case['nominal']:.0f}", measured, f"{case['trials']:,}", withheld


def _digits(error: float) -> int:
    return 1 if error < 0.01 else 0


def kinds(_: str = "") -> str:
    """Every declared kind of interval."""
    rows = []
    for name, kind in KINDS.items():
        rows.append((NAMES[name], kind.of, _level(kind), kind.method))
    return table(("interval", "scope", "level", "method"), rows)


def scopes(_: str = "") -> str:
    """Return the table of sources of variation."""
    return table(("scope", "meaning"), [(f"**{of}**", meaning) for of, meaning in SCOPES.items()])


def by_command(_: str = "") -> str:
    """Which interval the tables and pages of each command print."""
    commands = sorted({command for kind in KINDS.values() for command in kind.commands})
    rows = []
    for command in commands:
        several = [(name, kind) for name, kind in KINDS.items() if command in kind.commands]
        rows += [(f"`{command}`" if k == 0 else "", kind.of, _level(kind), NAMES[name]) for k, (name, kind) in enumerate(several)]
    return table(("command", "scope", "level", "interval"), rows)


def _level(kind: IntervalKind) -> str:
    return "printed with it" if kind.level is None else SHOWN_LEVEL if kind.level == LEVEL else f"{100 * kind.level:.0f} %"
