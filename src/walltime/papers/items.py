"""All items: each table and figure of the papers, by name, with the function that makes it."""

from __future__ import annotations

from walltime.errors import PolicyError
from walltime.papers.carastan17.items import ITEMS as CARASTAN17
from walltime.papers.feitelson98.items import ITEMS as FEITELSON98
from walltime.papers.gaussier15.items import ITEMS as GAUSSIER15
from walltime.papers.item import Item
from walltime.papers.mualem01.items import ITEMS as MUALEM01
from walltime.papers.names import paper_name
from walltime.papers.tang13.items import ITEMS as TANG13
from walltime.papers.tsafrir06.items import ITEMS as TSAFRIR06
from walltime.papers.zhang20.items import ITEMS as ZHANG20

ITEMS: tuple[Item, ...] = tuple(sorted((*FEITELSON98, *MUALEM01, *TSAFRIR06, *TANG13, *GAUSSIER15, *CARASTAN17, *ZHANG20), key=Item.place))


def items_of(paper: str, name: str | None = None) -> list[Item]:
    """The items of a paper, or the one with this name, such as F4 or T1; raises PolicyError listing the known ones."""
    paper = paper_name(paper)
    mine = [item for item in ITEMS if item.paper == paper]
    if name is None:
        return mine
    found = [item for item in mine if item.name.lower() == name.strip().lower()]
    if not found:
        raise PolicyError(f"{paper} has no item {name!r}; it has {', '.join(item.name for item in mine)}")
    return found
