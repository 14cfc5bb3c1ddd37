"""The table of predictors, one line each, and their syntax on the command line and in campaign plans."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from walltime.errors import PolicyError
from walltime.predictors.base import Predictor

PREDICTORS = {
    "tang13": "tang13:Tang13",
    "mualem01-history": "mualem01:Mualem01History",
    "tsafrir07": "tsafrir07:Tsafrir07",
    "gaussier15": "gaussier15:Gaussier15",
    "similar15": "similar15:Similar15",
    "quantile": "quantile:Quantile",
    "last": "tsafrir07:LastRun",
    "exact": "unlearned:ExactRuntime",
    "user": "unlearned:UserRequest",
}
"""Module and class of each predictor; imported on first use."""
PREDICTOR_NAMES = tuple(PREDICTORS)


def predictor_class(name: str) -> type[Predictor]:
    """The class of the predictor with this name; raises PolicyError listing the known ones."""
    if name not in PREDICTORS:
        raise PolicyError(f"unknown predictor {name!r}; known are {', '.join(PREDICTOR_NAMES)}")
    module, _, kind = PREDICTORS[name].partition(":")
    found: type[Predictor] = getattr(importlib.import_module(f"walltime.predictors.{module}"), kind)
    return found


def parse_predictor(text: str) -> Predictor:
    """The predictor with this name and options: `NAME:OPTION=VALUE,OPTION=VALUE`; raises PolicyError listing the known ones.

    The first option may be the name of a preset: `tang13:cobalt` is `Tang13.cobalt()`.

    >>> parse_predictor("tang13:key=double,statistic=p95,window=all,threshold=0.5")
    Tang13(key='double', statistic='p95', window=None, threshold=0.5, least=10, rank='nearest', refresh=1, weight='jobs', small=0.0)
    >>> parse_predictor("tsafrir07:k=3,recompute=yes").label
    'tsafrir07:k=3,recompute=yes'
    """
    name, _, rest = text.strip().lower().partition(":")
    if name not in PREDICTORS:
        raise PolicyError(f"unknown predictor {text!r}; known are {', '.join(PREDICTOR_NAMES)}")
    kind: Callable[..., Predictor] = predictor_class(name)
    presets = predictor_class(name).presets
    defaults = {field.name: field.default for field in fields(predictor_class(name))}
    given: dict[str, Any] = {}
    preset: dict[str, Any] = {}
    for option in [part.strip() for part in rest.split(",")] if rest else []:
        if option in presets and not preset:
            preset = presets[option]
            continue
        key, _, value = option.partition("=")
        if key not in defaults or key in given or not value:
            known = ", ".join([f"{name}=" for name in defaults] + list(presets)) or "none"
            raise PolicyError(f"{option!r} is no option of the predictor {text!r}; its options are {known}")
        given[key] = _value(text, key, value, defaults[key])
    return kind(**(preset | given))


def _value(text: str, key: str, value: str, default: Any) -> Any:
    """The value of an option's text, by the type of its default."""
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
