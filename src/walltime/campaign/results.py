"""The results of a plan as far as they are in its store: the cells, what is missing, and the comparison of its combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from walltime.campaign.cell import Cell
from walltime.campaign.naming import as_spelled, orders
from walltime.campaign.plan import Plan
from walltime.campaign.run import plan_keys
from walltime.campaign.store import Store
from walltime.comparison.combination_means import METRICS, CombinationMean, compare_cells
from walltime.errors import OutputError
from walltime.wording import printable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a plan that have been run."""

    plan: Plan
    store: Store
    keys: Sequence[str]
    """of all cells of the plan, in their order"""
    cells: pl.DataFrame
    """one row for each cell that is there, as in `Store.table`, with files of one's own as the plan spells them"""

    @property
    def missing(self) -> list[Cell]:
        """The cells that are not in the store: not run yet, or stopped by an error."""
        there = set(self.cells["cell"])
        return [cell for key, cell in zip(self.keys, self.plan.cells, strict=True) if key not in there]

    @cached_property
    def baseline(self) -> dict[str, Any] | None:
        """The usual baseline: the first policy of the plan, if it compares several."""
        return {"policy": orders(self.plan)["policy"][0]} if "policy" in self.plan.varied else None

    @cached_property
    def groups(self) -> pl.DataFrame:
        """One row for each of the cells and each group of jobs, as in `Store.group_table`."""
        return self.store.group_table(self.keys)

    def means(
        self, metrics: Sequence[str] = METRICS, *, baseline: Mapping[str, Any] | None = None, by: str | None = None
    ) -> list[CombinationMean]:
        """Means, intervals and paired differences, one for each combination (and group of jobs) and measure.

        `baseline`: as in `compare_cells`; by default the first policy. `by`: one of the plan's groupings. Raises PolicyError for an
        unknown measure or baseline, or a missing grouping.
        """
        groups = self.groups if by is not None else None
        chosen = self.baseline if baseline is None else baseline
        order = orders(self.plan)
        return compare_cells(self.cells, self.plan.varied, metrics=metrics, baseline=chosen, groups=groups, by=by, orders=order)


def read_results(plan: Plan, store: Store | None = None) -> Results:
    """The results of a plan that are in its store, by default the folder that the plan names.

    Raises OutputError if there are none, LogError for a trace that is missing.
    """
    store = store or Store(plan.store)
    store.manifest()
    keys = plan_keys(plan)
    cells = store.table(keys)
    if not len(cells):
        others = len(store.done())
        elsewhere = f" (its {others:,} are from another plan, log or version of walltime)" if others else ""
        cure = f"run it with: walltime campaign run {printable(plan.path)}"
        raise OutputError(f"{printable(store.folder)}: has no cell of this plan{elsewhere}; {cure}", "no_results")
    return Results(plan, store, keys, as_spelled(plan, keys, cells))
