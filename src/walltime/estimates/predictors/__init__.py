"""Predictors: how long a job will run, learned from the jobs that have ended. One file per idea; names.py knows them all."""

from walltime.estimates.predictors.base import (
    KEYS,
    Basis,
    FinishedJob,
    Guess,
    Learner,
    PlainPredictor,
    Predictor,
    StartedJob,
    SubmittedJob,
    predictor,
)
from walltime.estimates.predictors.gaussier15 import Gaussier15
from walltime.estimates.predictors.history import History, LogHistory, Past, log_ends
from walltime.estimates.predictors.mualem01 import Mualem01History
from walltime.estimates.predictors.names import PREDICTOR_NAMES, parse_predictor
from walltime.estimates.predictors.simple import ExactRuntime, UserRequest
from walltime.estimates.predictors.tang13 import STATISTICS, WINDOWS, Tang13
from walltime.estimates.predictors.tsafrir07 import LastRun, Tsafrir07

__all__ = [
    "KEYS",
    "PREDICTOR_NAMES",
    "STATISTICS",
    "WINDOWS",
    "Basis",
    "ExactRuntime",
    "FinishedJob",
    "Gaussier15",
    "Guess",
    "History",
    "LastRun",
    "Learner",
    "LogHistory",
    "Mualem01History",
    "Past",
    "PlainPredictor",
    "Predictor",
    "StartedJob",
    "SubmittedJob",
    "Tang13",
    "Tsafrir07",
    "UserRequest",
    "log_ends",
    "parse_predictor",
    "predictor",
]
