"""Improve accessibility of the theme's pages: a name for the search, and pictures that keys can scroll."""

import re

SEARCH = '<div class="md-search" data-md-component="search" role="dialog">'
PICTURE = re.compile(r"<p>(?=<img [^>]*></p>)")


def on_post_page(output: str, page, **_) -> str:
    """Add them; called by MkDocs."""
    if SEARCH not in output:
        raise ValueError(f"{page.file.src_uri}: docs/generators/accessibility.py needs a change for the search of this theme")
    output = output.replace(SEARCH, SEARCH.replace(">", ' aria-label="Search">'))
    return PICTURE.sub('<p tabindex="0">', output)
