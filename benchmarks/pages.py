"""The page of a long schedule in a browser: until its chart is drawn, and the longest time between two frames while it is moved."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchmarks.common import Options, Result, lublin, show, spread
from walltime.comparison import write_comparison_page
from walltime.simulation import simulate

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOVE = """async () => {
    const canvas = document.querySelector(".gantt canvas");
    canvas.scrollIntoView();
    canvas.focus();
    const frame = () => new Promise(requestAnimationFrame);
    let before = await frame();
    let longest = 0;
    for (let k = 0; k < 60; k++) {
        const key = k % 6 === 0 ? "+" : k % 12 < 6 ? "ArrowRight" : "ArrowLeft";
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const now = await frame();
        longest = Math.max(longest, now - before);
        before = now;
    }
    return longest;
}"""


def pages(options: Options) -> Result:
    """Seconds and milliseconds in a headless Chromium; asked for: drawn within 3 s, no stall over 100 ms."""
    path = os.environ.get("WALLTIME_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        print("pages: there is no Chromium on this machine")
        return {}
    from playwright.sync_api import sync_playwright

    count = options.size(250_000, 5_000)
    drawn, stalls = [], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = write_comparison_page(Path(folder) / "page.html", [simulate(lublin(count, 0.8), "easy")])
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(options.long_runs):
            tab = browser.new_page(viewport={"width": 1200, "height": 900})
            tab.goto(page.as_uri(), wait_until="commit")
            tab.wait_for_selector(".gantt canvas[data-view]", state="attached", timeout=60_000)
            drawn.append(tab.evaluate("performance.now()") / 1000)
            tab.wait_for_selector("html[data-live=ready]", timeout=60_000)
            stalls.append(tab.evaluate(MOVE))
            tab.close()
        browser.close()
    result: Result = {"jobs": count, "drawn s": spread(drawn), "longest frame ms": spread(stalls)}
    rows = [(f"{count:,}", f"{result['drawn s']['median']:.2f}", f"{result['longest frame ms']['median']:.0f}")]
    show("page of one schedule in Chromium", ("jobs", "drawn, s", "longest frame, ms"), rows)
    return result
