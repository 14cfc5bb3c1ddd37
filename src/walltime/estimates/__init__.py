"""Believe: what the scheduler is told about the runtimes."""

from walltime.estimates.models import ESTIMATES, EstimateModel, ExactEstimates, FactorEstimates, UserEstimates, parse_estimates

__all__ = ["ESTIMATES", "EstimateModel", "ExactEstimates", "FactorEstimates", "UserEstimates", "parse_estimates"]
