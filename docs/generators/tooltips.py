"""Explanations of terms where they first occur on a page, as tooltips; the glossary is their only source."""

import functools
import html
import re
from pathlib import Path

GLOSSARY = Path(__file__).parents[1] / "reference" / "glossary.md"
ROW = re.compile(r"^\| (?P<terms>[^|]+) \| (?P<meaning>[^|]+) \| [^|]+ \|$", re.MULTILINE)
WORDS = {"backfilling", "reservation", "compression", "dialect", "TimeMin", "flurry", "caveat", "saturated"}
"""Single words of the glossary that are explained; the others are ordinary words on most pages."""
PIECE = re.compile(r"(<[^>]+>)")
WITHOUT = ("a", "abbr", "code", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "script", "style", "svg", "button", "summary", "th")
"""Elements whose texts get no tooltips."""


@functools.cache
def meanings() -> dict[str, str]:
    """Return the meaning of each term of the glossary that is explained, the longest terms first.

    A row with several terms, separated by commas, has their meanings in the same order, separated by semicolons, or one for all.
    """
    found = {}
    for row in ROW.finditer(GLOSSARY.read_text(encoding="utf-8")):
        terms = re.sub(r"\s*\([^)]*\)", "", row["terms"]).strip().split(", ")
        parts = re.sub(r"[*`]", "", row["meaning"]).strip().split("; ")
        texts = parts if len(parts) == len(terms) else ["; ".join(parts)] * len(terms)
        found |= {term: text for term, text in zip(terms, texts, strict=True) if term in WORDS or re.search(r"\w[ -]\w", term)}
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def with_tooltips(page: str) -> str:
    """Return the HTML of a page with an `abbr` around the first occurrence of each term."""
    left = meanings().copy()
    inside: list[str] = []
    pieces = PIECE.split(page)
    for k, piece in enumerate(pieces):
        if tag := re.match(r"<(/?)(\w+)", piece):
            if tag[2] in WITHOUT and not piece.endswith("/>"):
                inside = inside[:-1] if tag[1] else [*inside, tag[2]]
        elif piece.strip() and not inside and left:
            terms = re.compile(rf"\b({'|'.join(map(re.escape, left))})s?\b", re.IGNORECASE)
            pieces[k] = terms.sub(lambda match: _explained(match, left), piece)
    return "".join(pieces)


def _explained(match: re.Match[str], left: dict[str, str]) -> str:
    term = next((term for term in left if term.lower() == match[1].lower()), None)
    return match[0] if term is None else f'<abbr title="{html.escape(left.pop(term))}">{match[0]}</abbr>'


def on_page_content(content: str, page, **_) -> str:
    """Add the tooltips, except on the glossary itself and in the reference of Python; called by MkDocs."""
    return content if page.file.src_uri.startswith(("reference/glossary", "reference/api")) else with_tooltips(content)
