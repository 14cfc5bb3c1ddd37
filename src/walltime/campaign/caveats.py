"""Caveats: what may mislead the reader of a campaign, derived from its results and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walltime.campaign.plan import Plan
from walltime.campaign.run import find_logs
from walltime.comparison.cell_caveats import cell_caveats
from walltime.logs import read
from walltime.workload.cleaning import find_flurries

if TYPE_CHECKING:
    import polars as pl


def campaign_caveats(plan: Plan, cells: pl.DataFrame, flurries: dict[str, int] | None = None) -> list[str]:
    """The caveats of a plan's cells as sentences, the most important first; see `cell_caveats`."""
    return cell_caveats(cells, plan.varied, plan.trim, flurries)


def count_flurries(plan: Plan) -> dict[str, int]:
    """Number of flurries in each log of the plan that the plan does not filter; logs without any are omitted.

    They are read as the first cell of the plan reads them: with the size of the machine, if the log does not say it.
    """
    filtered = {cell.settings["trace"] for cell in plan.cells if cell.settings["remove"]}
    first = {cell.settings["trace"]: cell.settings for cell in reversed(plan.cells)}
    counts = {}
    for trace, (file, _) in find_logs(plan).items():
        if trace not in filtered:
            jobs = read(file, **{name: first[trace][name] for name in ("procs", "too_wide", "partial")})
            counts[trace] = len(find_flurries(jobs)) if len(jobs) and "user" in jobs.columns else 0
    return {trace: count for trace, count in counts.items() if count}
