"""How long a tutorial or guide takes to read, below its title."""

import re

FOLDERS = ("tutorial/", "guides/", "notebooks/")
WORDS_PER_MINUTE = 200
LEAST = 3
"""Minutes; what is shorter says nothing."""
CODE = re.compile(r"^```.*?^```$|<!--.*?-->|<div.*?</div>", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# .+$", re.MULTILINE)


def minutes(markdown: str) -> int:
    """Minutes for the text without its code and tables of numbers."""
    return round(len(CODE.sub("", markdown).split()) / WORDS_PER_MINUTE)


def on_page_markdown(markdown: str, page, **_) -> str:
    """Add a line below the title; called by MkDocs."""
    title = TITLE.search(markdown)
    if title is None or not page.file.src_uri.startswith(FOLDERS) or (taken := minutes(markdown)) < LEAST:
        return markdown
    return f"{markdown[: title.end()]}\n\n*{taken} minutes to read*\n{markdown[title.end() :]}"
