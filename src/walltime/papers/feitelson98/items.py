"""All items of this paper."""

from walltime.papers.feitelson98 import estimates, models, tables
from walltime.papers.item import Item

ITEMS: tuple[Item, ...] = (*tables.ITEMS, *estimates.ITEMS, *models.ITEMS)
