"""Pages as strings, for tests of what is on them."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from walltime.comparison import write_comparison_page

OUTLINE = re.compile(r'<(h[1-3]|caption|figcaption|p class="answer")[^>]*>(.*?)</(?:h[1-3]|caption|figcaption|p)>', re.DOTALL)


def outline(page):
    """The answer, headings and captions of a page, to compare with a golden file."""
    return [text for _, text in OUTLINE.findall(page)]


def render(schedules, **options):
    """The page that compares these schedules."""
    with TemporaryDirectory() as folder:
        return write_comparison_page(Path(folder) / "page.html", schedules, **options).read_text(encoding="utf-8")
