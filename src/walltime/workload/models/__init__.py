"""Workload models: one module for each paper, and all of them by name, as used on the command line and in campaign files."""

from __future__ import annotations

from dataclasses import fields, replace

from walltime.errors import WorkloadError
from walltime.workload.models.downey97 import Downey97
from walltime.workload.models.feitelson96 import Feitelson96, FeitelsonVariant
from walltime.workload.models.hyper_erlang import HyperErlang, fit_hyper_erlang
from walltime.workload.models.jann97 import Jann97
from walltime.workload.models.lublin99 import Lublin99, LublinClass
from walltime.workload.models.marginals import Marginals
from walltime.workload.models.model import WorkloadModel

__all__ = [
    "MODELS",
    "Downey97",
    "Feitelson96",
    "FeitelsonVariant",
    "HyperErlang",
    "Jann97",
    "Lublin99",
    "LublinClass",
    "Marginals",
    "WorkloadModel",
    "fit_hyper_erlang",
    "parse_model",
]

MODELS: dict[str, WorkloadModel] = {
    model.name: model
    for model in (
        Lublin99(),
        Lublin99(classes="typeless"),
        Feitelson96(),
        FeitelsonVariant(variant="s"),
        FeitelsonVariant(variant="l"),
        FeitelsonVariant(variant="sl"),
        Jann97(),
        Downey97(),
    )
}
"""Every named model, with its default parameters."""


def parse_model(text: str) -> WorkloadModel:
    """The model with this name and the parameters given in the text; raises WorkloadError listing the known ones.

    Parameters that are numbers, words, yes or no may follow the name.

    >>> parse_model("downey97:size_rule=half-efficiency-knee:mean_gap=600").mean_gap
    600.0
    >>> sorted(MODELS)  # doctest: +NORMALIZE_WHITESPACE
    ['downey97', 'feitelson96', 'feitelson96-fl', 'feitelson96-fs', 'feitelson96-fsl', 'jann97', 'lublin99',
     'lublin99-typeless']
    """
    name, *options = text.strip().split(":")
    model = MODELS.get(name.lower())
    if model is None:
        raise WorkloadError(f"unknown workload model {name!r}; known are {', '.join(MODELS)}")
    changes: dict[str, object] = {}
    for option in _joined(options):
        key, equals, value = option.partition("=")
        changeable = _changeable(model)
        if not equals or key not in changeable:
            raise WorkloadError(f"unknown parameter {key!r} of {name}; known are {', '.join(changeable) or 'none'}")
        changes[key] = _value(key, changeable[key], value)
    return replace(model, **changes) if changes else model


def _joined(options: list[str]) -> list[str]:
    """The options, with values that contain a colon, such as fixed:16, rejoined."""
    whole: list[str] = []
    for option in options:
        if whole and "=" not in option:
            whole[-1] += f":{option}"
        else:
            whole.append(option)
    return whole


def _changeable(model: WorkloadModel) -> dict[str, object]:
    """The parameters that are single values, with their current values."""
    values = {field.name: getattr(model, field.name) for field in fields(model)}
    fixed = {"classes", "variant", "source"}  # fixed by the name of the model, or a description of tables
    return {key: value for key, value in values.items() if key not in fixed and isinstance(value, bool | int | float | str | None)}


def _value(key: str, now: object, text: str) -> object:
    """A text converted to the type of the parameter's current value."""
    try:
        if isinstance(now, bool):
            return {"yes": True, "true": True, "no": False, "false": False}[text.lower()]
        if isinstance(now, int):
            return int(text)
        if isinstance(now, str):
            return text
        return float(text)
    except (ValueError, KeyError):
        kind = "yes or no" if isinstance(now, bool) else "a whole number" if isinstance(now, int) else "a number"
        raise WorkloadError(f"{key} must be {kind}, not {text!r}") from None
