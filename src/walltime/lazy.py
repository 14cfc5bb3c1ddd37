"""Import names and modules on first use, so that importing a package is fast."""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

Parts = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]
_IMPORT = re.compile(r"^    from walltime(?:\.(\S+))? import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"(\w+) as \1\b")


def lazy(package: str, homes: Mapping[str, tuple[str, ...]] = MappingProxyType({})) -> Parts:
    """Return `__getattr__`, `__dir__` and `__all__` for a package that imports its names under `if TYPE_CHECKING`.

    It reads these imports, such as `from walltime.HOME import NAME as NAME, OTHER as OTHER`, so that names are written only once.
    `homes`: additional names, by the modules of walltime that define them.
    """
    spec: Any = sys.modules[package].__spec__
    source = spec.loader.get_data(spec.origin).decode()
    home_of = {name: home for home, names in homes.items() for name in names}
    home_of |= {name: home for home, names in _IMPORT.findall(source) for name in _NAME.findall(names)}
    names = sorted(home_of)

    def get(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"walltime.{home}"), name) if home else importlib.import_module(f"walltime.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names


class LaterModule:
    """A module that is imported on first use, for libraries that only some inputs need."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
