"""Estimate models: the runtimes that a scheduler plans with."""

from walltime.estimates.base import (
    OVERRUN as OVERRUN,
    EstimateModel as EstimateModel,
    ExactEstimates as ExactEstimates,
    FactorEstimates as FactorEstimates,
    UserEstimates as UserEstimates,
    cut_short as cut_short,
    effective as effective,
    effective_times as effective_times,
)
from walltime.estimates.fmodel import FModel as FModel, wrong_order_probability as wrong_order_probability
from walltime.estimates.modes import largest_estimate as largest_estimate
from walltime.estimates.mualem01 import Mualem01 as Mualem01
from walltime.estimates.registry import ESTIMATES as ESTIMATES, OwnEstimates as OwnEstimates, parse_estimates as parse_estimates
from walltime.estimates.tsafrir05 import Tsafrir05 as Tsafrir05
