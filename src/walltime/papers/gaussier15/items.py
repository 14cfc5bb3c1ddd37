"""All items of this paper."""

from walltime.papers.gaussier15 import agreement, best, readings, shaken
from walltime.papers.item import Item

ITEMS: tuple[Item, ...] = (*agreement.ITEMS, *best.ITEMS, *shaken.ITEMS, *readings.ITEMS)
