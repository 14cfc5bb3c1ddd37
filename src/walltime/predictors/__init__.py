"""Predict the runtime of a job from the jobs that have ended.

Each predictor has a module with a plain form, which defines it, and a compiled form; registry.py lists the predictors.
"""

from typing import TYPE_CHECKING

from walltime.lazy import lazy
from walltime.predictors import registry
from walltime.specification import module_map

if TYPE_CHECKING:
    from walltime.predictors.base import (
        KEYS as KEYS,
        Basis as Basis,
        FinishedJob as FinishedJob,
        Guess as Guess,
        Jobs as Jobs,
        PlainPredictor as PlainPredictor,
        Predictor as Predictor,
        StartedJob as StartedJob,
        SubmittedJob as SubmittedJob,
        below_remark as below_remark,
        predictor as predictor,
    )
    from walltime.predictors.hindsight import twins as twins
    from walltime.predictors.history import log_ends as log_ends
    from walltime.predictors.prediction import Correction as Correction, Prediction as Prediction, PredictionUses as PredictionUses
    from walltime.predictors.registry import PREDICTORS as PREDICTORS, parse_predictor as parse_predictor
    from walltime.predictors.tang13 import STATISTICS as STATISTICS, WINDOWS as WINDOWS

__getattr__, __dir__, __all__ = lazy(__name__, module_map(registry.PREDICTORS))
