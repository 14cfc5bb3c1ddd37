"""The suites and the leaderboards of the guide on benchmarks, with pictures; standings are what `validation/leaderboard.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from changes_figure import changes_figure
from performance_tables import table

from walltime.benchmark import SUITES, Standing, read_suite
from walltime.benchmark.tables import behind_cells
from walltime.metrics import Interval
from walltime.report.figure_files import figure_bytes

FILE = Path(__file__).with_name("leaderboard.json")
BEST = 12
"""Number of best schedulers shown, in addition to those without an order."""


def suites() -> str:
    """Return the table of suites with their contents."""
    rows = []
    for name in SUITES:
        suite = read_suite(name)
        jobs = ", ".join(f"{one.name} ({len(one.checksums)})" for one in suite.subjects)
        metrics = ", ".join(f"`{metric}`" for metric in suite.metrics)
        rows.append((f"`{name}` {suite.version}", suite.title, jobs, metrics, f"`{suite.definition[:12]}`"))
    return table(("suite", "about", "jobs (windows)", "metrics", "definition"), rows)


def standings(name: str, file: Path = FILE) -> str:
    """The leaderboard of a suite, or a note that it was not run."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if name not in stored:
        return "*Not run.*"
    found = stored[name]
    rows = []
    for place, one in enumerate(found["rows"]):
        if place >= BEST and "order=" in one["scheduler"]:
            continue
        total = one["total"]
        span = f"{number(total['mean'])} ({number(total['low'])} to {number(total['high'])})"
        above, behind = behind_cells(Standing(**one | {"behind": Interval(**one["behind"])}))
        won = f"{one['wins']} of {one['windows']}"
        wait = f"{one['totals']['mean_wait'] / 3600:.2f}"
        late = f"{one['totals']['p99_wait'] / 3600:.1f}"
        rows.append((f"`{one['scheduler']}`", span, above, behind, one["remark"], won, wait, late))
    head = (
        "scheduler",
        "mean bounded slowdown",
        "above the lowest",
        "behind the best, 90 %",
        "verdict",
        "windows won",
        "mean wait, h",
        "99 % wait, h",
    )
    note = "" if read_suite(name).definition == found["definition"] else "*From an earlier definition of the suite.*\n\n"
    picture = (
        f"![How far all others are above {found['rows'][0]['scheduler']}, with 90 % intervals behind the best](leaderboard-{name}.svg)\n\n"
    )
    return note + picture + table(head, rows)


def pictures(file: Path = FILE) -> dict[str, bytes]:
    """Return figures of the distances from the best of each suite, as SVG by file name."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    drawn = {}
    for name, found in stored.items():
        _, *others = found["rows"]
        series = [("", [Interval(**one["behind"]) for one in others])]
        axis = "mean bounded slowdown behind the best"
        figure = changes_figure([one["scheduler"] for one in others], series, axis)
        drawn[f"leaderboard-{name}.svg"] = figure_bytes(figure, "svg")
    return drawn


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
