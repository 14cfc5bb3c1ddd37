"""`walltime cite`: how to cite the program, and the papers whose algorithms and definitions it uses."""

from __future__ import annotations

import re
from importlib import resources
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.errors import PolicyError

_ENTRY = re.compile(r"^@\w+\{(\w+),.*?^\}$", re.MULTILINE | re.DOTALL)


@manual(
    "reference/sources",
    ("Print the entry of this program.", "cite walltime"),
    ("Print the entries of two papers.", "cite feitelson98 mualem01"),
)
def cite(
    names: Annotated[list[str] | None, o.argument("The entries: walltime, feitelson98, ...; without them, print all.", "NAME")] = None,
) -> None:
    """Print BibTeX entries of this program, and of the papers whose algorithms and definitions it uses."""
    known = entries()
    for name in names or []:
        if name not in known:
            raise PolicyError(f"no BibTeX entry is named {name!r}. Valid names: {', '.join(known)}")
    typer.echo("\n\n".join(known[name] for name in names or known))


def entries() -> dict[str, str]:
    """Return the entries of references.bib by name."""
    text = (resources.files("walltime") / "references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}
