"""The experiment of both papers on backfilling: EASY and conservative backfilling on one log, with given estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from walltime.estimates import parse_estimates
from walltime.papers.results import Claim
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import Conservative, Easy
from walltime.schedule import Schedule
from walltime.simulation import simulate

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray

POLICIES = {"easy": Easy(), "conservative": Conservative()}
METRICS = {"response": "mean_response", "slowdown": "mean_bounded_slowdown_p1"}
DIGITS = {"response": 0, "slowdown": 1}
SEEDS, FEW_SEEDS = 10, 3
SHAKES, FEW_SHAKES = 20, 5
SHAKE = 30
"""Seconds by which submissions are shaken, up or down, to see how chaotic a number is."""
NOTICEABLE = 0.05
"""Printed differences above this must have the same sign here."""
CHAOS_NOTE = (
    f"Where a number is beyond the accepted deviation, the small print says how far ours spreads: for one run, from the 5th to the 95th "
    f"percentile of runs whose submit times are shaken by up to {SHAKE} s; for a mean over seeds, the range in which two such means "
    "would differ by chance 9 times in 10. A printed number inside is marked ~, one outside !."
)


def sweep_cells(study: Study, subject: Subject, estimates: Sequence[str], seeds: int) -> pl.DataFrame:
    """Both policies with these estimates; random ones with `seeds` seeds."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates]
    return study.cells(f"{subject.name}: EASY and conservative", subject, *axes, seeds=seeds)


def shaken_cells(study: Study, subject: Subject, estimates: Sequence[str]) -> pl.DataFrame:
    """The same with shaken submissions, for estimates without chance."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates], [{"shake": SHAKE}]
    return study.cells(f"{subject.name}: shaken", subject, *axes, seeds=FEW_SHAKES if study.quick else SHAKES)


def values_of(table: pl.DataFrame, policy: str, estimates: str, metric: str) -> Array:
    """The results of all seeds."""
    import polars as pl

    part = table.filter((pl.col("policy") == policy) & (pl.col("estimates") == estimates))
    return part[METRICS[metric]].to_numpy()


def chaos(cells: Array, shaken: Array | None) -> tuple[float, float] | None:
    """The range of a printed number due to chaos: see `CHAOS_NOTE`."""
    if len(cells) > 1:
        half = 1.645 * float(np.std(cells, ddof=1)) * float(np.sqrt(2 / len(cells)))
        return float(cells.mean()) - half, float(cells.mean()) + half
    if shaken is None or len(shaken) < 2:
        return None
    low, high = np.percentile(shaken, [5, 95])
    return float(low), float(high)


def label(estimates: str) -> str:
    """Estimates as the papers' tables name them."""
    return {"user": "original", "double": "x2"}.get(estimates, estimates.replace("f:", "f = "))


def compared(what: str, printed: Sequence[float | None], ours: Sequence[float]) -> list[Claim]:
    """The sign of a printed difference over `NOTICEABLE`, and ours; empty if nothing is printed or the difference is small."""
    first, second = printed
    if first is None or second is None or abs(second / first - 1) <= NOTICEABLE:
        return []
    theirs, mine = second / first - 1, ours[1] / ours[0] - 1
    return [(f"{what}: {100 * theirs:+.0f} % in print", (theirs > 0) == (mine > 0), f"{100 * mine:+.1f} %")]


def schedule_of(subject: Subject, policy: str, overrun: str = "kill") -> Schedule:
    """The log under a policy, with the paper's original estimates."""
    return simulate(subject.workload.with_estimates(parse_estimates(subject.estimates)), POLICIES[policy], overrun=overrun)
