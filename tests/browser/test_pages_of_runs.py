"""The pages of all commands but `compare` in a real browser."""

import contextlib
import io
from dataclasses import replace

import pytest

import walltime as wt
from tests.adjust.failures import busy, day
from tests.adjust.fake import sacct
from tests.browser.accessibility import SIZES, assert_accessible
from tests.sites import MACHINE, jobs_of, recorded_as
from walltime import read, simulate
from walltime.benchmark import run_suite
from walltime.campaign import read_plan, read_results, run_campaign
from walltime.cli.main import run
from walltime.report import write_page
from walltime.whatif import calibrate, what_if

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
    """Run a command; what it prints is of no interest here."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        status = run(list(map(str, words)))
    assert status == 0, errors.getvalue()


@pytest.fixture(scope="module")
def campaign_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign")
    (folder / "plan.toml").write_text(PLAN)
    plan = read_plan(folder / "plan.toml")
    run_campaign(plan)
    return write_page(folder / "page.html", wt.campaign.campaign_page(read_results(plan)))


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


@pytest.fixture(scope="module")
def jobs():
    return recorded_as(jobs_of(MACHINE, jobs=1500), MACHINE, "easy", late=600)


@pytest.fixture(scope="module")
def calibration_page(jobs, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("calibration") / "page.html", wt.whatif.calibration_page(calibrate(jobs, MACHINE), jobs))


@pytest.fixture(scope="module")
def what_if_page(jobs, tmp_path_factory):
    found = what_if(jobs, MACHINE, ["nodes+=25%", "partition.main.MaxTime=2h", "policy=fcfs"], replications=2)
    return write_page(tmp_path_factory.mktemp("what-if") / "page.html", wt.whatif.what_if_page(found))


@pytest.fixture(scope="module")
def tuning_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    log, page = folder / "made.swf", folder / "page.html"
    walltime("generate", "lublin99", "--jobs", 1500, "--users", 20, "--out", log)
    walltime("tune", log, "--days", 1, "--margin", 1, "--copies", 1, "--budget", 4, "--optimiser", "random", "--report", page)
    return page


@pytest.fixture(scope="module")
def leaderboard_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    for policy in ("easy", "fcfs", "easy:order=sjf"):
        run_suite("overload", policy, folder)
    walltime("benchmark", "leaderboard", folder, "--report", folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def learned_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    walltime("generate", "lublin99", "--procs", 64, "--jobs", 1800, "--out", folder / "log.swf")
    walltime("learn", "train", folder / "log.swf", "--episodes", 128, "--out", folder / "agent")
    walltime("learn", "evaluate", folder / "agent", "--report", folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def printed_pages(tmp_path_factory):
    """The pages of what is in a log, of predictions, advice, explanations, an audit and a cleaned log."""
    folder = tmp_path_factory.mktemp("printed")
    log = folder / "made.swf"
    walltime("generate", "lublin99", "--jobs", 600, "--users", 5, "--estimates", "tsafrir05", "--out", log)
    walltime("info", log, "--report", folder / "log.html")
    walltime(
        "predict", log, "--predictor", "last", "--predictor", "tsafrir07", "--predictor", "user", "--report", folder / "predicted.html"
    )
    walltime("suggest", log, "--user", 1, "--report", folder / "advice.html")
    walltime("simulate", log, "--policy", "easy", "--out", folder / "easy.csv")
    walltime("audit", log, folder / "easy.csv", "--policy", "easy", "--report", folder / "audited.html")
    walltime("explain", log, "--longest", 10, "--report", folder / "waits.html")
    longest = simulate(read(log), "easy")
    job = int(longest.workload.job_id[longest.wait.argmax()])
    walltime("explain", log, "--job", job, "--report", folder / "explained.html")
    walltime("clean", log, "--head", 500, "--report", folder / "cleaned.html")
    return folder


@pytest.fixture(scope="module")
def pages_of_a_log(tmp_path_factory):
    """The pages of start times, rules, differences, last week and predictions, of one log with recorded waits; rules take two months."""
    folder = tmp_path_factory.mktemp("log")
    made, log = folder / "made.swf", folder / "log.swf"
    walltime("generate", "downey97", "--jobs", 2200, "--procs", 64, "--load", 0.7, "--users", 12, "--estimates", "tsafrir05", "--out", made)
    walltime("simulate", made, "--policy", "easy", "--out", log)
    for policy in ("easy", "conservative"):
        walltime("simulate", made, "--policy", policy, "--out", folder / f"{policy}.csv")
    walltime("calibrate", log, "--starts", "--moments", 10, "--report", folder / "starts.html")
    walltime("infer", log, "--report", folder / "rules.html")
    walltime(
        "diff", folder / "easy.csv", folder / "conservative.csv", "--log", made, "--policy", "easy", "--report", folder / "difference.html"
    )
    walltime("report", log, "--week", "--report", folder / "week.html")
    walltime("benchmark", "predictions", log, "--copies", 0, "--only", "--predictor", "last", "--report", folder / "predictions.html")
    return folder


OAR = """[[pool]]
name = "nodes"
nodes = 16
procs = 4
[[partition]]
name = "all"
pools = ["nodes"]
"""


@pytest.fixture(scope="module")
def other_pages(tmp_path_factory):
    """The pages of a search for orders, of OAR's scheduling, and of the side-car: what it would gain, and what happened."""
    folder = tmp_path_factory.mktemp("other")
    log, machine, day_log = folder / "made.swf", folder / "machine.toml", folder / "log.txt"
    walltime("generate", "lublin99", "--jobs", 800, "--procs", 64, "--users", 12, "--estimates", "tsafrir05", "--out", log)
    walltime("search", log, "--budget", 8, "--optimiser", "random", "--report", folder / "searched.html")
    machine.write_text(OAR)
    walltime("simulate", log, "--policy", "oar", "--machine", machine, "--report", folder / "oar.html")
    walltime("simulate", log, "--policy", "easy", "--out", folder / "waits.swf")
    walltime("slurm", "adjust", "--history", folder / "waits.swf", "--report", folder / "gain.html")
    day_log.write_text(sacct(day(folder, busy(80), 32)))
    walltime("slurm", "what-happened", "--ledger", folder, day_log, "--report", folder / "happened.html")
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("which", ["searched", "oar", "gain", "happened"])
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_other_page__is_accessible(tabs, other_pages, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(other_pages / f"{which}.html", ready=False)
    assert_accessible(tab, width)
    assert tab.locator(".first div").count() == (0 if which == "searched" else 3)
    keep(tab, f"{which}_page-{scheme}-{width}")


@pytest.mark.nightly
@pytest.mark.parametrize("which", ["starts", "rules", "difference", "week", "predictions"])
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_page_of_a_log__is_accessible(tabs, pages_of_a_log, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(pages_of_a_log / f"{which}.html", ready=False)
    assert_accessible(tab, width)
    keep(tab, f"{which}_page-{scheme}-{width}")


@pytest.mark.parametrize("which", ["predicted", "advice", "waits", "cleaned"])
def test_page_of_tables__is_accessible(tabs, printed_pages, keep, which):
    tab = tabs(width=1200, scheme="light").open(printed_pages / f"{which}.html", ready=False)
    assert_accessible(tab, 1200)
    keep(tab, f"{which}_page")


@pytest.mark.parametrize("which", ["log", "audited", "explained"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), pytest.param(400, "dark", marks=pytest.mark.nightly)])
def test_printed_page__answers_first_and_is_accessible(tabs, printed_pages, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(printed_pages / f"{which}.html", ready=False)
    assert_accessible(tab, width)
    assert tab.locator(".first div").count() == (4 if which == "explained" else 3)
    assert tab.locator("figure").first.bounding_box()["y"] < 900
    keep(tab, f"{which}_page-{scheme}-{width}")


def test_table__is_copied_for_papers_and_spreadsheets(tabs, campaign_page):
    tab = tabs().open(campaign_page, ready=False)
    bar = tab.locator(".copy").first
    for name, begins in (("CSV", "load,policy,"), ("Markdown", "| load | policy |"), ("LaTeX", "\\begin{tabular}")):
        bar.locator(f"button:text('{name}')").click()
        text = bar.locator("textarea").input_value()
        assert text.startswith(begins)
        assert "\u00ad" not in text
    assert text.count("\\\\\n") == tab.locator("table").first.locator("tr").count()


LONG = [
    pytest.param(which, marks=pytest.mark.nightly)
    for which in ("calibration", "what_if", "replicated", "walltimes", "tuning", "leaderboard", "learned")
]
"""Pages whose runs take longer than the page."""


@pytest.mark.parametrize("which", ["campaign", *LONG])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), pytest.param(400, "dark", marks=pytest.mark.nightly)])
def test_page__quiet_sortable_and_accessible(tabs, request, keep, which, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(request.getfixturevalue(f"{which}_page"), ready=False)
    assert tab.locator("button.sort").count() > 4
    assert_accessible(tab, width)
    keep(tab, f"{which}_page-{scheme}-{width}")


@pytest.mark.nightly
def test_calibration__folded_tables_of_long_waits_fit_the_screen(tabs, jobs, tmp_path):
    found = calibrate(jobs, MACHINE)
    names = ["threshold", *(f"{what}_{of}" for what in ("mean", "median", "p90") for of in ("recorded", "simulated"))]
    rows = [replace(row, jobs=18_476, doubt="", **dict.fromkeys(names, 180 * 3600 + 50 * 60)) for row in found.rows]
    page = write_page(tmp_path / "page.html", wt.whatif.calibration_page(replace(found, rows=rows), jobs))
    wide = """() => {
        for (const fold of document.querySelectorAll("details")) fold.open = true;
        return [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel);
    }"""
    assert tabs(width=1200, scheme="light").open(page, ready=False).evaluate(wide) == []
