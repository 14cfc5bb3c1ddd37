"""Believe: what the scheduler is told about the runtimes."""

from walltime.estimates.fmodel import FModel, wrong_order_probability
from walltime.estimates.model import EstimateModel, cut_short
from walltime.estimates.modes import largest_estimate
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.names import ESTIMATE_NAMES, parse_estimates
from walltime.estimates.predictors import (
    KEYS,
    PREDICTOR_NAMES,
    Basis,
    ExactRuntime,
    FinishedJob,
    Gaussier15,
    Guess,
    LastRun,
    Mualem01History,
    PlainPredictor,
    Predictor,
    StartedJob,
    SubmittedJob,
    Tang13,
    Tsafrir07,
    UserRequest,
    parse_predictor,
    predictor,
)
from walltime.estimates.simple import ExactEstimates, FactorEstimates, UserEstimates
from walltime.estimates.tsafrir05 import Tsafrir05

__all__ = [
    "ESTIMATE_NAMES",
    "KEYS",
    "PREDICTOR_NAMES",
    "Basis",
    "EstimateModel",
    "ExactEstimates",
    "ExactRuntime",
    "FModel",
    "FactorEstimates",
    "FinishedJob",
    "Gaussier15",
    "Guess",
    "LastRun",
    "Mualem01",
    "Mualem01History",
    "PlainPredictor",
    "Predictor",
    "StartedJob",
    "SubmittedJob",
    "Tang13",
    "Tsafrir05",
    "Tsafrir07",
    "UserEstimates",
    "UserRequest",
    "cut_short",
    "largest_estimate",
    "parse_estimates",
    "parse_predictor",
    "predictor",
    "wrong_order_probability",
]
