"""All items of this paper."""

from walltime.papers.item import Item
from walltime.papers.mualem01 import estimates, models, months, open_points, quality, worked

ITEMS: tuple[Item, ...] = (*worked.ITEMS, *months.ITEMS, *quality.ITEMS, *estimates.ITEMS, *models.ITEMS, *open_points.ITEMS)
