"""The table of predictors by name."""

from __future__ import annotations

from typing import Any

from walltime.plugins.parts import OWN_SPELLING, own_variants
from walltime.predictors.base import PlainPredictor, Predictor
from walltime.specification import Family, Variant, spell


def _predictor_of(kind: Any, spelling: str) -> Variant:
    """Return the form of a custom class; a class that is not a `Predictor` is created for each run, with its options."""
    if isinstance(kind, Predictor) or (isinstance(kind, type) and issubclass(kind, Predictor)):
        return Variant(kind)

    def make(**given: Any) -> PlainPredictor:
        texts = [f"{name.replace('_', '-')}={spell(value)}" for name, value in given.items()]
        return PlainPredictor(kind, ",".join([spelling, *texts]), tuple(given.items()))

    return Variant(PlainPredictor, make=make, free=True, declared={})


PREDICTORS = Family(
    Predictor,
    "predictor",
    {
        "tang13": Variant("walltime.predictors.tang13:Tang13"),
        "mualem01-history": Variant("walltime.predictors.mualem01:Mualem01History"),
        "tsafrir07": Variant("walltime.predictors.tsafrir07:Tsafrir07"),
        "gaussier15": Variant("walltime.predictors.gaussier15:Gaussier15"),
        "similar15": Variant("walltime.predictors.similar15:Similar15"),
        "quantile": Variant("walltime.predictors.quantile:Quantile"),
        "last": Variant("walltime.predictors.tsafrir07:LastRun"),
        "exact": Variant("walltime.predictors.unlearned:ExactRuntime"),
        "user": Variant("walltime.predictors.unlearned:UserRequest"),
        "column": Variant("walltime.predictors.unlearned:LogColumn"),
        "file": Variant("walltime.predictors.unlearned:PredictionFile"),
    },
    own_variants("predictors", "predictor", _predictor_of),
    OWN_SPELLING,
    group="predictors",
)
"""The predictors by name; each is imported on first use."""


def parse_predictor(text: str | Predictor) -> Predictor:
    """Return the predictor with this specification; raises PolicyError for an unknown one.

    `column:NAME` and `file:PATH` are predictions made elsewhere; `FILE.py:CLASS` is a custom class, which also accepts options.

    >>> parse_predictor("tang13:key=double,statistic=p95,window=all,threshold=0.5").label
    'tang13:key=double,statistic=p95,window=all,threshold=0.5'
    >>> parse_predictor("tsafrir07:k=3,recompute=yes").label, parse_predictor("file:mine.csv,column=p90").label
    ('tsafrir07:k=3,recompute=yes', 'file:mine.csv,column=p90')
    """
    return PREDICTORS.parse(text)
