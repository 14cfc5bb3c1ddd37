"""The papers' names: first author and year, as for algorithms; P1 to P4 are aliases of the first four."""

from __future__ import annotations

from walltime.errors import PolicyError

ALIASES = {"P1": "feitelson98", "P2": "mualem01", "P3": "tsafrir06", "P4": "tang13"}
"""Papers with an alias, and their names, which are those of their folders here."""
PAPERS = (*ALIASES.values(), "gaussier15", "carastan17", "zhang20")


def paper_name(text: str) -> str:
    """The name of a paper given by name or alias; raises PolicyError listing the known ones.

    >>> paper_name("p2"), paper_name("mualem01")
    ('mualem01', 'mualem01')
    """
    name = ALIASES.get(text.strip().upper(), text.strip().lower())
    if name not in PAPERS:
        known = ", ".join(titled(paper) for paper in PAPERS)
        raise PolicyError(f"unknown paper {text!r}; known are {known}")
    return name


def label_of(paper: str) -> str:
    """P1 to P4; empty for papers without an alias."""
    return next((alias for alias, name in ALIASES.items() if name == paper), "")


def titled(paper: str) -> str:
    """The name, and the alias if there is one: `mualem01 (P2)`."""
    return f"{paper} ({label_of(paper)})" if label_of(paper) else paper
