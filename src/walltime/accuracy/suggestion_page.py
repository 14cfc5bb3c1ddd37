"""The page of `walltime suggest`: the walltime to ask for, by the risk of a kill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from walltime.estimates.suggestion import Advice
from walltime.provenance import provenance
from walltime.report.figures import look, panel, percent_ticks
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import human_time
from walltime.workload import Workload


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
