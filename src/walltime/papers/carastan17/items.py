"""All items of this paper."""

from walltime.papers.carastan17 import medians
from walltime.papers.item import Item

ITEMS: tuple[Item, ...] = medians.ITEMS
