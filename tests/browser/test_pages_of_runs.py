"""The pages of campaigns, of replications and of users' walltimes in a real browser."""

import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe

from walltime.campaign import read_plan, run_campaign
from walltime.report import write_campaign_report

PLAN = """
[campaign]
name = "loads"
seeds = 3
groups = ["class"]
[fixed]
model = "lublin99"
jobs = 250
procs = 64
[grid]
load = [0.5, 0.7, 0.9]
policy = ["easy", "fcfs"]
"""


def walltime(*words):
    """Run a command."""
    code = "from walltime.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", code, *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def campaign_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    (folder / "plan.toml").write_text(PLAN)
    plan = read_plan(folder / "plan.toml")
    run_campaign(plan)
    return write_campaign_report(folder / "page.html", plan)


@pytest.fixture(scope="module")
def replicated_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replicated")
    log, page = folder / "made.swf", folder / "page.html"
    walltime("generate", "lublin99", "--jobs", 300, "--out", log)
    policies = ["--policy", "easy", "--policy", "fcfs", "--policy", "conservative"]
    walltime("compare", log, *policies, "--shake", 30, "--replications", 3, "--report", page)
    return page


@pytest.fixture(scope="module")
def walltimes_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walltimes")
    log, page = folder / "made.swf", folder / "page.html"
    walltime("generate", "lublin99", "--jobs", 800, "--users", 20, "--estimates", "tsafrir05", "--out", log)
    walltime("estimates", log, "--report", page, "--replications", 2)
    return page


@pytest.mark.parametrize("which", ["campaign_page", "replicated_page", "walltimes_page"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_page__quiet_sortable_and_for_everybody(tabs, request, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(request.getfixturevalue(which), ready=False)
    assert tab.locator("button.sort").count() > 4
    found = [v for v in Axe().run(tab).response["violations"] if v["impact"] in ("serious", "critical")]
    assert not found, [(v["id"], [node["html"][:200] for node in v["nodes"]]) for v in found]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    keep(tab, f"{which}-{scheme}-{width}")
