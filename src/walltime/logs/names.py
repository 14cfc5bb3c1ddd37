"""Names in logs as numbers: users, accounts, queues and programs, numbered 1, 2, ... in the order in which they first occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from walltime.lazy import LaterModule
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray


class Names:
    """The numbers of the names in one column, given out block by block.

    >>> users = Names()
    >>> users.numbers(["bob", "alice", "", "bob"]).tolist(), users.numbers(["carol", "alice"]).tolist(), users.texts
    ([1, 2, -1, 1], [3, 2], ('bob', 'alice', 'carol'))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """The names so far: number k is that of the k-th."""
        return tuple(self._numbers)

    def numbers(self, texts: list[str] | pl.Series, rows: Array | None = None) -> Array:
        """The number of each text, int64; -1 for an empty or missing one. With `rows` (bool), only these get numbers, others -1."""
        series = pl.Series("", texts, pl.String)
        if not len(series):
            return np.zeros(0, np.int64)
        if rows is not None:
            series = series.set(~pl.Series(rows), None)
        series = series.fill_null("")
        found = series.unique(maintain_order=True).to_list()
        known = [MISSING if not text else self._numbers.setdefault(text, len(self._numbers) + 1) for text in found]
        return series.replace_strict(found, known, return_dtype=pl.Int64).to_numpy().copy()


def only_used(numbers: Array, texts: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Numbers and names of a column without the names that no longer occur, numbered again by first occurrence.

    >>> only_used(np.array([3, -1, 1, 3]), ("a", "b", "c"))
    (array([ 1, -1,  2,  1]), ('c', 'a'))
    """
    found, first = np.unique(numbers[numbers > 0], return_index=True)
    order = found[np.argsort(first)]
    table = np.full(len(texts) + 1, MISSING, np.int64)
    table[order] = np.arange(1, len(order) + 1)
    return np.where(numbers > 0, table[np.maximum(numbers, 0)], MISSING), tuple(texts[k - 1] for k in order.tolist())
