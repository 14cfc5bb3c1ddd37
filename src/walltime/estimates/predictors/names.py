"""Predictors by name, as the command line and the campaign files spell them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from walltime.errors import PolicyError
from walltime.estimates.predictors.base import Predictor
from walltime.estimates.predictors.gaussier15 import Gaussier15
from walltime.estimates.predictors.mualem01 import Mualem01History
from walltime.estimates.predictors.simple import ExactRuntime, UserRequest
from walltime.estimates.predictors.tang13 import Tang13
from walltime.estimates.predictors.tsafrir07 import LastRun, Tsafrir07

_KINDS: tuple[type[Predictor], ...] = (Tang13, Mualem01History, Tsafrir07, Gaussier15, LastRun, ExactRuntime, UserRequest)
_BY_NAME = {kind.name: kind for kind in _KINDS}
PREDICTOR_NAMES = tuple(_BY_NAME)


def parse_predictor(text: str) -> Predictor:
    """The predictor of this name, with its options: `NAME:OPTION=VALUE,OPTION=VALUE`; raises PolicyError naming the known ones.

    `tang13:cobalt` is `Tang13.cobalt()`; other options may follow.

    >>> parse_predictor("tang13:key=double,statistic=p95,window=all,threshold=0.5")
    Tang13(key='double', statistic='p95', window=None, threshold=0.5, least=10, rank='nearest', refresh=1)
    >>> parse_predictor("tsafrir07:k=3,recompute=yes").label
    'tsafrir07:k=3,recompute=yes'
    """
    name, _, rest = text.strip().lower().partition(":")
    kind = _BY_NAME.get(name)
    if kind is None:
        raise PolicyError(f"unknown predictor {text!r}; known are {', '.join(PREDICTOR_NAMES)}")
    make: Callable[..., Predictor] = kind
    defaults = {field.name: field.default for field in fields(kind)}
    given: dict[str, Any] = {}
    for option in [part.strip() for part in rest.split(",")] if rest else []:
        if option == "cobalt" and kind is Tang13 and make is kind:
            make = Tang13.cobalt
            continue
        key, _, value = option.partition("=")
        if key not in defaults or key in given or not value:
            known = ", ".join(f"{name}=" for name in defaults) or "none"
            raise PolicyError(f"{option!r} is no option of the predictor {text!r}; its options are {known}")
        given[key] = _value(text, key, value, defaults[key])
    return make(**given)


def _value(text: str, key: str, value: str, default: Any) -> Any:
    """What an option's text means, by the type of its default."""
    if key == "window" and value == "all":
        return None
    if isinstance(default, bool):
        if value not in ("yes", "no"):
            raise PolicyError(f"{key} of the predictor {text!r} is yes or no, not {value!r}")
        return value == "yes"
    if isinstance(default, int | float):
        try:
            return type(default)(value)
        except ValueError:
            raise PolicyError(f"{key} of the predictor {text!r} is a number, not {value!r}") from None
    return value
