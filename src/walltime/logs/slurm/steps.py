"""Steps of jobs: their memory and GPU use, and the starts of jobs whose own starts the accounting lost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from walltime.dataframes import pl
from walltime.workload import MISSING, Array

USED = ("used_mem_mb", "max_rss_mb", "ave_rss_mb", "gpu_mem_mb", "gpu_use", "GPU_TOTAL")
"""Columns of a job with the largest value of its steps; GPU_TOTAL: the use of all its GPUs, percent, summed."""


class Steps:
    """The steps of a log, in blocks of columns, int64 or float64, -1 if unknown.

    KEY: a number that a job and its steps share; `START`: Unix time; `ELAPSED`: s; `BATCH`: whether it is a batch step; and the columns
    `USED`.
    """

    def __init__(self) -> None:
        whole = dict.fromkeys(("KEY", "START", "ELAPSED"), pl.Int64)
        self._blocks = [pl.DataFrame(schema={**whole, "BATCH": pl.Boolean, **dict.fromkeys(USED, pl.Float64)})]

    def add(self, block: Mapping[str, Array]) -> None:
        """Add steps."""
        self._blocks.append(pl.DataFrame(block))

    def used(self, keys: Array, start: Array) -> dict[str, Array]:
        """Return the columns `USED` of jobs with these keys and starts (Unix times); a step belongs to the last run before it.

        Columns that are unknown for all steps are left out.
        """
        jobs = pl.DataFrame({"KEY": keys, "START": start}).with_row_index("job").sort("START")
        steps = pl.concat(self._blocks, how="vertical_relaxed").sort("START")
        found = steps.join_asof(jobs, on="START", by="KEY", strategy="backward", check_sortedness=False).drop_nulls("job")
        most = found.group_by("job").agg(pl.col(USED).max())
        columns = {}
        for name in USED:
            if (most[name] >= 0).any():
                columns[name] = np.full(len(keys), float(MISSING))
                columns[name][most["job"].to_numpy()] = most[name].to_numpy()
        return columns

    def starts(self, lost: Array, keys: Array, submit: Array, end: Array) -> pl.DataFrame:
        """Return the rows (`row`) of `lost` jobs whose start is in a batch step, with the `START` and `ELAPSED` of that step."""
        jobs = pl.DataFrame({"row": np.arange(len(keys)), "KEY": keys, "SUBMIT": submit, "END": end}).filter(pl.Series(lost))
        batch = pl.concat(self._blocks, how="vertical_relaxed").filter(pl.col("BATCH") & (pl.col("START") >= 0) & (pl.col("ELAPSED") >= 0))
        found = jobs.join(batch, on="KEY", maintain_order="left_right").filter(pl.col("START") >= pl.col("SUBMIT"))
        within = (pl.col("END") < 0) | (pl.col("START") + pl.col("ELAPSED") <= pl.col("END") + 1)
        return found.filter(within).unique("row", keep="first", maintain_order=True)
