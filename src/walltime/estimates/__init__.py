"""Estimate models: what the scheduler is told about the runtimes."""

from walltime.estimates.fmodel import FModel, wrong_order_probability
from walltime.estimates.model import EstimateModel, cut_short
from walltime.estimates.modes import largest_estimate
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.names import ESTIMATE_NAMES, parse_estimates
from walltime.estimates.simple import ExactEstimates, FactorEstimates, UserEstimates
from walltime.estimates.tsafrir05 import Tsafrir05

__all__ = [
    "ESTIMATE_NAMES",
    "EstimateModel",
    "ExactEstimates",
    "FModel",
    "FactorEstimates",
    "Mualem01",
    "Tsafrir05",
    "UserEstimates",
    "cut_short",
    "largest_estimate",
    "parse_estimates",
    "wrong_order_probability",
]
