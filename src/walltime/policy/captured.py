"""The constants that a function reads from its surroundings, which are compiled into it and may have changed since."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.plugins.files import location_of

CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, type(None))
_VALUED = (*sys.stdlib_module_names, "numpy", "numba")
"""Modules whose numbers never change."""


def captured_constants(function: Callable[..., Any], name: str) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the values of the constants that an order's function and its compiled helpers read, and the helpers, innermost first.

    `name`: the name of the order. Raises PolicyError for a value that can change in place, such as a list.

    >>> factor = 2
    >>> captured_constants(lambda procs: factor * procs, "mine")[0]
    (('factor', 'int', 2),)
    """
    values: list[tuple[Any, ...]] = []
    helpers: list[Any] = []

    def follow(inner: Any) -> None:
        for word, value in _surroundings(inner):
            if hasattr(value, "py_func"):
                if value not in helpers:
                    follow(value.py_func)
                    helpers.append(value)
            elif isinstance(value, np.ndarray):
                values.append((word, value.dtype.str, value.shape, value.tobytes()))
            elif isinstance(value, CONSTANTS) or (isinstance(value, tuple) and all(isinstance(one, CONSTANTS) for one in value)):
                values.append((word, type(value).__name__, value))
            elif isinstance(value, list | dict | set | bytearray):
                kind = type(value).__name__
                raise PolicyError(
                    f"{location_of(inner)}the order {name!r} reads {word}, a {kind}, which may change after it is compiled; use numbers "
                    "or a tuple of them, or make it a parameter with a default",
                    "changing_value",
                )

    if getattr(function, "__code__", None) is not None:
        follow(function)
    return tuple(values), helpers


def _surroundings(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each global, variable of an outer function, and number of a module that a function reads."""
    code: CodeType = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    codes = [code]
    for one in codes:
        codes += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
        for name in dict.fromkeys(step.argval for step in dis.get_instructions(one) if step.opname == "LOAD_GLOBAL"):
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _VALUED:
                known = ((word, getattr(value, word, None)) for word in one.co_names)
                yield from ((f"{name}.{word}", found) for word, found in known if not isinstance(found, ModuleType))
            elif not isinstance(value, BuiltinFunctionType | type | ModuleType):
                yield name, value
