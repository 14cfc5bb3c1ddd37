"""Estimate models: what the scheduler is told about the runtimes."""

from walltime.estimates.base import (
    OVERRUN,
    EstimateModel,
    ExactEstimates,
    FactorEstimates,
    UserEstimates,
    cut_short,
    effective,
    effective_times,
)
from walltime.estimates.fmodel import FModel, wrong_order_probability
from walltime.estimates.modes import largest_estimate
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.registry import ESTIMATES, parse_estimates
from walltime.estimates.tsafrir05 import Tsafrir05

__all__ = [
    "ESTIMATES",
    "OVERRUN",
    "EstimateModel",
    "ExactEstimates",
    "FModel",
    "FactorEstimates",
    "Mualem01",
    "Tsafrir05",
    "UserEstimates",
    "cut_short",
    "effective",
    "effective_times",
    "largest_estimate",
    "parse_estimates",
    "wrong_order_probability",
]
