"""Pages as strings, for tests of what is on them."""

from walltime.comparison.page import comparison_page
from walltime.report.html import render as html


def render(schedules, **options):
    """The page that compares these schedules."""
    return html(comparison_page(schedules, **options))
