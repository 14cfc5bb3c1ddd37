"""Slurm's constraints on the features of nodes, such as `intel&(a100|v100)`."""

import re
from collections.abc import Collection, Iterator

_TOKEN = re.compile(r"[&|()\[\]]|[^&|()\[\]\s]+")


def satisfies(features: Collection[str], constraint: str) -> bool:
    """Return whether a node with these features satisfies a constraint.

    As in Slurm, `&` and `|` are evaluated from left to right, and parentheses group. The alternatives in brackets, and features with a
    number of nodes (`intel*2`), are alternatives of individual nodes here.

    >>> satisfies({"intel", "v100"}, "intel&(a100|v100)"), satisfies({"intel"}, "amd|v100"), satisfies({"rack2"}, "[rack1|rack2]")
    (True, False, True)
    """
    counted = "*" in constraint
    return _evaluate(iter(_TOKEN.findall(constraint)), features, counted)


def _evaluate(tokens: Iterator[str], features: Collection[str], counted: bool) -> bool:
    """Return the value of the tokens up to the matching closing parenthesis, or up to the end."""
    value, is_or = True, False
    for token in tokens:
        if token in ")]":
            break
        if token in "&|":
            is_or = token == "|" or counted
            continue
        one = _evaluate(tokens, features, counted) if token in "([" else token.partition("*")[0] in features
        value = (value or one) if is_or else (value and one)
    return value
