"""What every page owes its readers: nothing serious that axe finds, and no wider than the screen."""

from axe_playwright_python.sync_playwright import Axe

SIZES = [(1200, "light"), (400, "dark")]
"""Widths and colours in which pages are looked at."""


def assert_accessible(tab, width: int) -> None:
    """Axe finds nothing serious on the open page, and the page needs no scrolling to the side."""
    found = [v for v in Axe().run(tab).response["violations"] if v["impact"] in ("serious", "critical")]
    assert not found, [(v["id"], [node["html"][:200] for node in v["nodes"]]) for v in found]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
