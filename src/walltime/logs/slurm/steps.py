"""Steps of jobs: their starts, where the accounting lost that of the job, and the memory and GPUs that they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from walltime.dataframes import pl
from walltime.workload import MISSING

Array = np.ndarray
USED = ("used_mem_mb", "max_rss_mb", "ave_rss_mb", "gpu_mem_mb", "gpu_use", "GPU_TOTAL")
"""Columns of a job that are the largest value of its steps; GPU_TOTAL: the use of all GPUs together, percent."""


class Steps:
    """The steps of a log, in blocks of columns.

    KEY: a number that a job and its steps share; `START`: Unix time; `ELAPSED`: s; `BATCH`: whether it is a batch step; and those of
    `USED`. All int64 or float64, -1 if unknown.
    """

    def __init__(self) -> None:
        self._blocks: list[Mapping[str, Array]] = []

    def add(self, block: Mapping[str, Array]) -> None:
        """Add steps."""
        if len(block["KEY"]):
            self._blocks.append(block)

    def _column(self, name: str) -> Array:
        return np.concatenate([block[name] for block in self._blocks])

    def used(self, keys: Array, start: Array) -> dict[str, Array]:
        """Return the columns of `USED` for jobs with these keys and Unix times of start; a step is of the last run before it.

        Columns about which no step knows anything are left out.
        """
        if not self._blocks:
            return {}
        jobs = pl.DataFrame({"KEY": keys, "START": start}).with_row_index("job").sort("START")
        steps = pl.DataFrame({name: self._column(name) for name in ("KEY", "START", *USED)}).sort("START")
        found = steps.join_asof(jobs, on="START", by="KEY", strategy="backward", check_sortedness=False).drop_nulls("job")
        most = found.group_by("job").agg(pl.col(USED).max())
        columns = {}
        for name in USED:
            if (most[name] > 0).any():
                columns[name] = np.full(len(keys), float(MISSING))
                columns[name][most["job"].to_numpy()] = most[name].to_numpy()
        return columns

    def starts(self, lost: Array, keys: Array, submit: Array, end: Array) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
        """Return the rows of `lost` jobs whose start a batch step has, and the start and the elapsed time of that step."""
        rows: list[int] = []
        found: list[tuple[int, int]] = []
        if not self._blocks or not lost.any():
            return rows, found
        batch = self._column("BATCH") & (self._column("START") >= 0)
        steps = np.array([self._column(name)[batch] for name in ("KEY", "START", "ELAPSED")])
        steps = steps[:, np.argsort(steps[0], kind="stable")]
        for row in np.flatnonzero(lost).tolist():
            low, high = np.searchsorted(steps[0], [keys[row], keys[row] + 1])
            for begin, elapsed in steps[1:, low:high].T.tolist():
                if begin >= submit[row] and elapsed >= 0 and (end[row] < 0 or begin + elapsed <= end[row] + 1):
                    rows.append(row)
                    found.append((begin, elapsed))
                    break
        return rows, found
