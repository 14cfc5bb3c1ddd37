"""Estimate models by name, and the model made from a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.estimates.base import EstimateModel, ExactEstimates, FactorEstimates, UserEstimates, whole_seconds
from walltime.estimates.fmodel import FModel
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.tsafrir05 import Tsafrir05
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import OWN_SPELLING, function_options, own_variants
from walltime.specification import Family, Variant, spell
from walltime.wording import shown
from walltime.workload import Array, Workload

FORM = "def NAME(workload, seed), or def NAME(workload) if nothing is random, with defaults for options"


@dataclass(frozen=True)
class OwnEstimates(EstimateModel):
    """Estimates from a user's function of the workload and the seed, which returns seconds, one per job.

    `options`: additional arguments of the function.
    """

    function: Annotated[Callable[..., Any], Field(inside=True)] = len
    spelling: Annotated[str, Field(inside=True)] = ""
    options: Annotated[tuple[tuple[str, Any], ...], Field(inside=True)] = ()

    @classmethod
    def of(cls, function: Any, spelling: str = "", limit: Any = "model", **options: Any) -> OwnEstimates:
        """Return the model of a function; raises PolicyError if the function has other parameters."""
        model = cls(limit=limit, function=function, spelling=spelling, options=tuple(options.items()))
        assert isinstance(model.random, bool)
        return model

    @property
    def random(self) -> bool:
        """Return whether the function takes the seed."""
        return function_options(self.function, ("workload", "seed"), "an estimate model", FORM)

    @property
    def label(self) -> str:
        """Return the name with the options."""
        options = [("limit", self.limit)] * (self.limit != "model") + [*self.options]
        texts = [f"{name.replace('_', '-')}={spell(value)}" for name, value in options]
        return ",".join([self.spelling or self.function.__name__, *texts])

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return the estimates of the function as whole seconds, at least 1.

        Raises PolicyError for a wrong number of values, or a value that is not a number of seconds.
        """
        given = {"seed": seed} if self.random else {}
        with user_code(f"the estimate model {self.label}", self.function, FORM):
            estimates = np.asarray(self.function(workload, **given, **dict(self.options)), np.float64)
        where = f"{location_of(self.function)}the estimate model {self.label}"
        if estimates.shape != (len(workload),):
            raise PolicyError(f"{where} must return one value for each of {len(workload)} jobs, not {estimates.shape}", "wrong_length")
        if (wrong := ~(np.isfinite(estimates) & (estimates >= 0))).any():
            job = int(wrong.argmax())
            raise PolicyError(f"{where} gives {shown(float(estimates[job]))} for job number {job + 1}, not seconds", "wrong_value")
        return whole_seconds(estimates, np.zeros(len(workload), np.int64))


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
