"""The jobs whose runtimes are predicted: which of them are alike, and the memory of a compiled predictor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.engine.kernel.prediction_memory import Learning

Array = np.ndarray

KEYS = {
    "all": (),
    "user": ("user",),
    "project": ("group",),
    "double": ("user", "group"),
    "triple": ("user", "group", "requested"),
    "request": ("user", "requested"),
    "program": ("executable", "user", "procs"),
    "size": ("user", "procs"),
    "shape": ("user", "procs", "requested"),
}
"""Jobs are alike if they agree in all of these columns. `user` to `triple` are the keys of tang13 (section 4.2), `request` is the
triple key for logs without groups, `program` is the key of mualem01 (section 4.4), `size` the same for logs without programs, and
`shape` what a user can choose. A job with an unknown value in one of the columns is like no other."""


def key_of(job: Any, key: str) -> tuple[int, ...] | None:
    """The key values of a job, with its columns as attributes; None if one of them is unknown."""
    values = tuple(int(getattr(job, name)) for name in KEYS[key])
    return None if any(value < 0 for value in values) else values


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs whose runtimes are to be predicted; arrays are int64 s with one entry per job.

    `requested`: the user requests. `limit`: upper bounds of the predictions. `runtime`: the real runtimes, for `Learning.values`
    only; a compiled predictor reads a value only after the job has ended.
    """

    workload: Workload
    requested: Array
    limit: Array
    runtime: Array

    def memory(
        self,
        keys: Sequence[str],
        *,
        options: Sequence[int] = (),
        factors: Sequence[float] = (),
        counts: int = 0,
        ranked: Array | None = None,
        features: int = 0,
        model: tuple[int, int] = (0, 0),
    ) -> Learning:
        """An empty memory: a history for each key of each kind in `keys`, and one for all jobs.

        `counts`: number of counters per key. `ranked` (float64, one per job): values whose percentiles are needed, for the first
        kind of keys. `features`: number of values to keep per job. `model`: rows and columns of the coefficients.
        """
        from walltime.engine.kernel.prediction_memory import HISTORY, KNOWN, NOTHING, Learning

        jobs = len(self.workload)
        kinds = [alike(self.workload, self.requested, key) for key in keys]
        sizes = [np.bincount(kind[kind >= 0]) for kind in kinds]
        offsets = np.cumsum([0, *(len(size) for size in sizes)])
        size = np.concatenate([*sizes, [jobs]]).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(size)])
        known = np.zeros(jobs, KNOWN).view(np.recarray)
        known.requested, known.limit, known.procs = self.requested, self.limit, self.workload.procs
        known.started_at = known.ran = -1
        known.basis = NOTHING
        histories = np.zeros(len(size), HISTORY).view(np.recarray)
        histories.first, histories.room = first[:-1], size
        values = np.zeros(0)
        if ranked is not None:
            with_key = np.flatnonzero(kinds[0] >= 0)
            in_order = with_key[np.lexsort((ranked[with_key], kinds[0][with_key]))]
            values = ranked[in_order]
            known.place[in_order] = np.arange(1, len(in_order) + 1) - first[kinds[0][in_order]]
        key = [np.where(kind >= 0, kind + offset, -1) for kind, offset in zip(kinds, offsets, strict=False)]
        return Learning(
            options=np.array(options, np.int64),
            factors=np.array(factors, np.float64),
            jobs=known,
            key=np.ascontiguousarray(np.array(key, np.int64).T.reshape(jobs, len(keys))),
            keys=histories,
            counts=np.zeros((len(size), counts), np.int64),
            fifo=np.zeros(int(first[-1]), np.int64),
            marks=np.zeros(len(values), np.int64),
            values=values,
            features=np.zeros((jobs, features)),
            model=np.zeros(model),
        )


def alike(workload: Workload, requested: Array, key: str) -> Array:
    """Jobs alike by this key of `KEYS` have the same number: int64, from 0; -1 if one of the columns is unknown."""
    number = np.zeros(len(workload), np.int64)
    known = np.ones(len(workload), bool)
    own = {"requested": requested, "procs": workload.procs}
    for name in KEYS[key]:
        column = own[name] if name in own else workload.columns[name]
        known &= column >= 0
        values, place = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + place, return_inverse=True)[1]
    number[known] = np.unique(number[known], return_inverse=True)[1]
    return np.where(known, number, -1).astype(np.int64)
