"""A real browser for the tests of pages; without one they are skipped, and say why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
SCREENSHOTS = Path(__file__).parents[2] / "screenshots"


def chromium() -> str:
    """The path of a browser; where there is none, the test is skipped, but fails if the environment says that it must run."""
    found = os.environ.get("WALLTIME_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    why = "there is no Chromium on this machine (apt-get install chromium, or name one with WALLTIME_BROWSER)"
    if os.environ.get("WALLTIME_MUST_RUN"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """A headless Chromium, driven by Playwright."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=list(QUIET))
        yield found
        found.close()


class Watched:
    """A tab that notes what a page must not do: requests, messages on the console, errors."""

    def __init__(self, browser, width=1200, scheme="light", scripts=True):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts)
        self.tab = self.context.new_page()
        self.seen = []
        self.tab.on("console", lambda message: self.seen.append(f"console: {message.text}"))
        self.tab.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        self.tab.on("request", lambda request: self.seen.append(f"request: {request.url[:200]}"))

    def open(self, path, ready=True, address=""):
        """Open a file; `ready`: wait until its scripts have drawn everything."""
        url = path.as_uri() + address
        self.tab.goto(url)
        if ready:
            self.tab.wait_for_selector("html[data-live=ready]", timeout=60_000)
        assert self.seen == [f"request: {path.as_uri()[:200]}"]
        self.seen.clear()
        return self.tab


@pytest.fixture
def tabs(browser):
    """Makes tabs; in the end all of them must have been quiet."""
    made = []

    def new(**options):
        made.append(Watched(browser, **options))
        return made[-1]

    yield new
    for one in made:
        assert one.seen == []
        one.context.close()


@pytest.fixture
def keep():
    """Keeps screenshots for people to look at."""
    SCREENSHOTS.mkdir(exist_ok=True)
    return lambda tab, name: tab.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
