"""The built documentation in a real browser, opened from disk: accessible, and its search answers what people ask, as they type it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.accessibility import SIZES, assert_accessible

ROOT = Path(__file__).parents[2]
FIRST = 3
"""Results among which the page must be: what is seen without scrolling."""
QUESTIONS = {
    "compare easy conservative": "reference/cli/compare guides/cookbook tutorial/quickstart guides/questions notebooks/comparison",
    "latex table": "guides/figures",
    "confidence interval": "guides/trust validation/coverage",
    "numbers differ pyss": "guides/audit reference/cli/dialects background/dialects",
    "own policy": "guides/orders guides/policies",
    "resume campaign": "guides/campaigns reference/cli/campaign",
    "pandas dataframe": "guides/cookbook notebooks/comparison",
    "reinforcement learning": "guides/learning notebooks/learning",
    "reproduce paper": "guides/papers reference/cli/paper validation/reproduction",
    "download logs": "guides/get-logs reference/cli/fetch reference/catalogue",
    "more nodes": "guides/what-if tutorial/what-if",
    "start time prediction": "guides/start-times validation/start-times",
    "slurm.conf partitions": "guides/machines guides/machine-from-slurm reference/cli/slurm",
    "privacy": "guides/cluster-logs",
    "cron": "guides/waits",
    "users ask too much time": "guides/walltime-advice",
    "install rhel": "guides/install",
    "fairshare weights": "guides/slurm-policy guides/what-if reference/specifications",
    "trust": "guides/calibrate guides/trust reference/cli/calibrate",
    "maintenance": "guides/machines guides/what-if",
}
"""What ten researchers and ten operators would type, and the pages that answer; written down before anybody looked at the results."""
WHOLE = {
    "How do I compare EASY and conservative backfilling on my own log?": "compare easy conservative",
    "How do I get a results table into my LaTeX paper?": "latex table",
    "Which interval is printed after the +-, and what does it cover?": "confidence interval",
    "How do I run thousands of simulations and resume after an interruption?": "resume campaign",
    "Can I anonymise my sacct data before I share it?": "privacy",
    "How do I get a weekly report by mail or cron?": "cron",
    "How do I tell users that they ask for too much time?": "users ask too much time",
}
"""The same in whole sentences, of which most words say nothing."""

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built documentation; WALLTIME_SITE names one that is there already."""
    if os.environ.get("WALLTIME_SITE"):
        return Path(os.environ["WALLTIME_SITE"])
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def search(browser, site):
    """Types into the search of the landing page; gives the pages of its results, in order."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})

    def typed(words):
        tab.goto((site / "index.html").as_uri())
        tab.locator(".md-search__input").click()
        tab.locator(".md-search__input").fill(words)
        tab.wait_for_selector(".md-search-result__item", timeout=60_000, state="attached")
        links = tab.locator(".md-search-result__item > .md-search-result__link").evaluate_all("(found) => found.map((one) => one.href)")
        return [link.partition("?")[0].partition("#")[0].removeprefix(f"{site.as_uri()}/").removesuffix(".html") for link in links]

    yield typed
    tab.close()


@pytest.mark.parametrize("page", ["index", "tutorial/gallery", "guides/questions", "reference/cli/what-if", "reference/api/workloads"])
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_page__is_accessible(browser, site, page, scheme, width):
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.goto((site / f"{page}.html").as_uri())
    assert_accessible(tab, width)
    tab.close()


@pytest.mark.parametrize("words", QUESTIONS)
def test_search__page_that_answers_is_among_the_first_results(search, words):
    assert set(search(words)[:FIRST]) & set(QUESTIONS[words].split())


@pytest.mark.parametrize("question", WHOLE)
def test_search__answers_whole_questions(search, question):
    assert set(search(question)[:FIRST]) & set(QUESTIONS[WHOLE[question]].split())
