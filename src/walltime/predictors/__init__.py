"""Predict the runtime of a job from the jobs that have ended.

Each predictor has a module with a plain form, which defines it, and a compiled form; registry.py lists the predictors.
"""

from typing import TYPE_CHECKING

from walltime.lazy import lazy
from walltime.predictors import registry
from walltime.specification import module_map

if TYPE_CHECKING:
    from walltime.predictors.base import KEYS as KEYS
    from walltime.predictors.base import Basis as Basis
    from walltime.predictors.base import FinishedJob as FinishedJob
    from walltime.predictors.base import Guess as Guess
    from walltime.predictors.base import Jobs as Jobs
    from walltime.predictors.base import PlainPredictor as PlainPredictor
    from walltime.predictors.base import Predictor as Predictor
    from walltime.predictors.base import StartedJob as StartedJob
    from walltime.predictors.base import SubmittedJob as SubmittedJob
    from walltime.predictors.base import below_remark as below_remark
    from walltime.predictors.base import predictor as predictor
    from walltime.predictors.hindsight import twins as twins
    from walltime.predictors.history import log_ends as log_ends
    from walltime.predictors.prediction import Correction as Correction
    from walltime.predictors.prediction import Prediction as Prediction
    from walltime.predictors.prediction import PredictionUses as PredictionUses
    from walltime.predictors.registry import PREDICTORS as PREDICTORS
    from walltime.predictors.registry import parse_predictor as parse_predictor
    from walltime.predictors.tang13 import STATISTICS as STATISTICS
    from walltime.predictors.tang13 import WINDOWS as WINDOWS

__getattr__, __dir__, __all__ = lazy(__name__, module_map(registry.PREDICTORS))
