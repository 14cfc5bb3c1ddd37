"""`walltime cite`: how to cite the program, and the papers whose algorithms and definitions it uses."""

import re
from importlib import resources
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.completion import completion_of
from walltime.cli.help import manual
from walltime.errors import PolicyError

URL = ""
"""The address of the project, which citations contain; empty until it has one."""
_ENTRY = re.compile(r"^@\w+\{(\w+),.*?^\}$", re.MULTILINE | re.DOTALL)


@manual(
    "reference/sources",
    ("Print the citation of this program, as text and as BibTeX.", "cite walltime"),
    ("Print the BibTeX entries of two papers.", "cite feitelson98 mualem01"),
)
def cite(
    names: Annotated[
        list[str] | None,
        o.argument(
            "The entries to print, such as walltime or feitelson98; without any, print all.", "NAME", autocompletion=completion_of("cite")
        ),
    ] = None,
) -> None:
    """Print the citation of this program, and BibTeX entries of the papers whose algorithms and definitions it uses."""
    known = entries()
    for name in names or []:
        if name not in known:
            raise PolicyError(f"no BibTeX entry is named {name!r}. Valid names: {', '.join(known)}", "unknown_name")
    if "walltime" in (names or known):
        typer.echo(f"{citation()}\n")
    typer.echo("\n\n".join(known[name] for name in names or known))


def citation() -> str:
    """Return the citation of the program in a sentence."""
    one = _about()
    year = f" ({one['year']})" if one["year"] else ""
    return f"{one['author']}{year}. {one['title']} (version {one['version']}).{f' {URL}' if URL else ''}"


def complete_entry(_: str) -> list[str]:
    """Return the names of the BibTeX entries."""
    return list(entries())


def entries() -> dict[str, str]:
    """Return the BibTeX entries by name: the program, from CITATION.cff, and the papers, from references.bib."""
    one = _about()
    fields = {"author": f"{{{one['author']}}}", **{name: one[name] for name in ("title", "version", "year")}, "url": URL}
    lines = [f"  {name:7} = {{{text}}}" for name, text in fields.items() if text]
    own = "@software{walltime,\n" + ",\n".join(lines) + "\n}"
    text = (resources.files("walltime") / "references.bib").read_text(encoding="utf-8")
    return {"walltime": own} | {match[1]: match[0] for match in _ENTRY.finditer(text)}


def _about() -> dict[str, str]:
    """Return author, title, version and year from CITATION.cff, which wheels contain in the package; the year may be empty."""
    package = resources.files("walltime")
    inside = package / "CITATION.cff"
    text = (inside if inside.is_file() else package / ".." / ".." / "CITATION.cff").read_text(encoding="utf-8")
    patterns = {"author": r"^authors:\n  - name: (.+)$", "title": r'^title: "(.+)"$', "version": r"^version: (\S+)$"}
    found = {name: re.search(one, text, re.MULTILINE) for name, one in (patterns | {"year": r"^date-released: \D?(\d{4})"}).items()}
    return {name: "" if match is None else match[1] for name, match in found.items()}
