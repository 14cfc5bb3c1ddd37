"""The table of predictors, one line each."""

from __future__ import annotations

from functools import partial

from walltime.errors import PolicyError
from walltime.policy.files import own
from walltime.predictors.base import PlainPredictor, Predictor
from walltime.specification import Family, Variant


def _of_own(text: str) -> tuple[Variant, str] | None:
    """A class of one's own; what is no `Predictor` is made anew for each run, with its options."""
    loaded = own(text, "predictor")
    if loaded is None:
        return None
    kind, options = loaded
    if isinstance(kind, Predictor) or (isinstance(kind, type) and issubclass(kind, Predictor)):
        return Variant(kind), options
    return Variant(PlainPredictor, make=partial(_plain, kind, text), free=True), options


def _plain(kind: object, text: str, **options: object) -> PlainPredictor:
    if not callable(kind):
        raise PolicyError(f"a custom predictor is a class or function that returns a new one, not {kind!r}")
    return PlainPredictor(kind, text, tuple(options.items()))


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
        "column": Variant("walltime.predictors.external:LogColumn"),
        "file": Variant("walltime.predictors.external:PredictionFile"),
    },
    _of_own,
    "FILE.py:CLASS for one of your own",
)
"""The predictors by name; each is imported on first use."""


def parse_predictor(text: str | Predictor) -> Predictor:
    """The predictor with this specification; raises PolicyError, in one line, for what is not known.

    `column:NAME` and `file:PATH` are predictions made elsewhere; `FILE.py:CLASS` is a class of one's own with `predict(job)` and
    `observe(job)`, and takes options too.

    >>> parse_predictor("tang13:key=double,statistic=p95,window=all,threshold=0.5").label
    'tang13:key=double,statistic=p95,window=all,threshold=0.5'
    >>> parse_predictor("tsafrir07:k=3,recompute=yes").label, parse_predictor("file:mine.csv,column=p90").label
    ('tsafrir07:k=3,recompute=yes', 'file:mine.csv,column=p90')
    """
    return PREDICTORS.parse(text)
