"""The page of dialects: interpretations that change a mean by more than chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from walltime.dialects.dialects import DialectRow, DialectTable
from walltime.metrics import range_meaning
from walltime.provenance import provenance
from walltime.report.figures import BLUE, rows_figure
from walltime.report.page import Block, Drawing, Page, sections, workload_facts
from walltime.tables import Facts
from walltime.wording import human_difference, human_percent

MOST_INTERPRETATIONS = 14
"""Maximum number of interpretations in the figure."""


def dialects_page(comparison: DialectTable, blocks: Iterable[Block | Facts | str], command: Sequence[Any]) -> Page:
    """Return the page of `walltime dialects`: the effect of each interpretation on a log; its answer is about the first scheduler."""
    w, scheduler = comparison.workload, comparison.rows[0].scheduler
    papers = comparison.find("papers", scheduler)
    assert papers is not None, "it is always simulated"
    base = papers.mean_bounded_slowdown
    others = [row for row in comparison.rows if row.scheduler == scheduler and row.dialect != "papers"]
    others.sort(key=lambda row: -abs(row.mean_bounded_slowdown - base))
    answer = f"No interpretation that was tried affects {scheduler}."
    if others:
        most = others[0]
        beyond = [row for row in others if not papers.low <= row.mean_bounded_slowdown <= papers.high]
        answer = (
            f"On {w.origin.name}, {most.dialect} changes {scheduler} most among {len(others)} other interpretations: a mean bounded "
            f"slowdown of {most.mean_bounded_slowdown:,.1f} instead of {base:,.1f} ({_change(most, base)})"
        )
        if papers.has_band:
            more = f"{len(beyond)} of them change{'s' if len(beyond) == 1 else ''} it by more than chance"
            answer += f"; {more} (chance alone: {papers.low:,.1f} to {papers.high:,.1f})."
        else:
            answer += "; the part of chance was not measured."
    chance = f"{papers.low:,.1f} to {papers.high:,.1f}" if papers.has_band else "not tried"
    words = f"Mean bounded slowdown of {scheduler} with one other interpretation, or in another dialect; dashed line: `papers`"
    if papers.has_band:
        words += f", the grey band {range_meaning(comparison.copies).replace('runs', 'shaken copies of the log')}"
    words += "."
    return Page(
        "interpretations of the papers",
        f"Effect of published interpretations on {w.origin.name}",
        [answer],
        list(sections(blocks)),
        facts=workload_facts(w, w.origin.name),
        caveats=["An interpretation that changes a mean by less than chance may still move most jobs: see the column jobs moved."],
        numbers=[
            ("mean bounded slowdown as in the papers", f"{base:,.1f}"),
            ("range by chance alone", chance),
            ("jobs moved by one interpretation at most", human_percent(100 * max((row.differs for row in others), default=0.0))),
        ],
        picture=Drawing(_slowdowns(others[:MOST_INTERPRETATIONS], papers), "slowdowns", words, words, wide=False) if others else None,
        workload=w,
        record=provenance(w, command=list(command)),
        data=comparison.as_dict(),
    )


def _change(row: DialectRow, base: float) -> str:
    return human_difference(100 * (row.mean_bounded_slowdown / base - 1)) if base > 0 else "n/a"


def _slowdowns(rows: Sequence[DialectRow], papers: DialectRow) -> Figure:
    with rows_figure([row.dialect for row in rows], "mean bounded slowdown", width=7.2) as (figure, axes):
        if papers.has_band:
            axes.axvspan(papers.low, papers.high, color="#808080", alpha=0.2, linewidth=0)
        axes.axvline(papers.mean_bounded_slowdown, color="#808080", linestyle="--", linewidth=1.2)
        axes.plot([row.mean_bounded_slowdown for row in rows], range(len(rows)), "o", color=BLUE)
    return figure
