"""Names in logs as numbers: users, accounts, queues and programs, numbered 1, 2, ... in the order in which they first occur."""

from __future__ import annotations

import numpy as np
import polars as pl

from walltime.workload import MISSING

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
        if rows is not None:
            series = series.set(~pl.Series(rows), None)
        series = series.fill_null("")
        found = series.unique(maintain_order=True).to_list()
        known = [MISSING if not text else self._numbers.setdefault(text, len(self._numbers) + 1) for text in found]
        return series.replace_strict(found, known, return_dtype=pl.Int64).to_numpy().copy()
