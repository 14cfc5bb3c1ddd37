"""Estimate models: the runtimes that a scheduler plans with."""

from walltime.estimates.base import OVERRUN as OVERRUN
from walltime.estimates.base import EstimateModel as EstimateModel
from walltime.estimates.base import ExactEstimates as ExactEstimates
from walltime.estimates.base import FactorEstimates as FactorEstimates
from walltime.estimates.base import UserEstimates as UserEstimates
from walltime.estimates.base import cut_short as cut_short
from walltime.estimates.base import effective as effective
from walltime.estimates.base import effective_times as effective_times
from walltime.estimates.fmodel import FModel as FModel
from walltime.estimates.fmodel import wrong_order_probability as wrong_order_probability
from walltime.estimates.modes import largest_estimate as largest_estimate
from walltime.estimates.mualem01 import Mualem01 as Mualem01
from walltime.estimates.own import OwnEstimates as OwnEstimates
from walltime.estimates.registry import ESTIMATES as ESTIMATES
from walltime.estimates.registry import parse_estimates as parse_estimates
from walltime.estimates.tsafrir05 import Tsafrir05 as Tsafrir05
