"""Predictors: the runtime of a job, learned from the jobs that have ended.

One module per predictor, with its plain form, which defines it, and its compiled form; the table is in registry.py.
"""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.predictors.base import Basis as Basis
    from walltime.predictors.base import FinishedJob as FinishedJob
    from walltime.predictors.base import Guess as Guess
    from walltime.predictors.base import Learner as Learner
    from walltime.predictors.base import PlainPredictor as PlainPredictor
    from walltime.predictors.base import Predictor as Predictor
    from walltime.predictors.base import StartedJob as StartedJob
    from walltime.predictors.base import SubmittedJob as SubmittedJob
    from walltime.predictors.base import predictor as predictor
    from walltime.predictors.belief import BELIEFS as BELIEFS
    from walltime.predictors.belief import CORRECTIONS as CORRECTIONS
    from walltime.predictors.belief import Belief as Belief
    from walltime.predictors.belief import Correction as Correction
    from walltime.predictors.belief import parse_belief as parse_belief
    from walltime.predictors.belief import parse_correction as parse_correction
    from walltime.predictors.exact import ExactRuntime as ExactRuntime
    from walltime.predictors.gaussier15 import Gaussier15 as Gaussier15
    from walltime.predictors.history import History as History
    from walltime.predictors.history import LogHistory as LogHistory
    from walltime.predictors.history import Past as Past
    from walltime.predictors.history import check_columns as check_columns
    from walltime.predictors.history import log_ends as log_ends
    from walltime.predictors.keys import KEYS as KEYS
    from walltime.predictors.known import Jobs as Jobs
    from walltime.predictors.known import alike as alike
    from walltime.predictors.last import LastRun as LastRun
    from walltime.predictors.mualem01 import Mualem01History as Mualem01History
    from walltime.predictors.prediction import HISTORIES as HISTORIES
    from walltime.predictors.prediction import Prediction as Prediction
    from walltime.predictors.quantile import Quantile as Quantile
    from walltime.predictors.registry import PREDICTOR_NAMES as PREDICTOR_NAMES
    from walltime.predictors.registry import PREDICTORS as PREDICTORS
    from walltime.predictors.registry import parse_predictor as parse_predictor
    from walltime.predictors.registry import predictor_class as predictor_class
    from walltime.predictors.similar15 import Similar15 as Similar15
    from walltime.predictors.tang13 import STATISTICS as STATISTICS
    from walltime.predictors.tang13 import WINDOWS as WINDOWS
    from walltime.predictors.tang13 import Tang13 as Tang13
    from walltime.predictors.tsafrir07 import Tsafrir07 as Tsafrir07
    from walltime.predictors.user import UserRequest as UserRequest

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "predictors.base": (
            "Basis",
            "FinishedJob",
            "Guess",
            "Learner",
            "PlainPredictor",
            "Predictor",
            "StartedJob",
            "SubmittedJob",
            "predictor",
        ),
        "predictors.belief": (
            "BELIEFS",
            "CORRECTIONS",
            "Belief",
            "Correction",
            "parse_belief",
            "parse_correction",
        ),
        "predictors.exact": ("ExactRuntime",),
        "predictors.gaussier15": ("Gaussier15",),
        "predictors.history": (
            "History",
            "LogHistory",
            "Past",
            "check_columns",
            "log_ends",
        ),
        "predictors.keys": ("KEYS",),
        "predictors.known": ("Jobs", "alike"),
        "predictors.last": ("LastRun",),
        "predictors.mualem01": ("Mualem01History",),
        "predictors.prediction": (
            "HISTORIES",
            "Prediction",
        ),
        "predictors.quantile": ("Quantile",),
        "predictors.registry": (
            "PREDICTOR_NAMES",
            "PREDICTORS",
            "parse_predictor",
            "predictor_class",
        ),
        "predictors.similar15": ("Similar15",),
        "predictors.tang13": (
            "STATISTICS",
            "WINDOWS",
            "Tang13",
        ),
        "predictors.tsafrir07": ("Tsafrir07",),
        "predictors.user": ("UserRequest",),
    },
)
