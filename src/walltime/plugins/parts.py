"""Parts that users add: classes and functions of a Python file (`FILE.py:NAME`), or of an installed package by its entry points."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.plugins.files import load_named, location_of
from walltime.specification import Variant

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("policies", "orders", "predictors", "estimates", "models", "metrics", "trims", "formats")
"""The kinds of parts; a package declares them in the groups `walltime.policies` and so on of its entry points."""
OWN_SPELLING = "FILE.py:NAME for a user-defined one"

Adopt = Callable[[Any, str], Variant]
"""Makes a variant of an object, given how it is spelled without options; raises PolicyError for an object of another kind."""


@functools.cache
def installed(group: str) -> Mapping[str, EntryPoint]:
    """Return the parts of a kind in installed packages, by name; the packages are not imported."""
    from importlib.metadata import entry_points

    return {one.name: one for one in sorted(entry_points(group=f"walltime.{group}"), key=lambda one: one.name)}


def own_part(group: str, text: str, title: str) -> tuple[Any, str, str] | None:
    """Return the object that a text names, how it is spelled, and the options after it; None if it names no user's part.

    Raises PolicyError if the file or package cannot be loaded or has no such object, NotRunError if the file may not run.
    """
    loaded = load_named(text, title)
    if loaded is not None:
        return loaded[0], text.removesuffix(loaded[1]).rstrip(":,"), loaded[1]
    name, _, options = text.partition(":")
    entry = installed(group).get(name.strip())
    if entry is None:
        return None
    try:
        return entry.load(), entry.name, options
    except Exception as error:  # any error of the package's code
        package = entry.dist.name if entry.dist else entry.value
        raise PolicyError(
            f"the {title} {entry.name!r} of the package {package} cannot be loaded: {type(error).__name__}: {error}", "own_code_failure"
        ) from error


def own_variants(group: str, title: str, adopt: Adopt) -> Callable[[str], tuple[Variant, str] | None]:
    """Return the function `own` of a `Family`, which finds the parts of this kind that users add."""

    def own(text: str) -> tuple[Variant, str] | None:
        found = own_part(group, text, title)
        return None if found is None else (adopt(found[0], found[1]), found[2])

    return own


def function_options(function: Callable[..., Any], given: tuple[str, ...], title: str, form: str) -> bool:
    """Return whether a user's function takes the last argument in `given`, which is optional; all others need defaults.

    Raises PolicyError, with the required `form`, if it takes other arguments.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    needed = tuple(one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD)
    if needed not in (given, given[:-1]):
        name = getattr(function, "__name__", repr(function))
        raise PolicyError(f"{location_of(function)}{name!r} is not {title}; write it as {form}", "not_a_part")
    return needed == given


def named_packages(text: str) -> list[str]:
    """Return `PACKAGE VERSION` of each installed package with a part that a specification names."""
    words = set(re.split(r"[:,=]", text))
    found = {one.dist for group in GROUPS for one in installed(group).values() if one.name in words and one.dist is not None}
    return sorted(f"{one.name} {one.version}" for one in found)
