"""The base class of all estimate models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.specification import Specification
from walltime.workload import Workload
from walltime.workload.workload import MAX_TIME

Array = np.ndarray


@dataclass(frozen=True)
class EstimateModel(Specification):
    """A model of the runtimes that a scheduler is told."""

    limit: Literal["model", "user"] = field(default="model", kw_only=True)
    """when jobs are killed: with `model` the estimates replace the users' requests and are also the kill limit; with `user` only the
    scheduler's view changes, and the users' requests remain the kill limit"""

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


@dataclass(frozen=True)
class UserEstimates(EstimateModel):
    """The users' own requests, which remain the kill limit, unless they are truncated."""

    limit: Annotated[Literal["model", "user"], Key(inside=True)] = field(default="user", kw_only=True, init=False)
    truncated: Annotated[int | None, Key(least=1)] = None
    """requests and runtimes are cut at this many seconds, E_max, as for the real estimates beside the truncated f-model in tsafrir06,
    Fig. 13; it is the kill limit then"""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "limit", "user" if self.truncated is None else "model")

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The requests, at most `truncated`."""
        return workload.requested if self.truncated is None else np.minimum(workload.requested, self.truncated)


@dataclass(frozen=True)
class ExactEstimates(EstimateModel):
    """Perfect estimates: the runtimes themselves, at least 1 s.

    Source: mualem01, section 4.2, f = 1.
    """

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The runtimes, at least 1."""
        return np.maximum(self.runtime(workload), 1)


@dataclass(frozen=True)
class FactorEstimates(EstimateModel):
    """The users' requests times a factor, for the scheduler only: the request remains the kill limit.

    Doubled perfect estimates are another model, `FModel(2, deterministic=True)`.

    Source: mualem01, section 4.5, and tsafrir06, Fig. 2, with a factor of 2.
    """

    positional: ClassVar[tuple[str, ...]] = ("factor",)
    limit: Literal["model", "user"] = field(default="user", kw_only=True)
    factor: Annotated[float, Key(above=0, most=1_000_000)]
    """what requests are multiplied with"""

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """The products, rounded to the nearest second, at least 1."""
        return whole_seconds(workload.requested * self.factor, np.ones(1, np.int64))


OVERRUN = ("kill", "extend", "continue")


def effective_times(workload: Workload, overrun: str) -> tuple[Array, Array]:
    """Effective runtime and the scheduler's estimate of each job, int64 seconds, under an overrun rule.

    `kill`, as in mualem01 and tsafrir06, section I, ends jobs at their request; the papers leave the other rules open.
    """
    return effective(workload.runtime, workload.requested, workload.believed, overrun)


def effective(runtime: Array, requested: Array, believed: Array, overrun: str) -> tuple[Array, Array]:
    """The same for given columns; raises PolicyError for an unknown rule."""
    match overrun:
        case "kill":
            return np.minimum(runtime, requested), believed
        case "extend":
            return runtime, np.maximum(believed, runtime)
        case "continue":
            return runtime, believed
    raise PolicyError(f"unknown overrun rule {overrun!r}; known are {', '.join(OVERRUN)}", "unknown_overrun_rule")
