"""The base class of all estimate models."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.specification import Specification
from walltime.workload import Array, Workload
from walltime.workload.workload import MAX_TIME


@dataclass(frozen=True)
class EstimateModel(Specification):
    """A model of the runtime estimates that a scheduler plans with."""

    limit: Literal["model", "user"] = field(default="model", kw_only=True)
    """kill limit: with `model`, the estimates, which replace the users' requests; with `user`, the users' requests, so that the scheduler
    only plans with the estimates"""

    @property
    def random(self) -> bool:
        """Return whether the estimates depend on the seed."""
        return False

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return estimates, int64 seconds, at least 1, one per job.

        The estimate of a job depends only on the seed, the job id and the job's own times; in Tsafrir05, it depends on the whole set of
        jobs.
        """
        raise NotImplementedError

    def runtime(self, workload: Workload) -> Array:
        """Return the runtimes on which estimates are based, int64 s; they end at the users' limits if these are kept."""
        return np.minimum(workload.runtime, workload.requested) if self.limit == "user" else workload.runtime


def cut_short(workload: Workload, model: EstimateModel, seed: int = 0) -> int:
    """Return the number of jobs that exceed a model's estimates and are killed; 0 if the users' kill limits are kept.

    In Mualem01, about one job in ten is killed, and any model with a largest estimate kills the jobs beyond it.

    >>> from walltime.estimates import Mualem01
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[100, 9000], procs=[1, 1], machine_procs=1)
    >>> cut_short(jobs, Mualem01(under=0, cap=3600))
    1
    """
    return int(np.count_nonzero(workload.runtime > model.draw(workload, seed))) if model.limit == "model" else 0


def whole_seconds(estimates: Array, runtime: Array) -> Array:
    """Round estimates to the nearest second, half up; they are at least the runtime and 1, and at most `MAX_TIME`.

    >>> whole_seconds(np.array([2.5, 0.0]), np.array([2, 0])).tolist()
    [3, 1]
    """
    rounded = np.floor(np.minimum(estimates, MAX_TIME) + 0.5).astype(np.int64)
    return np.maximum(np.maximum(rounded, runtime), 1)


@dataclass(frozen=True)
class UserEstimates(EstimateModel):
    """The users' own requests, which remain the kill limit, unless they are truncated."""

    limit: Annotated[Literal["model", "user"], Field(inside=True)] = field(default="user", kw_only=True, init=False)
    truncated: Annotated[int | None, Field(least=1)] = None
    """largest request, E_max, s; longer requests and runtimes are cut to it (the truncated real estimates of tsafrir06, Fig. 13)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "limit", "user" if self.truncated is None else "model")

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return the requests, at most `truncated`."""
        return workload.requested if self.truncated is None else np.minimum(workload.requested, self.truncated)


@dataclass(frozen=True)
class ExactEstimates(EstimateModel):
    """Perfect estimates: the runtimes themselves, at least 1 s.

    Source: mualem01, section 4.2, f = 1.
    """

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return the runtimes, at least 1."""
        return np.maximum(self.runtime(workload), 1)


@dataclass(frozen=True)
class FactorEstimates(EstimateModel):
    """The users' requests times a factor, with which the scheduler plans; the request remains the kill limit.

    For doubled perfect estimates, use `FModel(2, deterministic=True)`.

    Source: mualem01, section 4.5, and tsafrir06, Fig. 2, with a factor of 2.
    """

    positional: ClassVar[tuple[str, ...]] = ("factor",)
    limit: Literal["model", "user"] = field(default="user", kw_only=True)
    factor: Annotated[float, Field(above=0, most=1_000_000)]
    """factor of the requests"""

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return the products, rounded to the nearest second, at least 1."""
        return whole_seconds(workload.requested * self.factor, np.ones(1, np.int64))


OVERRUN = ("kill", "extend", "continue")


def effective_times(workload: Workload, overrun: str) -> tuple[Array, Array]:
    """Return the effective runtime and the scheduler's initial estimate of each job, int64 seconds, under an overrun rule.

    With `kill`, as in mualem01 and tsafrir06, section I, jobs end at their request; the papers leave the other rules open.
    """
    return effective(workload.runtime, workload.requested, workload.planned, overrun)


def effective(runtime: Array, requested: Array, planned: Array, overrun: str) -> tuple[Array, Array]:
    """Return the same as `effective_times` from single columns; raises PolicyError for an unknown rule."""
    match overrun:
        case "kill":
            return np.minimum(runtime, requested), planned
        case "extend":
            return runtime, np.maximum(planned, runtime)
        case "continue":
            return runtime, planned
    raise PolicyError(f"unknown overrun rule {overrun!r}. Valid rules: {', '.join(OVERRUN)}", "unknown_overrun_rule")
