"""What every model of estimates has in common."""

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

    `limit` says when jobs are killed: under `model` the estimates stand for the users' requests and are the kill limit too;
    under `user` only the scheduler's view changes, and the kill limit stays what the users requested.
    """

    limit: Literal["model", "user"] = "model"

    def __post_init__(self) -> None:
        if self.limit not in LIMITS:
            raise PolicyError(f"the kill limit of an estimate model is that of the {' or the '.join(LIMITS)}, not {self.limit!r}")

    @property
    def random(self) -> bool:
        """Whether another seed gives other estimates."""
        return False

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Estimates, int64 seconds, at least 1, one per job.

        What a job draws depends on the seed, its id and its own times only; under Tsafrir05 on the whole set of jobs.
        """
        raise NotImplementedError

    def runtime(self, workload: Workload) -> Array:
        """The runtimes that the estimates are made from, int64 s: killed at the users' limits where those stay."""
        if self.limit == "user":
            return np.minimum(workload.runtime, workload.requested)
        return workload.runtime


def cut_short(workload: Workload, model: EstimateModel, seed: int = 0) -> int:
    """How many jobs a model's estimates kill: those that run longer. 0 where the kill limit stays the users'.

    Mualem01 means about one job in ten to be killed, and any model with a largest estimate kills the jobs beyond it.

    >>> from walltime.estimates import Mualem01
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[100, 9000], procs=[1, 1], machine_procs=1)
    >>> cut_short(jobs, Mualem01(under=0, cap=3600))
    1
    """
    return int(np.count_nonzero(workload.runtime > model.draw(workload, seed))) if model.limit == "model" else 0


def whole_seconds(estimates: Array, runtime: Array) -> Array:
    """Estimates rounded to the nearest second, halves up, at least the runtime and at least 1 (SPEC Q-02).

    Nothing is over `MAX_TIME`, which no workload takes.

    >>> whole_seconds(np.array([2.5, 0.0]), np.array([2, 0])).tolist()
    [3, 1]
    """
    rounded = np.floor(np.minimum(estimates, MAX_TIME) + 0.5).astype(np.int64)
    return np.maximum(np.maximum(rounded, runtime), 1)
