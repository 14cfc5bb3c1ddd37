"""Store many lists of numbers in two arrays, because creating a Python list for each of a million jobs takes as long as simulating them.

>>> lists = Ragged.of_pairs(3, [2, 0, 2], [7, 8, 9])
>>> list(lists), lists[2], lists.take([2, 1]), any(lists)
([[8], [], [7, 9]], [7, 9], Ragged([[7, 9], []]), True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

Array = np.ndarray


class Ragged(Sequence[list[int]]):
    """Lists in two int64 arrays: list k is `items[first[k] : first[k + 1]]`; `first` has one entry more than there are lists."""

    __slots__ = ("first", "items")

    def __init__(self, first: Array, items: Array):
        self.first, self.items = first, items

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        """Convert a sequence of lists."""
        if isinstance(lists, Ragged):
            return lists
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        return cls(_firsts(counts), np.fromiter(chain.from_iterable(lists), np.int64, int(counts.sum())))

    @classmethod
    def of_pairs(cls, count: int, places: Any, items: Any) -> Ragged:
        """Return `count` lists: list k has the items (int64) whose entry of `places` is k, in this order."""
        places = np.asarray(places, np.int64)
        order = np.argsort(places, kind="stable")
        return cls(_firsts(np.bincount(places, minlength=count)), np.asarray(items, np.int64)[order])

    @classmethod
    def empty(cls, count: int) -> Ragged:
        """Return `count` empty lists."""
        return cls(np.zeros(count + 1, np.int64), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.first) - 1

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return self.take(range(len(self))[k])
        if not -len(self) <= k < len(self):
            raise IndexError(f"list index {k} is out of range for {len(self)} lists")
        k %= len(self)
        return self.items[self.first[k] : self.first[k + 1]].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        items, first = self.items.tolist(), self.first.tolist()
        return (items[begin:end] for begin, end in pairwise(first))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ragged({list(self)})"

    def take(self, chosen: Any) -> Ragged:
        """Return the lists with these indices."""
        chosen = np.asarray(chosen, np.int64)
        counts = self.counts[chosen]
        first = _firsts(counts)
        return Ragged(first, self.items[np.repeat(self.first[chosen] - first[:-1], counts) + np.arange(first[-1])])

    @property
    def counts(self) -> Array:
        """Return the number of items of each list, int64."""
        return np.diff(self.first)

    @property
    def places(self) -> Array:
        """Return, for each item, the index of its list, int64."""
        return np.repeat(np.arange(len(self)), self.counts)

    def concat(self, other: Ragged, more: int) -> Ragged:
        """Return each list followed by the same list of `other`, with `more` added to the items of `other`."""
        return Ragged.of_pairs(len(self), np.concatenate([self.places, other.places]), np.concatenate([self.items, other.items + more]))


def _firsts(counts: Array) -> Array:
    first = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    return first
