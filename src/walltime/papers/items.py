"""An item is one table or figure of a paper: a function of a module in the paper's folder, marked by `item`."""

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from walltime.errors import PolicyError
from walltime.papers.printed import paper_name
from walltime.papers.results import Part
from walltime.papers.study import Study

Run = Callable[[Study], Iterable[Part]]


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, and the function that makes it from a study."""

    name: str
    """as printed: F4 for Fig. 4, T1 for Table 1; a word for items without a number"""
    title: str
    run: Run
    where: str = ""
    """its input, if not logs: worked examples, a formula, workload models"""

    @property
    def paper(self) -> str:
        """Return the paper's name, such as mualem01."""
        return self.run.__module__.split(".")[2]

    def place(self) -> tuple[int, int, str]:
        """Return a sort key: first tables, then figures, then the rest, each by number."""
        match = re.fullmatch(r"([TF])(\d+)(\w*)", self.name)
        return (3, 0, self.name) if match is None else ("TF".index(match[1]), int(match[2]), match[3])


def item(number: str, *, title: str = "", where: str = "", **options: Any) -> Callable[[Callable[..., Iterable[Part]]], Item]:
    """Return a decorator that makes a function an item; its title is, by default, the first line of the function's docstring.

    `options`: additional arguments of the function, so that one function can make several items.
    """

    def make(run: Callable[..., Iterable[Part]]) -> Item:
        with_options = functools.update_wrapper(functools.partial(run, **options), run)
        return Item(number, title or (run.__doc__ or "").splitlines()[0].removesuffix("."), with_options, where)

    return make


def items_of(paper: str, name: str | None = None) -> list[Item]:
    """Return the items of a paper, or the one with this name, such as F4 or T1; raises PolicyError for an unknown name."""
    paper = paper_name(paper)
    items = _items(paper)
    chosen = [item for item in items if name is None or item.name.lower() == name.strip().lower()]
    if not chosen:
        raise PolicyError(f"unknown item {name!r} of {paper}. Valid items: {', '.join(item.name for item in items)}", "unknown_item")
    return chosen


@functools.cache
def _items(paper: str) -> list[Item]:
    """Return the items in the modules of the paper's folder, in order."""
    package = importlib.import_module(f"walltime.papers.{paper}")
    modules = [package, *(importlib.import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__))]
    return sorted((value for module in modules for value in vars(module).values() if isinstance(value, Item)), key=Item.place)
