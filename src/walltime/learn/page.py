"""The page of trained agents, compared with schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from walltime.learn.evaluation import Evaluation
from walltime.report.changes import MOST_DRAWN, change_ends, change_numbers, changes_figure, metric_name, rows_left_out, windows_page
from walltime.report.page import Drawing, Page
from walltime.tables import Row, Table
from walltime.wording import human_number
from walltime.workload import Workload


def learned_page(evaluation: Evaluation, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the page of an evaluation of agents.

    `workload`: the log of the windows. `settings`: further entries of the provenance, and as `command` the command line.
    """
    title = f"{'A trained agent' if evaluation.trained_on else 'An agent'} on {evaluation.log}"
    best = max(evaluation.compared, key=lambda one: one.change.mean)
    numbers = change_numbers(evaluation.metric, {one.scheduler: one.change for one in (best, *evaluation.compared)})
    numbers.append(("windows of the test", f"{evaluation.windows:,}"))
    return windows_page("learning", title, evaluation, _drawings(evaluation), learned_tables(evaluation), numbers, workload, settings)


def _drawings(evaluation: Evaluation) -> list[Drawing]:
    """Return figures of the agent against each scheduler, and of the cost of shuffled features."""
    name = metric_name(evaluation.metric)
    lowest = sorted(evaluation.compared, key=lambda one: one.mean)[: MOST_DRAWN - 1]
    compared = [(one.scheduler, one.change) for one in evaluation.compared if one in lowest or one is evaluation.compared[0]]
    left_out = rows_left_out(len(evaluation.compared) - len(compared))
    against, shuffling = f"The agent's {name} against each scheduler's", "The cost of shuffling each feature"
    interval = "with 90 % intervals (sampling of windows)"
    features = [(one.feature, one.loss) for one in evaluation.importances]
    drawings = []
    for key, pairs, axis, title, caption in (
        ("against", compared, f"{name} of the agent against each scheduler's", against, f"the agent is better on the left.{left_out}"),
        (
            "importances",
            features,
            f"{name} with the feature shuffled, against without",
            shuffling,
            "important features are on the right.",
        ),
    ):
        if pairs:
            drawn = changes_figure([label for label, _ in pairs], [("", [change for _, change in pairs])], axis)
            values = "; ".join(f"{label}: {change.mean:+.1f} %" for label, change in pairs)
            drawings.append(Drawing(drawn, key, f"{title}: {values}.", f"{title}, {interval}: {caption}"))
    return drawings


def learned_tables(evaluation: Evaluation) -> list[Table]:
    """Return the tables of agents against schedulers, and of the features' importances."""
    rows: list[Row] = [["agent", human_number(evaluation.mean), _days(evaluation.longest_wait), "", "", "", ""]]
    for one in evaluation.compared:
        verdict = "no clear difference" if not one.is_clear else "the agent is better" if one.change.mean < 0 else "the agent is worse"
        rows.append([one.scheduler, human_number(one.mean), _days(one.longest_wait), *change_ends(one.change), verdict])
    seeds = f"{len(evaluation.agents)} agent{'s' * (len(evaluation.agents) > 1)}"
    trained = f" trained on {evaluation.trained_on}" if evaluation.trained_on else ""
    title = f"{evaluation.log}: {evaluation.windows} held-out windows of {evaluation.window} jobs, {seeds}{trained}"
    head = ("scheduler", f"mean {metric_name(evaluation.metric)}", "longest wait", "agent against it", "90 %: from", "to", "verdict")
    tables = [Table(head, rows, title)]
    if evaluation.importances:
        rows = [[one.feature, *change_ends(one.loss), "" if one.slope is None else f"{one.slope:+.2f}"] for one in evaluation.importances]
        tables.append(Table(("feature", "cost", "90 %: from", "to", "score for 0.1 more"), rows, "cost of shuffling a feature"))
    return tables


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} d"
