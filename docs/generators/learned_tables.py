"""The tables and pictures of the guide on the trained agent, made from what `validation/learned.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from changes_figure import changes_figure
from performance_tables import table
from tuning_tables import change

from walltime.learn.evaluation import AgainstScheduler, verdict_of
from walltime.metrics import Interval
from walltime.report.figure_files import figure_bytes

FILE = Path(__file__).with_name("learned.json")


def learned(what: str, file: Path = FILE) -> str:
    """`training`, `comparison`, `verdict` or `features`: the table as Markdown, or a note that it was not measured."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    return {"training": training, "comparison": comparison, "verdict": verdict, "features": features}[what](stored)


def training(stored: dict[str, Any]) -> str:
    """One row for each agent."""
    head = ("log", "seed", "decisions", "core seconds", "minutes as run", "mean over test windows", "against EASY")
    rows = []
    for log, found in stored.items():
        for one in found["agents"]:
            taken = (f"{one['cpu_seconds']:.0f}", f"{one['seconds'] / 60:.1f}")
            rows.append((log, one["seed"], f"{one['decisions']:,}", *taken, f"{one['mean']:.1f}", f"{one['against_easy']:+.1f} %"))
    return table(head, rows)


def comparison(stored: dict[str, Any]) -> str:
    """One row for each scheduler, with columns for each log."""
    head, columns = ["scheduler"], []
    for log, found in stored.items():
        head += [f"{log}: mean", "longest wait, days", "agents against it", "seeds"]
        own = {"agents": (f"{found['mean']:.1f}", days(found), "", "")}
        for one in found["compared"]:
            seeds = f"{one['over_seeds']['low']:+.1f} to {one['over_seeds']['high']:+.1f}"
            shown = change(one["change"]) if one["is_clear"] else change(one["change"]).replace("**", "")
            own[f"`{one['scheduler']}`"] = (f"{one['mean']:.1f}", days(one), shown, seeds)
        columns.append(own)
    return table(head, [(name, *(cell for own in columns for cell in own[name])) for name in columns[0]])


def pictures(file: Path = FILE) -> dict[str, bytes]:
    """Return figures of the agents against each scheduler, and of the cost of shuffled features, as SVG by file name."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return {}
    first = next(iter(stored.values()))
    schedulers = [one["scheduler"] for one in first["compared"]]
    features = [one["feature"] for one in first["importances"]]
    against = [(log, _intervals(found["compared"], "scheduler", "change", schedulers)) for log, found in stored.items()]
    costs = [(log, _intervals(found["importances"], "feature", "loss", features)) for log, found in stored.items()]
    drawn = {
        "trained-agent.svg": changes_figure(schedulers, against, "bounded slowdown of the agents against each scheduler"),
        "trained-agent-features.svg": changes_figure(features, costs, "bounded slowdown with the feature shuffled"),
    }
    return {name: figure_bytes(figure, "svg") for name, figure in drawn.items()}


def _intervals(rows: list[dict[str, Any]], name: str, what: str, names: list[str]) -> list[Interval]:
    """One of the intervals of each row, in the order of these names."""
    found = {row[name]: row[what] for row in rows}
    return [Interval(found[one]["mean"], found[one]["low"], found[one]["high"], "") for one in names]


def verdict(stored: dict[str, Any]) -> str:
    """The sentences of `walltime learn evaluate`."""
    return "\n".join(f"* {log}: {sentence}" for log, found in stored.items() for sentence in _sentences(found))


def _sentences(found: dict[str, Any]) -> tuple[str, ...]:
    """In the words of today, whenever it was measured."""
    compared = [
        AgainstScheduler(one["scheduler"], one["mean"], one["longest_wait"], Interval(**one["change"]), Interval(**one["over_seeds"]))
        for one in found["compared"]
    ]
    return verdict_of(found["metric"], compared, found["windows"])


def features(stored: dict[str, Any]) -> str:
    """One row for each feature, in the order of the first log."""
    head = ["feature"] + [f"{log}: {what}" for log in stored for what in ("cost if shuffled", "score for 0.1 more")]
    by_log = [{one["feature"]: one for one in found["importances"]} for found in stored.values()]
    rows = []
    for name in by_log[0]:
        own = [one[name] for one in by_log]
        rows.append((f"`{name}`", *(cell for one in own for cell in (change(one["loss"]), slope(one["slope"])))))
    return table(head, rows)


def days(found: dict[str, Any]) -> str:
    """The longest wait."""
    return f"{found['longest_wait'] / 86_400:.1f}"


def slope(value: float | None) -> str:
    """The change of a score; features of the queue have none."""
    return "" if value is None else f"{value:+.2f}"
