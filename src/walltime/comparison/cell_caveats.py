"""Caveats of many runs: conditions under which their means may mislead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from walltime.estimates import FModel, parse_estimates
from walltime.wording import counted, human_percent, sanitize
from walltime.workload.drops import MUCH, Drop

if TYPE_CHECKING:
    import polars as pl

DRAIN = 0.05
"""A run is saturated if more than this share of its total length is after the last arrival and `WAIT` is exceeded as well."""
WAIT = 0.1
"""The mean wait of a saturated run exceeds this share of the time after the last arrival; otherwise a single long job ended late."""
NEAR = 0.9
"""Offered load above which the queue tends not to empty within months, although the machine keeps up in the long run."""


def cell_caveats(cells: pl.DataFrame, varied: Sequence[str], trim: str, flurries: dict[str, int] | None = None) -> list[str]:
    """Return the caveats as sentences, the most important first.

    `cells`: a row for each run, as in `Store.table`. `varied`: the parameters that distinguish combinations. `flurries`: number of flurries
    per log, from `count_flurries`; None if not counted. Source: after E. Frachtenberg and D. G. Feitelson, "Pitfalls in parallel job
    scheduling evaluation", JSSPP 2005.
    """
    import polars as pl

    caveats = [*left_out_cells(cells, 0), *rule_sentences(left_out_rules(cells))]
    arrivals = pl.col("makespan") * pl.col("utilization") / pl.col("offered_load")  # both are the same work over another time
    drain = pl.col("makespan") - arrivals
    behind = (drain > DRAIN * pl.col("makespan")) & (pl.col("mean_wait") > WAIT * drain)
    full = cells.filter((pl.col("offered_load") >= 1) | behind)
    if len(full):
        caveats.append(
            f"Saturated: {len(full):,} of {len(cells):,} runs, whose waits depend more on the length of the log than on the policy."
        )
    near = cells.filter(~((pl.col("offered_load") >= 1) | behind) & (pl.col("offered_load") >= NEAR))
    if len(near):
        caveats.append(
            f"Near saturation: {len(near):,} of {len(cells):,} runs have an offered load of {100 * NEAR:.0f} % or more; queues may last "
            "for months."
        )
    for trace, count in (flurries or {}).items():
        caveats.append(
            f"Uncleaned: {trace} has {count} {'flurry' if count == 1 else 'flurries'}, bursts of a single user that can distort averages; "
            "see walltime clean, and exclude them with remove."
        )
    below = cells.filter(pl.col("below_zero") > 0) if "below_zero" in cells.columns else cells.clear()
    if len(below):
        most = int(below["below_zero"].max())  # type: ignore[arg-type]
        caveats.append(
            f"Predictions below 0 s: in {len(below):,} of {len(cells):,} runs, for up to {counted(most, 'job')}. The user's request is "
            "used instead."
        )
    if trim == "none":
        caveats.append(
            'Averages include the beginning and end of each run, when the machine fills and empties; trim = "tsafrir06" leaves them out.'
        )
    spelled = cells["estimates"].unique().drop_nulls().sort().to_list() if "estimates" in cells.columns else []
    models = [parse_estimates(text) for text in spelled]
    if any(isinstance(model, FModel) and model.random and model.truncated is None for model in models):
        caveats.append(
            "Vanilla f-model: estimates that are uniform multiples of the runtime, without limit, are better than user estimates "
            "in one respect: they keep short jobs short (tsafrir06, section VI); compare with tsafrir05 or a truncated model."
        )
    words = [name for name in varied if name in cells.columns] or ["jobs"]
    singles, seeds = cells.group_by(words).len(), cells.filter(cells["seed"].is_not_null()) if "seed" in cells.columns else cells
    short = seeds.group_by(words, maintain_order=True).len().filter(pl.col("len") < pl.col("len").max())
    if len(short):
        first = ", ".join(f"{name}={value}" for name, value in short.select(words).row(0, named=True).items())
        caveats.append(
            f"Missing runs: {counted(len(short), 'combination')} of {len(singles):,} have fewer seeds than the others (first: {first}), "
            "so these means are not over the same logs and estimates."
        )
    if len(singles) and (singles["len"] == 1).all():
        caveats.append("Single runs: differences of a few percent may be chance; --replications with --shake gives intervals.")
    return caveats


def left_out_cells(cells: pl.DataFrame, least: float = MUCH) -> list[str]:
    """Return a sentence on left-out jobs, if their share of the work exceeds `least` in any run; `cells`: as in `cell_caveats`.

    With a `least` of 0, there is a sentence if any job is left out.
    """
    if "left_out_work" not in cells.columns:
        return []
    work = cells.filter(cells["left_out_jobs"] > 0)
    if not len(work) or (least and work["left_out_work"].fill_null(0.0).max() <= least):  # type: ignore[operator]
        return []
    jobs, most = (human_percent(100 * float(work[name].max() or 0)) for name in ("left_out_jobs", "left_out_work"))  # type: ignore[arg-type]
    return [
        f"In {len(work):,} of {len(cells):,} runs, up to {jobs} of the jobs with up to {most} of the work are left out, so the results "
        "cover only the others."
    ]


def left_out_rules(cells: pl.DataFrame) -> dict[str, list[Drop]]:
    """Return the dropped jobs by log or model and rule; for each rule, in the run that drops most. `cells`: as in `Store.table`."""
    found: dict[str, dict[str, Drop]] = {}
    if "left_out_rules" not in cells.columns:
        return {}
    for trace, model, rules in cells.select("trace", "model", "left_out_rules").unique(maintain_order=True).iter_rows():
        mine = found.setdefault(trace or model, {})
        for drop in (Drop(**one) for one in json.loads(rules)):
            before = mine.setdefault(drop.rule, drop)
            if (drop.share_of_jobs, drop.jobs) > (before.share_of_jobs, before.jobs):
                mine[drop.rule] = drop
    return {name: list(mine.values()) for name, mine in found.items() if mine}


def rule_sentences(rules: Mapping[str, Sequence[Drop]]) -> list[str]:
    """Return a line for each rule of `left_out_rules`."""
    return [f"{sanitize(name)}: {drop}" for name, drops in rules.items() for drop in drops]
