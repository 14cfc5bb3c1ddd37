"""Pages as strings, for tests of what is on them."""

import re

from walltime.comparison.page import comparison_page
from walltime.report.html import render as html

OUTLINE = re.compile(r'<(h[1-3]|caption|figcaption|p class="answer")[^>]*>(.*?)</(?:h[1-3]|caption|figcaption|p)>', re.DOTALL)


def outline(page):
    """The answer, headings and captions of a page, to compare with a golden file."""
    return [text for _, text in OUTLINE.findall(page)]


def render(schedules, **options):
    """The page that compares these schedules."""
    return html(comparison_page(schedules, **options))
