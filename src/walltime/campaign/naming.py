"""How results of a campaign are named and ordered: groups of jobs in their natural order, files of one's own as the plan spells them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from walltime.campaign.cell import SPELLED
from walltime.campaign.plan import Plan
from walltime.schedule.groups import DAYS, UNKNOWN
from walltime.workload.filters import UNITS

if TYPE_CHECKING:
    import polars as pl

CLASSES = ("short narrow", "short wide", "long narrow", "long wide")
USE = ("heavy", "medium", "light")
_NUMBER = re.compile(r"\d+")
_TIME = re.compile(r"(\d+) (s|min|h|d)\b")


def group_rank(by: str, name: str) -> tuple[Any, ...]:
    """Sort key of a group of jobs by its name, so that campaigns list groups as the breakdowns of single runs do.

    Sizes, lengths and numbers ascend, days begin on Monday, months and hours follow the time, users go from heavy to light; others
    follow the alphabet, and what the log does not say comes last.

    >>> sorted(["9-16", "over 64", "1", "17-32"], key=lambda name: group_rank("size", name))
    ['1', '9-16', '17-32', 'over 64']
    >>> sorted(["over 1 d", "1 h to 4 h", "10 min to 1 h", "up to 10 min"], key=lambda name: group_rank("length", name))
    ['up to 10 min', '10 min to 1 h', '1 h to 4 h', 'over 1 d']
    >>> sorted(["Sun 03", "Mon 12", "Mon 03"], key=lambda name: group_rank("hour-of-week", name))
    ['Mon 03', 'Mon 12', 'Sun 03']
    """
    if name == UNKNOWN:
        return (1,)
    match by:
        case "size":
            return (0, _size(name), name)
        case "length":
            return (0, _length(name), name)
        case "size-length":
            size, _, length = name.partition(", ")
            return (0, _size(size), _length(length), name)
        case "weekday" | "hour-of-week":
            day, _, hour = name.partition(" ")
            return (0, DAYS.index(day) if day in DAYS else len(DAYS), hour)
        case "class" | "user":
            usual = CLASSES if by == "class" else USE
            return (0, usual.index(name) if name in usual else len(usual), name)
    number = _NUMBER.search(name)
    return (0, int(number[0]) if number else math.inf, name)


def _size(name: str) -> float:
    """The fewest processors of a group; one more for what is over the last edge."""
    number = _NUMBER.search(name)
    return math.inf if number is None else int(number[0]) + (1 if name.startswith("over") else 0)


def _length(name: str) -> float:
    """The shortest time of a group, s."""
    if name.startswith("up to"):
        return 0
    number = _TIME.search(name)
    return math.inf if number is None else int(number[1]) * UNITS["m" if number[2] == "min" else number[2]]


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
