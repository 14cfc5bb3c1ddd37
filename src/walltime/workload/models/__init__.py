"""Workload models: one module for each paper, and all models by name, as on the command line and in campaign files."""

from functools import partial
from typing import Any

from walltime.plugins.parts import OWN_SPELLING, own_variants
from walltime.specification import Family, Variant
from walltime.workload.models.downey97 import Downey97
from walltime.workload.models.feitelson96 import Feitelson96, FeitelsonVariant, Marginals
from walltime.workload.models.jann97 import HyperErlang, Jann97, fit_hyper_erlang
from walltime.workload.models.lublin99 import Lublin99, LublinClass
from walltime.workload.models.model import OwnModel, WorkloadModel

__all__ = [
    "MODELS",
    "Downey97",
    "Feitelson96",
    "FeitelsonVariant",
    "HyperErlang",
    "Jann97",
    "Lublin99",
    "LublinClass",
    "Marginals",
    "WorkloadModel",
    "fit_hyper_erlang",
    "parse_model",
]


def _model_of(model: Any, spelling: str) -> Variant:
    """Return the variant for a user's model: a subclass of `WorkloadModel`, or a function that returns a workload."""
    if isinstance(model, WorkloadModel) or (isinstance(model, type) and issubclass(model, WorkloadModel)):
        return Variant(model)
    return Variant(OwnModel, make=partial(OwnModel.of, model, spelling), free=True, declared={})


MODELS = Family(
    WorkloadModel,
    "workload model",
    {
        "lublin99": Variant(Lublin99, {"classes": "both"}),
        "lublin99-typeless": Variant(Lublin99, {"classes": "typeless"}, meaning="Lublin'99 with a single class of jobs."),
        "feitelson96": Variant(Feitelson96),
        "feitelson96-fs": Variant(FeitelsonVariant, {"variant": "s"}, meaning="Feitelson'96 with the sizes of a log; our construction."),
        "feitelson96-fl": Variant(FeitelsonVariant, {"variant": "l"}, meaning="Feitelson'96 with the runtimes of a log; our construction."),
        "feitelson96-fsl": Variant(FeitelsonVariant, {"variant": "sl"}, meaning="Feitelson'96 with the sizes and runtimes of a log."),
        "jann97": Variant(Jann97),
        "downey97": Variant(Downey97),
    },
    own_variants("models", "workload model", _model_of),
    OWN_SPELLING,
    group="models",
)
"""The models by name."""


def parse_model(text: str | WorkloadModel) -> WorkloadModel:
    """Return the model with this specification; raises PolicyError for an unknown one.

    >>> parse_model("downey97:size-rule=half-efficiency-knee,mean-gap=600").mean_gap
    600.0
    >>> sorted(MODELS)  # doctest: +NORMALIZE_WHITESPACE
    ['downey97', 'feitelson96', 'feitelson96-fl', 'feitelson96-fs', 'feitelson96-fsl', 'jann97', 'lublin99',
     'lublin99-typeless']
    """
    return MODELS.parse(text)
