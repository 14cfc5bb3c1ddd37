"""The table of predictors, one line each, and their syntax on the command line and in campaign plans."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.files import OWN, load_name, own_options
from walltime.predictors.base import PlainPredictor, Predictor

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
    "column": "external:LogColumn",
    "file": "external:PredictionFile",
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

    The first option may be the name of a preset: `tang13:cobalt` is `Tang13.cobalt()`. `column:NAME` and `file:PATH` are predictions made
    elsewhere; `FILE.py:CLASS` is a class of one's own with `predict(job)` and `observe(job)`, and takes options too.

    >>> parse_predictor("tang13:key=double,statistic=p95,window=all,threshold=0.5")
    Tang13(key='double', statistic='p95', window=None, threshold=0.5, least=10, rank='nearest', refresh=1, weight='jobs', small=0.0)
    >>> parse_predictor("tsafrir07:k=3,recompute=yes").label, parse_predictor("file:mine.csv,column=p90").label
    ('tsafrir07:k=3,recompute=yes', 'file:mine.csv,column=p90')
    """
    own = OWN.match(text.strip())
    if own is not None:
        return PlainPredictor(load_name(Path(own["file"]), own["name"], "predictor"), text.strip(), own_options(own["options"], text))
    name, _, rest = text.strip().partition(":")
    name = name.lower()
    if name not in PREDICTORS:
        raise PolicyError(f"unknown predictor {text!r}; known are {', '.join(PREDICTOR_NAMES)}, or FILE.py:CLASS for one of your own")
    kind = predictor_class(name)
    first = list(kind.positional)
    defaults = {field.name: field.default for field in fields(kind)}
    said: dict[str, Any] = {}
    preset: dict[str, Any] = {}
    for option in [part.strip() for part in rest.split(",")] if rest else []:
        if option.lower() in kind.presets and not preset:
            preset = kind.presets[option.lower()]
            continue
        key, equals, value = option.partition("=")
        if first and not equals:
            said[first.pop(0)] = option
            continue
        key = key.lower()
        if key not in defaults or key in said or not value:
            known = ", ".join([f"{name}=" for name in defaults] + list(kind.presets)) or "none"
            raise PolicyError(f"{option!r} is no option of the predictor {text!r}; its options are {known}")
        said[key] = value if kind.positional else _value(text, key, value.lower(), defaults[key])
    if lacking := [name for name in kind.positional if not said.get(name)]:
        raise PolicyError(f"the predictor {text!r} needs its {lacking[0]}: {name}:{lacking[0].upper()}")
    make: Callable[..., Predictor] = kind
    return make(**(preset | said))


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
