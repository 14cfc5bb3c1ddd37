"""All items of this paper."""

from walltime.papers.item import Item
from walltime.papers.tang13 import accuracy, easypp, scheduling, windows

ITEMS: tuple[Item, ...] = (*accuracy.ITEMS, *windows.ITEMS, *scheduling.ITEMS, *easypp.ITEMS)
