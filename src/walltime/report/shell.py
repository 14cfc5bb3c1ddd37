"""The frame of every page: head, list of caveats, figures."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from walltime.provenance import version
from walltime.report.interactive import read_script
from walltime.report.tables import scroll, text

ALLOWED = "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\""
"""What a browser lets a page do: nothing outside itself."""
CONTENTS = "<!-- sections -->"
SECTION = re.compile(r'(?:<section class="(only-live|only-static)"[^>]*>\s*)?<h2((?: (?!id="caveats")[^>]*)?)>(.*?)</h2>', re.DOTALL)
CSS_OF_RESULTS = """
td.word { text-align: left; }
td.long { white-space: normal; min-width: 8rem; overflow-wrap: anywhere; }
.words2 th:nth-child(2), .words3 th:nth-child(-n+3), .words4 th:nth-child(-n+4), .words5 th:nth-child(-n+5) { text-align: left; }
.overview td small { white-space: normal; }
td.base { color: var(--soft); }
td.clear { font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
"""Further rules for the pages of campaigns and replications."""


def page(heading: str, body: Sequence[str], behind: Sequence[str] = (), css: str = "") -> str:
    """A whole page with this title and these parts, which are HTML; `behind`: data and scripts, `css`: further rules of style."""
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" {ALLOWED}>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(heading)}</title>\n<style>{read_script('page.css')}{css}</style>\n</head>\n"
    )
    footer = f"<footer>Made by walltime {text(version())}. The page holds everything it shows; nothing is loaded.</footer>"
    inside = "\n".join([*filter(None, body), footer, "</main>", *behind])
    return f"{head}<body>\n<main>\n{inside}\n</body>\n</html>\n"


def with_contents(body: Iterable[str]) -> list[str]:
    """The parts of a page with a list of links to its sections in the place of CONTENTS.

    A section is what begins with a heading of the second level; those that are shown only with or only without scripts have links that
    are.
    """
    links: list[str] = []

    def linked(match: re.Match[str]) -> str:
        kind, attributes, title = match[1] or "", match[2], match[3]
        found = re.search(r'id="([^"]*)"', attributes)
        name = found[1] if found else "section-" + re.sub(r"\W+", "-", html.unescape(title).lower()).strip("-")
        shown = f' class="{kind}"' if kind else ""
        links.append(f'<li{shown}><a href="#{name}">{title}</a></li>')
        return match[0] if found else match[0].replace(f"<h2{attributes}>", f'<h2 id="{name}"{attributes}>')

    parts = SECTION.sub(linked, "\n".join(body))
    return [parts.replace(CONTENTS, f'<nav class="contents" aria-label="Sections"><ul>{"".join(links)}</ul></nav>', 1)]


def caveats_list(sentences: Sequence[str]) -> str:
    """The caveats; nothing without any."""
    if not sentences:
        return ""
    items = "\n".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return f'<aside class="caveats" aria-labelledby="caveats"><h2 id="caveats">Caveats</h2>\n<ul>\n{items}\n</ul></aside>'


def facts(values: Sequence[tuple[str, str]]) -> str:
    """Names and values in one line."""
    return '<dl class="facts">' + "".join(f"<div><dt>{text(a)}</dt><dd>{text(b)}</dd></div>" for a, b in values) + "</dl>"


def figure(drawn: Any, prefix: str, alternative: str, caption: str = "", wide: bool = True) -> str:
    """A matplotlib figure as part of a page, with its alternative text; `wide` ones scroll on narrow screens."""
    from walltime.report.figures import to_svg

    image = f'<div role="img" aria-label="{text(alternative)}">{to_svg(drawn, prefix)}</div>'
    return f"<figure>{scroll(image, alternative, 'wide') if wide else image}<figcaption>{text(caption)}</figcaption></figure>"
