"""Names and modules imported on first use, so that importing a package is fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["LaterModule", "lazy"]


def lazy(package: str, homes: Mapping[str, tuple[str, ...]]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are defined in these modules of walltime."""
    home_of = {name: home for home, names in homes.items() for name in names}
    names = sorted(home_of)

    def get(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"walltime.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names


class LaterModule:
    """A module that is imported when something of it is first used; for libraries that only some inputs need."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
