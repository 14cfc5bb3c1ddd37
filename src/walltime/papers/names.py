"""The papers' names: first author and year, as for algorithms."""

from __future__ import annotations

from walltime.errors import PolicyError

PAPERS = ("feitelson98", "mualem01", "tsafrir06", "tang13", "gaussier15", "carastan17", "zhang20")
"""As their folders here are called."""


def paper_name(text: str) -> str:
    """The name of a paper as it is spelled here; raises PolicyError listing the known ones.

    >>> paper_name("Mualem01 ")
    'mualem01'
    """
    name = text.strip().lower()
    if name not in PAPERS:
        raise PolicyError(f"unknown paper {text!r}; known are {', '.join(PAPERS)}")
    return name
