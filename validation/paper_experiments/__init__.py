"""Experiments that go beyond the papers: the project's own questions, answered with the machinery of `walltime paper`.

readings.py       mualem01: interpretations of the points that the papers leave open, and their effects
triple_readings.py gaussier15: what the authors may have meant
best_triples.py   gaussier15: whether the best triples stay the best on shaken logs
easypp.py         tang13: EASY++ and its parts compared with EASY; which users gain and which lose
meant_formulas.py zhang20: the formulas as they were meant, and under EASY
shaken.py         schedulers on shaken copies of a log

`python -m validation.paper_experiments gaussier15 --logs DIR` runs the experiments on one paper into the folder gaussier15.
"""

from __future__ import annotations

import importlib

from walltime.papers.items import Item

MODULES = {
    "mualem01": ("readings",),
    "tang13": ("easypp",),
    "gaussier15": ("triple_readings", "best_triples"),
    "zhang20": ("meant_formulas",),
}
"""The modules with the experiments on each paper."""


def experiments(paper: str) -> list[Item]:
    """Return the experiments on a paper."""
    modules = [importlib.import_module(f"validation.paper_experiments.{name}") for name in MODULES[paper]]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Item)]
