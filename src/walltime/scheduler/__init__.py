"""What a simulation is told: a policy, orders, predictions (specification.py), and an engine that is ready for it (engines.py)."""

from walltime.scheduler.prediction import PredictionRecord
from walltime.scheduler.specification import Scheduler, parse_scheduler

__all__ = [
    "PredictionRecord",
    "Scheduler",
    "parse_scheduler",
]
