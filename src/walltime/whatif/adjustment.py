"""Simulate a side-car that sets TimeMin, Slurm's minimum time limit: the values, predicted from the log, and a scheduler that uses them."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.machine import Machine
from walltime.policy import Slurm
from walltime.predictors import PREDICTORS, Correction, Jobs, Prediction, PredictionUses, Predictor, log_ends
from walltime.simulation.job_predictions import predict_in_log
from walltime.simulation.specification import Scheduler
from walltime.specification import Specification, options_of
from walltime.workload import Array, Workload

FLOOR = 10
"""Smallest TimeMin, minutes."""
GAIN = 0.9
"""TimeMin is set only up to this share of the time limit, because a longer one would gain too little."""


@dataclass(frozen=True)
class TimeMin(Predictor):
    """Predict the column `time_min` of a job if it is positive, else its requested time."""

    @property
    def unlisted(self) -> str:
        """Return the label of the predictor, which is the name of the column."""
        return "time_min"

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the column `time_min` if positive, else the request, int64 s."""
        least = workload.columns["time_min"]
        return np.where(least > 0, least, requested)

    @property
    def is_compiled(self) -> bool:
        """Return True: predictions do not depend on finished jobs, so they are known before the simulation."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the workload must have."""
        return ("time_min",)


@dataclass(frozen=True)
class Adjustment(Specification):
    """A side-car that sets each job's TimeMin at submission to the runtime predicted from earlier jobs, in whole minutes."""

    predictor: Predictor
    """the predictor of runtimes"""
    floor: Annotated[int, Field(least=1)] = FLOOR
    """least TimeMin, minutes"""
    gain: Annotated[float, Field(above=0, most=1)] = GAIN
    """largest TimeMin that is set, as a share of the limit"""

    def apply(self, workload: Workload) -> Workload:
        """Return the workload with the column `time_min`, int64 s, -1 for none; values set by users stay.

        Raises WorkloadError for a log without recorded waits.
        """
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
    """Return today's scheduler, changed to plan waiting jobs with the column `time_min`.

    With `time_min_as_soft_limit`, running jobs are planned as Slurm plans them with this parameter, otherwise with the users' limits, which
    the side-car restores at the start. Raises PolicyError for a scheduler that already uses predictions.
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
        restored = replace(own, time_min_as_soft_limit=True, soft_limit_running="limit")
        return today if soft else Scheduler(restored)
    half = soft and settings["soft_limit_running"] == "half"
    return Scheduler(
        today.policy, Prediction(TimeMin(), PredictionUses(order=False, running=half), Correction("half" if half else "tsafrir07"))
    )


def parse_adjustment(text: str) -> Adjustment:
    """Return the side-car for a predictor and its options, which may include `floor=MINUTES` and `gain=SHARE`; raises PolicyError.

    >>> parse_adjustment("tang13:key=request,floor=20").floor, parse_adjustment("tang13:key=request,floor=20").predictor.label
    (20, 'tang13:key=request')
    """
    form, values, own = PREDICTORS.read(text, {key: one for key, one in options_of(Adjustment).items() if key != "predictor"})
    return Adjustment(PREDICTORS.build(text, form, values), **own)
