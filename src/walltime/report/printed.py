"""Pages of what a command prints: an answer, three numbers and a picture on the first screen, then its tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from walltime.estimates.suggestion import Advice
from walltime.provenance import provenance
from walltime.report.figures import BLUE, look, panel, percent_ticks, rows_figure
from walltime.report.page import Block, Drawing, Page, Paragraph, Section
from walltime.report.workloads import compare_workloads
from walltime.tables import Facts, Table
from walltime.wording import UNDEFINED, human_percent, human_time
from walltime.workload import Workload
from walltime.workload.cleaning import CleaningReport

FIRST_SCREEN = 4.2
"""Inches down of a picture of four panels that a first screen shows without small letters."""


def sections(blocks: Iterable[Block | Facts | str]) -> Iterator[Section]:
    """A section for each table, with the sentences that follow it."""
    title = ""
    parts: list[Block] = []
    for block in blocks:
        if isinstance(block, Table | Facts):
            if parts:
                yield Section(title or "In words", parts)
            table = block if isinstance(block, Table) else block.table()
            title, parts = table.title.partition(":")[0] or "The table", [table]
        elif block:
            parts.append(Paragraph(block) if isinstance(block, str) else block)
    if parts:
        yield Section(title or "In words", parts)


def log_page(w: Workload, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """What is in a log: the page of `walltime info`."""
    load = human_percent(100 * w.offered_load)
    span = int(w.submit[-1] - w.submit[0]) if len(w) else 0
    use = float(np.minimum(w.runtime / w.requested, 1).mean()) if len(w) else 0.0
    dropped = sum(w.origin.dropped.values())
    lost = f"; {dropped:,} record{'' if dropped == 1 else 's'} cannot be simulated" if dropped else ""
    answer = (
        f"{w.origin.name} holds {len(w):,} jobs over {human_time(span)}, of a machine of {w.machine_procs:,} processors: they would keep "
        f"{load} of it busy, and use {human_percent(100 * use)} of the time that they ask for, on average{lost}."
    )
    picture = None
    if len(w) > 1:
        words = "Distributions of the jobs' processors, runtimes, and times between arrivals, and arrivals by hour of the day."
        picture = Drawing(compare_workloads([w], height=FIRST_SCREEN), "jobs", words, words)
    return Page(
        "what is in a log",
        w.origin.name,
        [answer],
        list(sections(blocks)),
        numbers=[("jobs", f"{len(w):,}"), ("offered load", load), ("of the request is used", human_percent(100 * use))],
        picture=picture,
        workload=w,
        record=provenance(w, command=command),
    )


def cleaning_page(report: CleaningReport, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """What became of a log: the page of `walltime clean`."""
    before, after = report.before, report.after
    facts = {name: (one, other) for name, one, other in report.rows()}
    removed = len(before) - len(after)
    loads = [human_percent(100 * load) for load in facts["offered load"]]
    busiest = [f"{value:,.1f}" if np.isfinite(value) else UNDEFINED for value in facts["busiest week of one user, in median weeks"]]
    if not after.origin.steps:
        answer = f"Nothing of {before.origin.name} was changed: its {len(before):,} jobs stay as they are."
    else:
        share = human_percent(100 * removed / max(len(before), 1))
        answer = (
            f"{removed:,} of the {len(before):,} jobs of {before.origin.name} are removed ({share}), {len(after):,} stay; "
            f"the offered load goes from {loads[0]} to {loads[1]}."
        )
    words = "Distributions of processors, runtimes and times between arrivals, and arrivals by hour of the day, before and after."
    picture = None
    if min(len(before), len(after)) > 1:
        picture = Drawing(compare_workloads([before, after], ["before", "after"], FIRST_SCREEN), "jobs", words, words)
    return Page(
        "a changed log",
        before.origin.name,
        [answer],
        list(sections(blocks)),
        numbers=[
            ("jobs that stay", f"{len(after):,} of {len(before):,}"),
            ("offered load", f"{loads[0]} to {loads[1]}"),
            ("busiest week of one user, in median weeks", f"{busiest[0]} to {busiest[1]}"),
        ],
        picture=picture,
        workload=after,
        record=provenance(after, command=command),
    )


def replays_page(
    w: Workload, rows: Sequence[dict[str, Any]], blocks: Iterable[Block | Facts | str], command: Sequence[str], judged: int
) -> Page:
    """How well runtimes could have been predicted: the page of `walltime predict`; `rows`: a mapping for each predictor.

    `judged`: so many of the last jobs are judged.
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


def advice_page(w: Workload, user: str, advice: Advice, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """What to ask for: the page of `walltime suggest`."""
    one = min(advice.suggestions, key=lambda s: abs(s.risk - 5))
    share = f"one in {round(100 / one.risk)}" if one.risk else "none of the"
    answer = (
        f"With {human_time(one.walltime)}, {share} jobs like the next one of user {user} would be killed ({one.risk:g} %); "
        f"{advice.jobs:,} earlier ones ran {human_time(advice.median_runtime)} and asked for {human_time(advice.median_request)} (medians)."
    )
    words = "The walltime to ask for, by the risk of being killed with it; the dashed line is the median of what was asked for."
    return Page(
        "what to ask for",
        f"A walltime for the next job of user {user}",
        [answer],
        list(sections(blocks)),
        caveats=["The request is the scheduler's kill limit: too short a walltime costs the whole run."],
        numbers=[
            (f"walltime at {one.risk:g} % risk", human_time(one.walltime)),
            ("median runtime of such jobs", human_time(advice.median_runtime)),
            ("median request of such jobs", human_time(advice.median_request)),
        ],
        picture=Drawing(_risks(advice), "risk", words, words, wide=False, pixels=620),
        workload=w,
        record=provenance(w, command=command),
    )


def _accuracies(rows: Sequence[dict[str, Any]], requests: float) -> Figure:
    with rows_figure([row["predictor"] for row in rows], "mean accuracy") as (figure, axes):
        axes.barh(range(len(rows)), [row["mean_accuracy"] for row in rows], color=BLUE, height=0.6)
        axes.axvline(requests, color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlim(0, 1)
    return figure


def _risks(advice: Advice) -> Figure:
    ordered = sorted(advice.suggestions, key=lambda s: s.risk)
    with panel(3.0) as (figure, axes):
        axes.plot([s.walltime / 3600 for s in ordered], [s.risk for s in ordered], marker="o", **look(0))
        axes.axvline(advice.median_request / 3600, color="#808080", linestyle="--", linewidth=1.2)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("walltime asked for, h")
        axes.set_ylabel("jobs killed by it")
        percent_ticks(axes.yaxis)
    return figure
