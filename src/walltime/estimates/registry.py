"""Estimate models by name, as on the command line and in campaign plans."""

from __future__ import annotations

import math
from collections.abc import Sequence

from walltime.errors import PolicyError
from walltime.estimates.base import EstimateModel, ExactEstimates, FactorEstimates, UserEstimates
from walltime.estimates.fmodel import FModel
from walltime.estimates.mualem01 import Mualem01
from walltime.estimates.tsafrir05 import Tsafrir05

ESTIMATE_NAMES = (
    "user",
    "user:truncated=SECONDS",
    "exact",
    "double",
    "factor:X",
    "f:F",
    "f:F:deterministic",
    "f:F:truncated=SECONDS",
    "badness:F",
    "mualem01",
    "mualem01:cap=SECONDS",
    "tsafrir05",
    "tsafrir05:emax=SECONDS:share=PERCENT",
)


def parse_estimates(text: str) -> EstimateModel:
    """The model with this name; raises PolicyError listing the known ones.

    `f:4` is the random f-model of feitelson98 and mualem01, uniform in [r, 4 r]; `badness:3` is the same in the terms of tsafrir06.

    >>> parse_estimates("f:11:truncated=64800")
    FModel(11, truncated=64800)
    >>> model = parse_estimates("tsafrir05:emax=64800:share=20")
    >>> model.emax, model.share
    (64800, 20.0)
    """
    name, *options = text.strip().lower().split(":")
    match name, options:
        case "user", []:
            return UserEstimates()
        case "user", rest:
            return UserEstimates(limit="model", truncated=round(_options(text, rest, "truncated")["truncated"]))
        case "exact", []:
            return ExactEstimates()
        case "double", []:
            return FactorEstimates(factor=2.0)
        case "factor", [factor]:
            return FactorEstimates(factor=_number(text, factor))
        case (("f" | "badness"), [value, *rest]):
            deterministic = "deterministic" in rest
            given = _options(text, [option for option in rest if option != "deterministic"], "truncated")
            truncated = round(given["truncated"]) if given else None
            number = _number(text, value)
            make = FModel.of_badness if name == "badness" else FModel
            return make(number, deterministic=deterministic, truncated=truncated)
        case "mualem01", rest:
            given = _options(text, rest, "cap")
            return Mualem01(cap=round(given["cap"])) if given else Mualem01()
        case "tsafrir05", rest:
            given = _options(text, rest, "emax", "share")
            return Tsafrir05(emax=round(given["emax"]) if "emax" in given else None, share=given.get("share"))
    raise _unknown(text)


def _options(text: str, options: Sequence[str], *known: str) -> dict[str, float]:
    """The numbers of `key=number`, each of the known keys at most once."""
    found: dict[str, float] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in known or key in found or not value:
            raise _unknown(text)
        found[key] = _number(text, value)
    return found


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise PolicyError(f"{value!r} in the estimates {text!r} is not a number")
    return number


def _unknown(text: str) -> PolicyError:
    return PolicyError(f"unknown estimates {text!r}; known are {', '.join(ESTIMATE_NAMES)}")
