"""The report pages of `walltime predict` (accuracy of predictors) and `walltime suggest` (walltime for a user's next job)."""

from collections.abc import Iterable, Sequence
from typing import Any

from walltime.estimates.suggestion import Advice
from walltime.provenance import provenance
from walltime.report.figures import BLUE, look, panel, percent_ticks, rows_figure
from walltime.report.page import Drawing, Page, Part, sections
from walltime.wording import human_percent, human_time
from walltime.workload import Workload


def replays_page(w: Workload, rows: Sequence[dict[str, Any]], answer: str, blocks: Iterable[Part], command: Sequence[str]) -> Page:
    """Return the report page of `walltime predict`; `rows`: the summary of each predictor."""
    known = sorted((row for row in rows if row["mean_accuracy"] is not None), key=lambda row: -row["mean_accuracy"])[:10]
    requests = rows[0]["mean_accuracy_of_requests"]
    numbers, picture = [("mean accuracy of the users' requests", f"{requests:.2f}")], None
    if known:
        best = known[0]
        numbers = [
            ("mean accuracy of the best predictor", f"{best['mean_accuracy']:.2f}"),
            *numbers,
            ("jobs that run longer than predicted", human_percent(best["ue_percent"] + best["be_percent"])),
        ]
        words = "Mean accuracy of each predictor. Dashed line: the users' requests."
        with rows_figure([row["predictor"] for row in known], "mean accuracy") as (figure, axes):
            axes.barh(range(len(known)), [row["mean_accuracy"] for row in known], color=BLUE, height=0.6)
            axes.axvline(requests, color="#808080", linestyle="--", linewidth=1.2)
            axes.set_xlim(0, 1)
        picture = Drawing(figure, "accuracy", words, words, wide=False)
    return Page(
        "accuracy of runtime predictions",
        f"Predicted runtimes on {w.origin.name}",
        [answer],
        list(sections(blocks)),
        caveats=["Accuracy does not show the gain in waits: simulate the predictor (walltime compare LOG --policy easy:predictor=NAME)."],
        numbers=numbers,
        picture=picture,
        workload=w,
        record=provenance(w, command=command),
    )


def advice_page(w: Workload, user: str, advice: Advice, answer: Sequence[str], blocks: Iterable[Part], command: Sequence[str]) -> Page:
    """Return the report page of `walltime suggest`."""
    one = min(advice.suggestions, key=lambda s: abs(s.risk - 5))
    ordered = sorted(advice.suggestions, key=lambda s: s.risk)
    with panel(3.0) as (figure, axes):
        axes.plot([s.walltime / 3600 for s in ordered], [s.risk for s in ordered], marker="o", **look(0))
        axes.axvline(advice.median_request / 3600, color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("requested walltime, h")
        axes.set_ylabel("risk that the job is killed")
        percent_ticks(axes.yaxis)
    words = "Risk that the job is killed, by requested walltime. Dashed line: median request of earlier jobs."
    return Page(
        "suggested walltime",
        f"Walltime for the next job of {user}",
        answer,
        list(sections(blocks)),
        caveats=["The request is the kill limit: a job with too short a walltime loses its whole run."],
        numbers=[
            (f"walltime at {one.risk:g} % risk", human_time(one.walltime)),
            ("median runtime of such jobs", human_time(advice.median_runtime)),
            ("median request of such jobs", human_time(advice.median_request)),
        ],
        picture=Drawing(figure, "risk", words, words, wide=False, pixels=620),
        workload=w,
        record=provenance(w, command=command),
    )
