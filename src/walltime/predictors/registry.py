"""The table of predictors, one line each."""

from __future__ import annotations

from functools import partial

from walltime.errors import PolicyError
from walltime.policy.files import load_named
from walltime.predictors.base import PlainPredictor, Predictor
from walltime.specification import Family, Form


def _of_own(text: str) -> tuple[Form, str] | None:
    """A class of one's own; what is no `Predictor` is made anew for each run, with its options."""
    loaded = load_named(text, "predictor")
    if loaded is None:
        return None
    kind, options = loaded
    if isinstance(kind, Predictor) or (isinstance(kind, type) and issubclass(kind, Predictor)):
        return Form(kind), options
    return Form(PlainPredictor, make=partial(_plain, kind, text), free=True), options


def _plain(kind: object, text: str, **options: object) -> PlainPredictor:
    if not callable(kind):
        raise PolicyError(f"a custom predictor is a class or function that returns a new one, not {kind!r}")
    return PlainPredictor(kind, text, tuple(options.items()))


PREDICTORS = Family(
    Predictor,
    "predictor",
    {
        "tang13": Form("walltime.predictors.tang13:Tang13"),
        "mualem01-history": Form("walltime.predictors.mualem01:Mualem01History"),
        "tsafrir07": Form("walltime.predictors.tsafrir07:Tsafrir07"),
        "gaussier15": Form("walltime.predictors.gaussier15:Gaussier15"),
        "similar15": Form("walltime.predictors.similar15:Similar15"),
        "quantile": Form("walltime.predictors.quantile:Quantile"),
        "last": Form("walltime.predictors.tsafrir07:LastRun"),
        "exact": Form("walltime.predictors.unlearned:ExactRuntime"),
        "user": Form("walltime.predictors.unlearned:UserRequest"),
        "column": Form("walltime.predictors.external:LogColumn"),
        "file": Form("walltime.predictors.external:PredictionFile"),
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
