"""All items of this paper."""

from walltime.papers.item import Item
from walltime.papers.tsafrir06 import dynamics, logs, performance

ITEMS: tuple[Item, ...] = (*logs.ITEMS, *performance.ITEMS, *dynamics.ITEMS)
