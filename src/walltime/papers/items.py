"""All items: each table and figure of the papers, by name, with the function that makes it."""

from __future__ import annotations

from walltime.errors import PolicyError
from walltime.papers.item import Item
from walltime.papers.p2_estimates import ITEMS as P2_ESTIMATES
from walltime.papers.p2_estimates import P1_ITEMS as P1_ESTIMATES
from walltime.papers.p2_models import ITEMS as P2_MODELS
from walltime.papers.p2_models import P1_ITEMS as P1_MODELS
from walltime.papers.p2_readings import ITEMS as P2_READINGS
from walltime.papers.p2_tables import ITEMS as P2_TABLES
from walltime.papers.p2_tables import P1_ITEMS as P1_TABLES
from walltime.papers.p2_worked import ITEMS as P2_WORKED
from walltime.papers.p3_dynamics import ITEMS as P3_DYNAMICS
from walltime.papers.p3_logs import ITEMS as P3_LOGS
from walltime.papers.p3_performance import ITEMS as P3_PERFORMANCE
from walltime.papers.p4_accuracy import ITEMS as P4_ACCURACY
from walltime.papers.p4_easypp import ITEMS as P4_EASYPP
from walltime.papers.p4_scheduling import ITEMS as P4_SCHEDULING
from walltime.papers.p4_windows import ITEMS as P4_WINDOWS

PAPERS = ("P1", "P2", "P3", "P4")
_P1 = (*P1_TABLES, *P1_ESTIMATES, *P1_MODELS)
_P2 = (*P2_WORKED, *P2_TABLES, *P2_ESTIMATES, *P2_MODELS, *P2_READINGS)
_P3 = (*P3_LOGS, *P3_PERFORMANCE, *P3_DYNAMICS)
ITEMS: tuple[Item, ...] = tuple(sorted((*_P1, *_P2, *_P3, *P4_ACCURACY, *P4_WINDOWS, *P4_SCHEDULING, *P4_EASYPP), key=Item.place))


def items_of(paper: str, name: str | None = None) -> list[Item]:
    """The items of a paper, or the one of this name, as F4 or T1; raises PolicyError naming the known ones."""
    mine = [item for item in ITEMS if item.paper == paper.upper()]
    if not mine:
        raise PolicyError(f"unknown paper {paper!r}; known are {', '.join(PAPERS)}")
    if name is None:
        return mine
    found = [item for item in mine if item.name.lower() == name.strip().lower()]
    if not found:
        raise PolicyError(f"{paper.upper()} has no item {name!r}; it has {', '.join(item.name for item in mine)}")
    return found
