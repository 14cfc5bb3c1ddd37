"""Pages as strings, for tests of what is on them."""

import re

from walltime.comparison.page import comparison_page
from walltime.report.html import render as html


def headings(page):
    """The headings and captions of a page, to compare with a golden file."""
    return re.findall(r"<(?:h[1-3]|caption|figcaption)[^>]*>(.*?)</(?:h[1-3]|caption|figcaption)>", page, re.DOTALL)


def render(schedules, **options):
    """The page that compares these schedules."""
    return html(comparison_page(schedules, **options))
