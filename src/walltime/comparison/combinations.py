"""Combinations of parameters in many runs: their labels, and how they become axis, lines and panels of a figure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from walltime.comparison.combination_means import CombinationMean
from walltime.errors import PolicyError

SCHEDULER = ("policy", "order", "backfill_order", "predictor", "predictions_for", "correction", "estimates")
"""The parameters that become lines rather than panels; the first one that varies is used."""
FAMILIES = ("estimates", "policy", "predictor", "order", "backfill_order")
"""Parameters whose text values may form a series of numbers, such as f:1, f:4, f:11."""
_FAMILY = re.compile(r"(.*?[:=])(\d+(?:\.\d+)?)(.*)")


def varying(lines: Sequence[CombinationMean]) -> list[str]:
    """Return the parameters that differ between these lines."""
    return [name for name in lines[0].combination if len({line.combination[name] for line in lines}) > 1]


def positions(lines: Sequence[CombinationMean], over: str) -> tuple[str, dict[Any, float]]:
    """Return the label of the axis for a parameter, and the position of each of its values on it.

    Texts have positions if at least three differ in one number only, such as f:1, f:4 and f:11; other values, such as user, have none.
    """
    values = list(dict.fromkeys(line.combination[over] for line in lines))
    numbers = {value: float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)}
    if numbers or over not in FAMILIES:
        return over.replace("_", " "), numbers
    families: dict[tuple[str, str], dict[Any, float]] = {}
    for value in values:
        if isinstance(value, str) and (match := _FAMILY.fullmatch(value)):
            families.setdefault((match[1], match[3]), {})[value] = float(match[2])
    largest = max(families, key=lambda family: len(families[family]), default=None)
    if largest is None or len(families[largest]) < 3:
        return over, {}
    return f"{over.replace('_', ' ')} {largest[0]}N{largest[1]}", families[largest]


def swept(lines: Sequence[CombinationMean]) -> list[str]:
    """Return the parameters over which a measure can be drawn: they have two or more numbers as values while all else is equal."""
    names = []
    for name in lines[0].combination if lines else ():
        places = positions(lines, name)[1]
        together: dict[tuple[Any, ...], set[float]] = {}
        for line in lines:
            if line.combination[name] in places:
                rest = tuple(value for other, value in line.combination.items() if other != name)
                together.setdefault(rest, set()).add(places[line.combination[name]])
        if any(len(there) > 1 for there in together.values()):
            names.append(name)
    return names


def combination_text(combination: Mapping[str, Any], words: Sequence[str]) -> str:
    """Return the values of these parameters as a label; the names of parameters with text values are left out.

    >>> combination_text({"policy": "easy", "load": 0.8, "procs": None}, ["policy", "load", "procs"])
    'easy, load 0.8, procs default'
    """
    shown = []
    for word in words:
        value = combination[word]
        if isinstance(value, bool):
            shown.append(word.replace("_", " ") if value else f"no {word.replace('_', ' ')}")
        elif isinstance(value, str):
            shown.append(value)
        else:
            shown.append(f"{word.replace('_', ' ')} {'default' if value is None else format(value, 'g')}")
    return ", ".join(shown)


def series_of(lines: Sequence[CombinationMean], over: str | None) -> tuple[str | None, list[str]]:
    """Return the parameter that becomes lines (None if nothing else is varied), and the parameters that become panels."""
    words = [name for name in varying(lines) if name != over]
    first = next((name for name in SCHEDULER if name in words), words[0] if words else None)
    return first, [name for name in words if name != first]


def panels_of(lines: Sequence[CombinationMean], words: Sequence[str]) -> dict[str, list[CombinationMean]]:
    """Return the lines in groups with equal values of these parameters, each group under a title."""
    panels: dict[str, list[CombinationMean]] = {}
    for line in lines:
        panels.setdefault(combination_text(line.combination, words), []).append(line)
    return panels


def chosen(lines: Sequence[CombinationMean], metric: str, where: Mapping[str, Any] | None = None) -> list[CombinationMean]:
    """Return the lines of this measure with these values of parameters; raises PolicyError if there are none."""
    those = [line for line in lines if line.metric == metric and all(line.combination.get(k) == v for k, v in (where or {}).items())]
    if not those:
        known = ", ".join(dict.fromkeys(line.metric for line in lines)) or "none"
        raise PolicyError(
            f"there are no results for {metric!r}{f' with {dict(where)}' if where else ''} to draw. Valid measures: {known}",
            "unknown_measure",
        )
    return those
