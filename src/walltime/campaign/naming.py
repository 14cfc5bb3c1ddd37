"""How results of a campaign are named and ordered: as the plan spells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from walltime.campaign.cell import SPELLED
from walltime.campaign.plan import Plan

if TYPE_CHECKING:
    import polars as pl


def as_spelled(plan: Plan, keys: Sequence[str], cells: pl.DataFrame) -> pl.DataFrame:
    """The table of cells with each file of one's own as the plan spells it, instead of the place where it was when the cell was run.

    `keys`: as in `plan_keys`. The store is not changed: a cell is known by what its file does, not by where it is.
    """
    import polars as pl

    if not plan.spelled:
        return cells
    settings = {key: cell.settings for key, cell in zip(keys, plan.cells, strict=True)}
    rows = [settings[key] for key in cells["cell"]]
    said = {name: [plan.spelled.get(row[name], row[name]) for row in rows] for name in SPELLED}
    return cells.with_columns(pl.Series(name, values, pl.String) for name, values in said.items())


def orders(plan: Plan) -> dict[str, list[Any]]:
    """The values of each text that the plan varies, in the order of the plan, as it spells them."""
    values_of: dict[str, dict[Any, None]] = {}
    for choice in (choice for axis in plan.axes for choice in axis):
        for name, value in choice.items():
            if name in plan.varied and not isinstance(value, int | float):
                values_of.setdefault(name, {})[plan.spelled.get(value, value)] = None
    return {name: list(values) for name, values in values_of.items() if any(isinstance(value, str) for value in values)}
