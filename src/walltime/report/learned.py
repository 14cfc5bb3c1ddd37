"""The page and the tables of trained agents on windows that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from walltime.learn.evaluation import Evaluation
from walltime.metrics import Interval
from walltime.report.changes import changes_figure
from walltime.report.result import Table, write_result
from walltime.report.shell import figure
from walltime.report.text import human_number, shown_change
from walltime.workload import Workload


def write_learned_report(path: str | Path, found: Evaluation, workload: Workload, *, settings: Mapping[str, Any] | None = None) -> Path:
    """Write the page of an evaluation, and return its path.

    `workload`: the log of the windows. `settings`: further entries of the provenance, and as `command` the command line. Raises
    OutputError if it cannot be written.
    """
    heading, parts = f"A trained agent on {found.log}", _figures(found)
    return write_result(path, "learning", heading, found.verdict, found.caveats, parts, tables(found), found.as_dict(), workload, settings)


def _figures(found: Evaluation) -> list[str]:
    """The agent against each scheduler, and what shuffled features cost."""
    name = found.metric.replace("_", " ")
    names, changes = [one.scheduler for one in found.compared], [one.change for one in found.compared]
    drawn = changes_figure(names, [("", changes)], f"{name} of the agent against that of each scheduler")
    said = "; ".join(f"{label}: {change.mean:+.1f} %" for label, change in zip(names, changes, strict=True))
    caption = f"The agent's {name} against each scheduler's, with 90 % intervals of such windows: to the left the agent is better."
    parts = [figure(drawn, "against", f"The agent's {name} against each scheduler's: {said}.", caption)]
    if found.importances:
        names, changes = [one.feature for one in found.importances], [one.loss for one in found.importances]
        drawn = changes_figure(names, [("", changes)], f"{name} with the feature shuffled, against that without")
        said = "; ".join(f"{label}: {change.mean:+.1f} %" for label, change in zip(names, changes, strict=True))
        caption = (
            "What it costs to shuffle a feature among all jobs or queues, with 90 % intervals of such windows: what matters is to "
            "the right."
        )
        parts.append(figure(drawn, "importances", f"What it costs to shuffle each feature: {said}.", caption))
    return parts


def tables(found: Evaluation) -> list[Table]:
    """The comparison, and what the agents look at, as tables of text."""
    name = found.metric.replace("_", " ")
    rows = [["agent", human_number(found.mean), _days(found.longest_wait), "", "", "", ""]]
    for one in found.compared:
        said = "no clear difference" if not one.is_clear else "the agent is better" if one.change.mean < 0 else "the agent is worse"
        rows.append([one.scheduler, human_number(one.mean), _days(one.longest_wait), *_change(one.change), said])
    seeds = f"{len(found.agents)} agent{'s' * (len(found.agents) > 1)}"
    title = f"{found.log}: {found.windows} held-out windows of {found.window} jobs, {seeds} trained on {found.trained_on}"
    parts: list[Table] = [(title, ("scheduler", f"mean {name}", "longest wait", "agent against it", "90 %: from", "to", "verdict"), rows)]
    if found.importances:
        rows = [[one.feature, *_change(one.loss), "" if one.slope is None else f"{one.slope:+.2f}"] for one in found.importances]
        parts.append(("what it costs to shuffle a feature", ("feature", "cost", "90 %: from", "to", "score for 0.1 more"), rows))
    return parts


def _change(one: Interval) -> list[str]:
    return [shown_change(value, one.low, one.high) for value in (one.mean, one.low, one.high)]


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} d"
