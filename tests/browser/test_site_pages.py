"""The pages of calibrations and what-ifs in a real browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.sites import MACHINE, jobs_of, recorded_as
from walltime.report import write_calibration_report, write_what_if_report
from walltime.site import calibrate, what_if


@pytest.fixture(scope="module")
def jobs():
    return recorded_as(jobs_of(MACHINE, jobs=1500), MACHINE, "easy", late=600)


@pytest.fixture(scope="module")
def calibration_page(jobs, tmp_path_factory):
    return write_calibration_report(tmp_path_factory.mktemp("calibration") / "page.html", calibrate(jobs, MACHINE), jobs)


@pytest.fixture(scope="module")
def what_if_page(jobs, tmp_path_factory):
    found = what_if(jobs, MACHINE, ["nodes+=25%", "partition.main.MaxTime=2h", "policy=fcfs"], replications=2)
    return write_what_if_report(tmp_path_factory.mktemp("what-if") / "page.html", found)


@pytest.mark.parametrize("which", ["calibration_page", "what_if_page"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_page__quiet_sortable_and_for_everybody(tabs, request, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(request.getfixturevalue(which), ready=False)
    assert tab.locator("button.sort").count() > 4
    found = [v for v in Axe().run(tab).response["violations"] if v["impact"] in ("serious", "critical")]
    assert not found, [(v["id"], [node["html"][:200] for node in v["nodes"]]) for v in found]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    keep(tab, f"{which}-{scheme}-{width}")
