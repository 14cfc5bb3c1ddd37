"""Estimate models by name."""

from __future__ import annotations

from functools import partial
from typing import Any

from walltime.estimates.base import EstimateModel, ExactEstimates, FactorEstimates, UserEstimates
from walltime.estimates.fmodel import FModel
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.own import OwnEstimates
from walltime.estimates.tsafrir05 import Tsafrir05
from walltime.plugins.parts import OWN_SPELLING, own_variants
from walltime.specification import Family, Variant


def _model_of(model: Any, spelling: str) -> Variant:
    """Return the form of a user's model: a class of `EstimateModel`, or a function of a workload and a seed."""
    if isinstance(model, EstimateModel) or (isinstance(model, type) and issubclass(model, EstimateModel)):
        return Variant(model)
    return Variant(OwnEstimates, make=partial(OwnEstimates.of, model, spelling), free=True, declared={})


ESTIMATES = Family(
    EstimateModel,
    "estimates",
    {
        "user": Variant(UserEstimates),
        "exact": Variant(ExactEstimates),
        "double": Variant(FactorEstimates, {"factor": 2.0}, meaning="The users' requests, doubled for the scheduler only."),
        "factor": Variant(FactorEstimates),
        "f": Variant(FModel),
        "badness": Variant(
            FModel,
            make=lambda **options: FModel.of_badness(options.pop("F"), **options),
            meaning="The f-model given by the badness of tsafrir06, F - 1.",
        ),
        "mualem01": Variant(Mualem01),
        "tsafrir05": Variant(Tsafrir05),
    },
    own_variants("estimates", "estimate model", _model_of),
    OWN_SPELLING,
    group="estimates",
)
parse_estimates = ESTIMATES.parse
"""Return the estimate model for a specification such as `f:11,truncated=64800`; raises PolicyError for an unknown model."""
