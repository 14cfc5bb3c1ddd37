"""Estimate models by name."""

from __future__ import annotations

from walltime.estimates.base import EstimateModel, ExactEstimates, FactorEstimates, UserEstimates
from walltime.estimates.fmodel import FModel
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.tsafrir05 import Tsafrir05
from walltime.specification import Family, Variant

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
)
parse_estimates = ESTIMATES.parse
"""Return the model with a specification, such as `f:11,truncated=64800`; raises PolicyError for an unknown one."""
