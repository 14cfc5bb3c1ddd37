"""All items of this paper."""

from walltime.papers.item import Item
from walltime.papers.zhang20 import comparison

ITEMS: tuple[Item, ...] = comparison.ITEMS
