"""The base class of all estimate models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from walltime.errors import PolicyError
from walltime.workload import Workload
from walltime.workload.workload import MAX_TIME

Array = np.ndarray

LIMITS = ("model", "user")


@dataclass(frozen=True)
class EstimateModel:
    """A model of the runtimes that a scheduler is told.

    `limit` determines when jobs are killed: with `model` the estimates replace the users' requests and are also the kill limit;
    with `user` only the scheduler's view changes, and the users' requests remain the kill limit.
    """

    limit: Literal["model", "user"] = "model"

    def __post_init__(self) -> None:
        if self.limit not in LIMITS:
            raise PolicyError(f"the kill limit of an estimate model is that of the {' or the '.join(LIMITS)}, not {self.limit!r}")

    @property
    def random(self) -> bool:
        """Whether the estimates depend on the seed."""
        return False

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Estimates, int64 seconds, at least 1, one per job.

        A job's estimate depends only on the seed, its id and its own times; in Tsafrir05 on the whole set of jobs.
        """
        raise NotImplementedError

    def runtime(self, workload: Workload) -> Array:
        """The runtimes on which estimates are based, int64 s: cut at the users' limits if those are kept."""
        if self.limit == "user":
            return np.minimum(workload.runtime, workload.requested)
        return workload.runtime


def cut_short(workload: Workload, model: EstimateModel, seed: int = 0) -> int:
    """Number of jobs killed at a model's estimates, as they run longer; 0 if the users' kill limits are kept.

    Mualem01 intends about one job in ten to be killed, and any model with a largest estimate kills the jobs beyond it.

    >>> from walltime.estimates import Mualem01
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[100, 9000], procs=[1, 1], machine_procs=1)
    >>> cut_short(jobs, Mualem01(under=0, cap=3600))
    1
    """
    return int(np.count_nonzero(workload.runtime > model.draw(workload, seed))) if model.limit == "model" else 0


def whole_seconds(estimates: Array, runtime: Array) -> Array:
    """Estimates rounded to the nearest second, halves up, at least the runtime and at least 1.

    They are at most `MAX_TIME`, the bound of all times of a workload.

    >>> whole_seconds(np.array([2.5, 0.0]), np.array([2, 0])).tolist()
    [3, 1]
    """
    rounded = np.floor(np.minimum(estimates, MAX_TIME) + 0.5).astype(np.int64)
    return np.maximum(np.maximum(rounded, runtime), 1)
