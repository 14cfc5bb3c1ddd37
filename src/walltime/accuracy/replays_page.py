"""The page of `walltime predict`: how accurately each predictor predicts the runtimes of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from walltime.provenance import provenance
from walltime.report.figures import BLUE, rows_figure
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import human_percent
from walltime.workload import Workload


def replays_page(
    w: Workload, rows: Sequence[dict[str, Any]], blocks: Iterable[Block | Facts | str], command: Sequence[str], judged: int
) -> Page:
    """How well runtimes could have been predicted: the page of `walltime predict`; `rows`: a mapping for each predictor.

    `judged`: the number of the last jobs that are judged.
    """
    log = f"On {w.origin.name}"
    if judged < len(w):
        log = f"On the last {judged:,} of the {len(w):,} jobs of {w.origin.name}, learned from all before them"
    known = sorted((row for row in rows if row["mean_accuracy"] is not None), key=lambda row: -row["mean_accuracy"])
    requests = rows[0]["mean_accuracy_of_requests"]
    numbers = [("mean accuracy of the requests", f"{requests:.2f}")]
    answer, picture = "No job could be predicted.", None
    if known:
        best = known[0]
        against = "" if best["predictor"] == "user" else f", that of the users' requests {requests:.2f}"
        answer = (
            f"{log}, {best['predictor']} predicts runtimes best of {len(rows)}: its mean accuracy is "
            f"{best['mean_accuracy']:.2f} (1 is exact){against}."
            if len(rows) > 1
            else f"{log}, the mean accuracy of {best['predictor']} is {best['mean_accuracy']:.2f} (1 is exact){against}."
        )
        numbers = [
            ("mean accuracy, best", f"{best['mean_accuracy']:.2f}"),
            *numbers,
            ("of its jobs run longer than predicted", human_percent(best["ue_percent"] + best["be_percent"])),
        ]
        words = "Mean accuracy of each predictor; the dashed line is that of the users' requests."
        picture = Drawing(_accuracies(known[:10], requests), "accuracy", words, words, wide=False)
    return Page(
        "how well runtimes can be predicted",
        f"Predicted runtimes on {w.origin.name}",
        [answer],
        list(sections(blocks)),
        caveats=["Accuracy does not say what a prediction gains: simulate with it (walltime compare LOG --policy easy:predictor=NAME)."],
        numbers=numbers,
        picture=picture,
        workload=w,
        record=provenance(w, command=command),
    )


def _accuracies(rows: Sequence[dict[str, Any]], requests: float) -> Figure:
    with rows_figure([row["predictor"] for row in rows], "mean accuracy") as (figure, axes):
        axes.barh(range(len(rows)), [row["mean_accuracy"] for row in rows], color=BLUE, height=0.6)
        axes.axvline(requests, color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlim(0, 1)
    return figure
