"""Puts the questions of questions.toml to the built documentation: how many clicks lead to the answer?

    make docs && .venv/bin/python tools/questions.py [SITE]

The search is that of the site itself, in a headless Chromium, opened from disk. Exit status 1 if a question needs more than two clicks.
"""

import re
import shutil
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

SHOWN = 8
"""Number of search results examined."""
MOST = 2
META = "document.querySelector('.md-search-result__meta').innerText.trim()"
"""Status line above the search results."""


def main(site: Path) -> int:
    """Ask all of them; print a line for each."""
    from playwright.sync_api import sync_playwright

    asked = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    far = by_search_alone = 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium") or None, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()
        tab.goto((site / "index.html").as_uri())
        for person, questions in asked.items():
            for one in questions:
                found = searched(tab, site, one["said"])
                by_search = clicks_to(found, one["answers"])
                if by_search is None and any(clicks_to(linked(site, site / page_of(f), f), one["answers"]) == 1 for f in found if "#" in f):
                    by_search = 2
                landing = linked(site, site / "index.html")
                by_landing = clicks_to(landing, one["answers"])
                clicks = min((n for n in (by_search, by_landing) if n), default=None)
                far += clicks is None or clicks > MOST
                by_search_alone += by_search is not None
                print(f"{person:10}  search {by_search or '-'}  landing page {by_landing or '-'}  {one['question']}")
        browser.close()
    count = sum(map(len, asked.values()))
    print(f"{count - far} of {count} within {MOST} clicks, {by_search_alone} by the search alone")
    return 1 if far else 0


def searched(tab, site: Path, words: str) -> list[str]:
    """The addresses of the first results that the search shows, below the site's folder."""
    box = tab.locator("input[name=query]")
    box.click()
    box.fill("")
    tab.wait_for_function(f"{META} === 'Type to start searching'", timeout=60_000)
    box.press_sequentially(words)
    tab.wait_for_function(f"/matching document/.test({META})", timeout=60_000)
    shown, before = listed(tab), None
    while shown != before:  # until the last word is answered
        tab.wait_for_timeout(700)
        shown, before = listed(tab), shown
    return [below(site, re.sub(r"\?h=[^#]*", "", link)) for link in shown[:SHOWN]]


def listed(tab) -> list[str]:
    """The links of the results that are not folded."""
    script = "found => found.filter(one => one.offsetParent !== null || !one.closest('details')).map(one => one.href)"
    return tab.eval_on_selector_all(".md-search-result__list a", script)


def linked(site: Path, page: Path, at: str = "") -> list[str]:
    """The addresses that the text of a page links to; with the anchor of a section only those of that section."""
    if not page.is_file():
        return []
    text = page.read_text(encoding="utf-8")
    text = text[text.find("<article") : text.find("</article>")]
    if "#" in at:
        begin = text.find(f'id="{at.partition("#")[2]}"')
        end = text.find("<h", begin + 1)
        text = text[begin:end] if begin >= 0 else ""
    found = []
    for link in re.findall(r'href="([^"#:]+(?:#[^"]*)?)"', text):
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve()
        if target.is_relative_to(site.resolve()):
            found.append(str(target.relative_to(site.resolve())) + (f"#{anchor}" if anchor else ""))
    return found


def below(site: Path, address: str) -> str:
    """An address below the folder of the site."""
    return unquote(address).removeprefix(site.resolve().as_uri()).lstrip("/")


def page_of(address: str) -> str:
    """An address without its anchor."""
    return address.partition("#")[0]


def clicks_to(addresses: list[str], answers: list[str]) -> int | None:
    """1 if one of the addresses is an answer, 2 if one is the top of its page; None if there is neither."""
    if any(address == answer or page_of(address) == answer for address in addresses for answer in answers):
        return 1
    return 2 if {page_of(answer) for answer in answers} & {page_of(address) for address in addresses} else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
