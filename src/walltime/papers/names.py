"""The papers' names: first author and year, as for algorithms; P1 to P5 are aliases."""

from __future__ import annotations

from walltime.errors import PolicyError

ALIASES = {"P1": "feitelson98", "P2": "mualem01", "P3": "tsafrir06", "P4": "tang13", "P5": "gaussier15"}
"""The alias of each paper, and its name, which is that of its folder here."""
PAPERS = tuple(ALIASES.values())


def paper_name(text: str) -> str:
    """The name of a paper given by name or alias; raises PolicyError listing the known ones.

    >>> paper_name("p2"), paper_name("mualem01")
    ('mualem01', 'mualem01')
    """
    name = ALIASES.get(text.strip().upper(), text.strip().lower())
    if name not in PAPERS:
        known = ", ".join(f"{name} ({alias})" for alias, name in ALIASES.items())
        raise PolicyError(f"unknown paper {text!r}; known are {known}")
    return name


def label_of(paper: str) -> str:
    """P1 to P5."""
    return next(alias for alias, name in ALIASES.items() if name == paper)
