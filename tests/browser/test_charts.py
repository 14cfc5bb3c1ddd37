"""The charts of pages without schedules in a real browser: values under the pointer, by keys, and zoom; the rows of figures."""

import pytest

from tests.browser.accessibility import SIZES, assert_accessible
from walltime.report import write_page
from walltime.report.figures import rows_figure
from walltime.report.interactive import clock_of
from walltime.report.page import Chart, Drawing, Page, Section
from walltime.workload.origin import Origin

DAY = 86_400
CLOCK = clock_of(Origin(unix_start_time=1_767_225_600, time_zone="Europe/Stockholm"), 0)  # 2026-01-01 00:00 UTC
TIMES = [float(k * DAY) for k in range(100)]


def figure(names=("",)):
    with rows_figure(list(names), "hours") as (figure, axes):
        for k in range(len(names)):
            axes.plot([k, k + 1], [k, k])
    return figure


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    waits = [3600.0 * (k + 1) for k in range(100)]
    dates = Chart(
        "Mean wait", TIMES[:20], {"before": [*waits[:19], float("nan")], "now": [float("nan")] * 19 + [7200.0]}, "s", "bars", CLOCK
    )
    stack = Chart(
        "In use", TIMES, {"earlier": [3.0] * 100, "later": [4.0] * 100}, "", "stack", CLOCK, 10, marks=[(DAY, "began")], level=(5, "need")
    )
    shares = Chart("Wait", [float(10**k) for k in range(6)], {"</script>today": [10.0 * k for k in range(6)]}, "%", most=100)
    pictures = [
        Drawing(figure(), "first", "Bars.", live=[dates, stack]),
        Drawing(figure(), "second", "A curve.", live=[shares]),
        Drawing(figure(["job 1", "job 2"]), "third", "Rows.", rows=["job 1\nstarts <b>soon</b>", "job 2"]),
    ]
    return write_page(tmp_path_factory.mktemp("charts") / "page.html", Page("test", "Charts", ["An answer."], [Section("All", pictures)]))


def legend(tab, k):
    """The values that the chart's legend shows, by name."""
    rows = tab.locator(".u-legend").nth(k).locator("tr").all()
    return {row.locator(".u-label").inner_text(): row.locator(".u-value").inner_text() for row in rows}


def keys(tab, k, *pressed):
    chart = tab.locator("div.chart").nth(k)
    chart.focus()
    for key in pressed:
        chart.press(key)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_charts__replace_the_figures_and_are_accessible(tabs, page, keep, width, scheme):
    tab = tabs(width=width, scheme=scheme).open(page)
    assert tab.locator("div.chart canvas").count() == 3
    assert [one.is_visible() for one in tab.locator("figure .only-static").all()] == [False, False]
    assert_accessible(tab, width)
    keep(tab, f"charts-{scheme}-{width}")


def test_charts__without_scripts_the_figures_remain(tabs, page):
    tab = tabs(scripts=False).open(page, ready=False)
    assert [one.is_visible() for one in tab.locator("figure .only-static").all()] == [True, True]
    assert not tab.locator(".only-live").first.is_visible()


def test_chart__shows_values_with_dates_of_the_site(tabs, page):
    tab = tabs().open(page)
    keys(tab, 0, "ArrowRight", "ArrowRight")
    assert legend(tab, 0) == {"time": "2026-01-02 01:00", "before": "2 h 00 min", "now": "\u2013"}
    keys(tab, 1, "ArrowLeft")
    assert {name: legend(tab, 1)[name] for name in ("earlier", "later")} == {"earlier": "3", "later": "4"}
    keys(tab, 2, "ArrowRight", "ArrowRight", "ArrowRight")
    assert legend(tab, 2) == {"less than": "1 min 40 s", "</script>today": "20.0 %"}


def test_chart__zooms_by_dragging_and_back_by_a_double_click(tabs, page):
    tab = tabs().open(page)
    over = tab.locator("div.chart .u-over").nth(1)
    over.scroll_into_view_if_needed()
    box = over.bounding_box()

    def at(share):
        tab.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)

    def day():
        at(0.02)
        at(0.01)
        return legend(tab, 1)["time"][:10]

    assert day() <= "2026-01-03"
    at(0.5)
    tab.mouse.down()
    at(0.8)
    tab.mouse.up()
    assert "2026-02-17" <= day() <= "2026-02-24"
    tab.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2)
    assert day() <= "2026-01-03"


@pytest.mark.parametrize("width", [1200, 400])
def test_rows__show_their_texts_by_pointer_and_keys(tabs, page, width):
    tab = tabs(width=width).open(page)
    tip, rows = tab.locator(".tip"), tab.locator("figure").last
    rows.focus()
    rows.press("ArrowDown")
    assert tip.inner_text() == "job 1\nstarts <b>soon</b>"
    rows.press("ArrowDown")
    assert tip.inner_text() == "job 2"
    rows.scroll_into_view_if_needed()
    patch = next(one.bounding_box() for one in rows.locator('[id$="patch_2"]').all() if one.is_visible())
    tab.mouse.move(patch["x"] + patch["width"] / 2, patch["y"] + 0.25 * patch["height"])
    assert tip.inner_text().startswith("job 1")
    tab.mouse.move(1, 1)
    assert not tip.is_visible()
