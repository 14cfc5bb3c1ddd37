"""A side-car that sets TimeMin: each job's TimeMin, learned from the log, and a scheduler that plans by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.machine import Machine
from walltime.policy import Slurm
from walltime.predictors import PREDICTORS, Belief, Correction, Jobs, Prediction, Predictor, log_ends
from walltime.simulation.job_predictions import predict_in_log
from walltime.simulation.specification import Scheduler
from walltime.specification import Specification, options_of
from walltime.workload import Array, Workload

FLOOR = 10
"""Smallest TimeMin, minutes."""
GAIN = 0.9
"""Largest TimeMin that is set, as a share of the limit."""


@dataclass(frozen=True)
class TimeMin(Predictor):
    """A job is predicted to take its `time_min`, if it has one, else its request."""

    @property
    def unlisted(self) -> str:
        """Return the column's name."""
        return "time_min"

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the column `time_min` if positive, else the request, int64 s."""
        least = workload.columns["time_min"]
        return np.where(least > 0, least, requested)

    @property
    def is_compiled(self) -> bool:
        """Return True, as it does not learn."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the required column."""
        return ("time_min",)


@dataclass(frozen=True)
class Adjustment(Specification):
    """A side-car that gives each job a TimeMin at submission: the runtime predicted from earlier jobs, in whole minutes."""

    predictor: Predictor
    """the predictor of runtimes"""
    floor: Annotated[int, Field(least=1)] = FLOOR
    """least TimeMin, minutes"""
    gain: Annotated[float, Field(above=0, most=1)] = GAIN
    """largest TimeMin that is set, as a share of the limit"""

    def apply(self, workload: Workload) -> Workload:
        """Return the jobs with the column `time_min`, s, -1 for none; users' own values stay. Raises WorkloadError without waits."""
        start, end, known = log_ends(workload)
        predicted, _ = predict_in_log(
            self.predictor, Jobs(workload, workload.requested, workload.requested, end - start), (start, end, known)
        )
        minutes = np.maximum(-(-predicted // 60), self.floor)
        asked = workload.requested / 60
        own = workload.columns.get("time_min", np.full(len(workload), -1))
        chosen = np.where((minutes < asked) & (minutes <= self.gain * asked), 60 * minutes, -1)
        return replace(workload, columns={**workload.columns, "time_min": np.where(own > 0, own, chosen).astype(np.int64)})


def planned_by_time_min(today: Scheduler, machine: Machine) -> Scheduler:
    """Return today's scheduler, planning waiting jobs by the column `time_min`.

    With time_min_as_soft_limit, running jobs are planned as that version of Slurm does, otherwise by their users' limits, which a side-car
    restores. Raises PolicyError for a scheduler with predictions.
    """
    if today.prediction is not None:
        raise PolicyError(
            f"the policy {today.label} already plans with predictions; use adjust with a policy without them", "unsupported_predictor"
        )
    own: Any = today.policy
    of_slurm = own.settings(machine.slurm)
    settings = Slurm().settings(machine.slurm) if of_slurm is None else of_slurm
    soft = bool(settings["time_min_as_soft_limit"])
    if of_slurm is not None:
        given_back = replace(own, time_min_as_soft_limit=True, soft_limit_running="limit")
        return today if soft else Scheduler(given_back)
    half = soft and settings["soft_limit_running"] == "half"
    return Scheduler(today.policy, Prediction(TimeMin(), Belief(order=False, running=half), Correction("half" if half else "tsafrir07")))


def parse_adjustment(text: str) -> Adjustment:
    """Parse a predictor with its options, `floor=MINUTES` and `gain=PART` among them; raises PolicyError.

    >>> parse_adjustment("tang13:key=request,floor=20").floor, parse_adjustment("tang13:key=request,floor=20").predictor.label
    (20, 'tang13:key=request')
    """
    form, values, own = PREDICTORS.read(text, {key: one for key, one in options_of(Adjustment).items() if key != "predictor"})
    return Adjustment(PREDICTORS.build(text, form, values), **own)
