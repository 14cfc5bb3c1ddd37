"""Read with care: what about a campaign can mislead its reader, found from its results and its logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walltime.campaign.plan import Plan
from walltime.campaign.run import find_logs
from walltime.estimates import FModel, parse_estimates
from walltime.logs import read
from walltime.logs.cleaning import find_flurries

if TYPE_CHECKING:
    import polars as pl

DRAIN = 0.05
"""A run did not keep up if it went on after the last arrival for more than this share of its whole length, ..."""
WAIT = 0.1
"""... and the mean wait was more than this share of that: else it is just a long job that ended last."""


def campaign_cautions(plan: Plan, cells: pl.DataFrame, flurries: dict[str, int] | None = None) -> list[str]:
    """Sentences on what to keep in mind, the weightiest first.

    `cells`: as in `Store.table`. `flurries`: how many each log has, as `count_flurries` finds them; None if nobody looked.
    Source: the checklist of SPEC L-30.
    """
    import polars as pl

    found = []
    arrivals = pl.col("makespan") * pl.col("utilization") / pl.col("offered_load")  # both are the same work over another time
    drain = pl.col("makespan") - arrivals
    behind = (drain > DRAIN * pl.col("makespan")) & (pl.col("mean_wait") > WAIT * drain)
    full = cells.filter((pl.col("offered_load") >= 1) | behind)
    if len(full):
        found.append(
            f"Saturated: in {len(full):,} of {len(cells):,} runs the machine could not do what was asked of it, or not while jobs arrived. "
            "Their queues grow for as long as jobs arrive, so their waits say more about the length of the log than about the policy."
        )
    for trace, count in (flurries or {}).items():
        found.append(
            f"Uncleaned: {trace} has {count} {'flurry' if count == 1 else 'flurries'}, bursts of a single user that can decide an average; "
            "see walltime clean, and leave them out with remove."
        )
    if plan.trim == "none":
        found.append(
            'No trimming: the empty machine at the start and the last jobs at the end are in the averages; trim = "p3" leaves them out.'
        )
    models = [parse_estimates(text) for text in cells["estimates"].unique().drop_nulls().sort()]
    if any(isinstance(model, FModel) and model.random and model.truncated is None for model in models):
        found.append(
            "Vanilla f-model: estimates that are uniform multiples of the runtime, without limit, are better than those of users "
            "in one respect, since they keep short jobs short (P3 section VI); compare with tsafrir05 or a truncated model."
        )
    singles = cells.group_by([name for name in plan.varied if name in cells.columns] or ["trim"]).len()
    if len(singles) and (singles["len"] == 1).all():
        found.append(
            "Single runs: a schedule is chaotic, and moving one job by seconds can move its averages by percents (SPEC L-33). "
            "Shake the log with several seeds to see by how much."
        )
        found.append(
            "Means only: with one run for each combination there is no band and no confidence interval; small differences mean nothing."
        )
    return found


def count_flurries(plan: Plan) -> dict[str, int]:
    """How many flurries each log of the plan has that the plan does not filter; logs without any are left out."""
    filtered = {cell.settings["trace"] for cell in plan.cells if cell.settings["remove"]}
    counts = {trace: len(find_flurries(read(file))) for trace, (file, _) in find_logs(plan).items() if trace not in filtered}
    return {trace: count for trace, count in counts.items() if count}
