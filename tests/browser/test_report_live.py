"""The report in a real browser: what it shows is what the schedules say, it is fast, it asks nobody for anything, and all can use it."""

import re

import numpy as np
import pytest

import walltime as wt
from tests.browser.accessibility import assert_accessible
from tests.traces import trace_path
from walltime import metrics, read, simulate
from walltime.comparison import write_comparison_page
from walltime.policy import Conservative, Easy, Kind, NoBackfilling
from walltime.report.stretch import assign_processors
from walltime.wording import human_difference, human_time
from walltime.workload import Origin, Workload

TITLES = ["EASY", "FCFS", "Conservative"]


def jobs(count, load=0.9, machine=128, seed=3, origin=None):
    """Jobs of random sizes that keep a machine busy, so that queues form and go."""
    rng = np.random.default_rng(seed)
    runtime = np.ceil(rng.lognormal(6.5, 1.5, count)).astype(np.int64)
    procs = np.minimum(2 ** rng.integers(0, 7, count), machine)
    span = float((runtime * procs).sum()) / machine / load
    return Workload.from_arrays(
        job_id=np.arange(count) * 2 + 1,
        submit=np.sort(rng.integers(0, int(span), count)),
        runtime=runtime,
        requested=runtime * rng.integers(1, 6, count),
        procs=procs,
        machine_procs=machine,
        columns={"user": rng.integers(1, 20, count)},
        origin=origin or Origin("log <b>&", sha256="ab" * 32, records=count, unix_start_time=844_000_000, time_zone="Europe/Stockholm"),
    )


@pytest.fixture(scope="module")
def schedules():
    workload = jobs(1500)
    return [simulate(workload, policy) for policy in (Easy(), NoBackfilling(), Conservative())]


@pytest.fixture(scope="module")
def page(schedules, tmp_path_factory):
    return write_comparison_page(tmp_path_factory.mktemp("report") / "report.html", schedules)


def view_of(tab, k=0):
    """The stretch of time that a Gantt chart shows, s, once it has come to rest."""
    before, view = None, ""
    for _ in range(50):
        tab.wait_for_timeout(60)  # two frames
        before, view = view, tab.locator(".gantt canvas").nth(k).get_attribute("data-view")
        if view == before:
            break
    return tuple(map(float, view.split()))


def until(tab, look, right):
    """What is seen, as soon as it is right; after two seconds, what is seen then."""
    for _ in range(60):
        seen = look()
        if right(seen):
            break
        tab.wait_for_timeout(30)
    return seen


def box_of(tab, k=0):
    """Where the drawing of a Gantt chart lies in the window: left, top, width, height; without axes (MARGIN in gantt.js)."""
    canvas = tab.locator(".gantt canvas").nth(k)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    return box["x"] + 58, box["y"] + 4, box["width"] - 66, box["height"] - 28


def test_report__opens_quietly_and_shows_canvases(tabs, page, keep):
    tab = tabs().open(page)
    assert tab.locator(".gantt canvas").count() == 3
    assert tab.locator(".uplot").count() == 4
    assert not tab.locator("h2", has_text="Excerpt of the schedules").is_visible()
    keep(tab, "report")


def test_report__without_scripts_it_shows_its_figures(tabs, page, keep):
    tab = tabs(scripts=False).open(page, ready=False)
    assert tab.locator("h2", has_text="Excerpt of the schedules").is_visible()
    assert tab.locator("figure svg:visible").count() == 1 + 3 + 3 + 3 + 3  # waits, slowdowns, time; sizes; weeks; stretches
    assert not tab.locator("#live-controls").is_visible()
    keep(tab, "report-without-scripts")


@pytest.mark.nightly
def test_report__without_the_live_part_it_is_small(tabs, schedules, tmp_path):
    path = write_comparison_page(tmp_path / "still.html", schedules, live=False)
    tab = tabs().open(path, ready=False)
    assert tab.locator("canvas").count() == 0
    assert tab.locator("h2", has_text="Excerpt of the schedules").is_visible()
    assert tab.locator("button.sort").count() > 10


def test_gantt__hover_shows_the_job_that_is_there(tabs, page, schedules):
    tab = tabs().open(page)
    for k, schedule in enumerate(schedules):
        w = schedule.workload
        job, first, count = assign_processors(schedule.start, schedule.end, w.procs, w.machine_procs)
        middle = int(schedule.start[750])
        tab.goto(f"{page.as_uri()}#job={w.job_id[750]}")
        begin, end = view_of(tab, k)
        assert begin < middle < end
        left, top, width, height = box_of(tab, k)
        strips = [
            s
            for s in range(len(job))
            if schedule.start[job[s]] > begin
            and schedule.end[job[s]] < end
            and (schedule.end[job[s]] - schedule.start[job[s]]) / (end - begin) * width > 3
            and count[s] / w.machine_procs * height > 3
        ]
        assert len(strips) > 3
        for s in strips[:: max(len(strips) // 12, 1)]:
            time = (schedule.start[job[s]] + schedule.end[job[s]]) / 2
            x = left + width * (time - begin) / (end - begin)
            y = top + height * (1 - (first[s] + count[s] / 2) / w.machine_procs)
            tab.mouse.move(x, y)
            index = job[s]
            whose = f"Job {w.job_id[index]} of user {w.columns['user'][index]}\n"
            shown = until(tab, tab.locator(".tip").inner_text, lambda text, whose=whose: text.startswith(whose))
            assert shown.startswith(whose)
            assert f"{w.procs[index]} processor" in shown
            assert f"ran {human_time(schedule.runtime[index])}" in shown
            assert ("did not wait" if schedule.wait[index] == 0 else f"waited {human_time(schedule.wait[index])}") in shown


def test_gantt__pixels_are_averages(tabs, page, schedules):
    """The mean colour of the whole chart is that of the shares of processor time of each kind of start, and of idle time."""
    tab = tabs().open(page)
    palette = {Kind.IMMEDIATE: (0xB8, 0xBC, 0xC2), Kind.RESERVED: (0xE6, 0x9F, 0x00), Kind.BACKFILLED: (0x00, 0x72, 0xB2)}
    for k, schedule in enumerate(schedules):
        begin, end = view_of(tab, k)
        seen = (
            tab.locator(".gantt canvas")
            .nth(k)
            .evaluate(
                """(canvas) => {
                const sum = [0, 0, 0];
                const { data } = canvas.getContext("2d").getImageData(59, 5, canvas.width - 68, canvas.height - 30);
                for (let i = 0; i < data.length; i++) if (i % 4 < 3) sum[i % 4] += data[i];
                return sum.map((x) => (x / data.length) * 4);
            }"""
            )
        )
        w = schedule.workload
        area = (end - begin) * w.machine_procs
        shares = {kind: float((schedule.runtime * w.procs)[schedule.kind == kind].sum()) / area for kind in palette}
        idle = 1 - sum(shares.values())
        expected = [sum(shares[kind] * palette[kind][c] for kind in palette) + idle * paper for c, paper in enumerate((0xFD, 0xFD, 0xFC))]
        np.testing.assert_allclose(seen, expected, atol=10)  # edges are drawn over some of them


def test_gantt__pointer_keys_and_buttons_move_all_charts(tabs, page):
    tab = tabs().open(page)
    whole = view_of(tab)
    left, top, width, height = box_of(tab)
    tab.mouse.dblclick(left + width / 4, top + height / 2)
    near = view_of(tab)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 4)
    at = whole[0] + (whole[1] - whole[0]) / 4
    assert (at - near[0]) / (near[1] - near[0]) == pytest.approx(0.25, abs=0.01), "what was pointed at stays where it is"
    tab.keyboard.press("Escape")  # the double click may have chosen a job
    tab.mouse.move(left + 300, top + 50)
    tab.mouse.down()
    tab.mouse.move(left + 200, top + 50, steps=4)
    tab.mouse.up()
    dragged = view_of(tab)
    assert dragged[0] - near[0] == pytest.approx(100 / width * (near[1] - near[0]), rel=0.02)
    tab.locator(".gantt canvas").first.focus()
    for key, length in (("+", 0.5), ("-", 1), ("-", 2)):
        tab.keyboard.press(key)
        assert view_of(tab)[1] - view_of(tab)[0] == pytest.approx((near[1] - near[0]) * length, rel=1e-6)
    tab.keyboard.press("ArrowRight")
    assert view_of(tab)[0] > dragged[0] - (near[1] - near[0])
    tab.keyboard.press("Home")
    assert view_of(tab) == whole
    tab.get_by_role("button", name="Zoom in").click()
    tab.get_by_role("button", name="Later").click()
    assert [view_of(tab, k) for k in range(3)] == [view_of(tab)] * 3 != [whole] * 3
    tab.get_by_role("button", name="Show the whole schedule").click()
    assert view_of(tab) == whole
    tab.locator(".gantt canvas").first.focus()
    tab.keyboard.press("n")
    first = tab.locator("#live-explanation h3").inner_text()
    tab.keyboard.press("n")
    second = tab.locator("#live-explanation h3").inner_text()
    tab.keyboard.press("p")
    assert tab.locator("#live-explanation h3").inner_text() == first != second
    tab.keyboard.press("Escape")
    assert tab.locator("#live-explanation").inner_text() == ""


def test_story__says_what_explain_says(tabs, page, schedules):
    """The browser's facts of a job, against those of `explain`, which watches the engine."""
    tab = tabs().open(page)
    easy = schedules[0]
    waited = np.argsort(-easy.wait, kind="stable")[:3].tolist() + np.flatnonzero(easy.wait == 0)[40:42].tolist()
    for index in waited:
        number = int(easy.workload.job_id[index])
        tab.fill("#live-job", str(number))
        tab.keyboard.press("Enter")
        told = tab.locator("#live-explanation").inner_text()
        explanation = wt.explain(easy, number, sooner=False)
        assert f"Job {number} of user" in told
        assert f"{explanation.submission.free} processor" in told
        if explanation.wait:
            assert (f"{explanation.submission.ahead} job" if explanation.submission.ahead else "no job was ahead of it") in told
            count = len(explanation.overtaken_by)
            assert (f"{count} later job{'' if count == 1 else 's'} overtook it" if count else "No later job overtook it") in told
            if explanation.held:
                assert f"for {human_time(explanation.held)}, enough were free" in told
                assert f"For {human_time(explanation.too_few)} of its wait" in told
            else:
                assert "For the whole wait, too few processors were free" in told
        rows = tab.locator("#live-explanation tbody tr").all_inner_texts()
        for schedule, row in zip(schedules, rows, strict=True):
            assert human_time(schedule.wait[index]) in row
        overtaken = [int(re.split(r"\t", row)[-1].replace(",", "")) for row in rows]
        assert overtaken[0] == len(explanation.overtaken_by)
        assert overtaken[1] == 0, "FCFS lets nobody overtake"


def test_frame__of_the_schedules_shows_nothing_else(browser, page, tmp_path):
    (tmp_path / "frame.html").write_text(f'<iframe src="{page.as_uri()}#live-gantts" width="1000" height="600"></iframe>')
    tab = browser.new_page(viewport={"width": 1100, "height": 700})
    tab.goto((tmp_path / "frame.html").as_uri())
    frame = tab.frame_locator("iframe")
    frame.locator("html[data-live=ready].alone").wait_for(timeout=60_000, state="attached")
    assert frame.locator("h1").is_hidden()
    assert frame.locator("h2").evaluate_all("(heads) => heads.filter((head) => head.checkVisibility()).map((head) => head.id)") == [
        "live-title"
    ]
    assert frame.locator(".gantt canvas").first.is_visible()
    tab.close()


def test_find__unknown_jobs_and_addresses(tabs, page, schedules):
    tab = tabs().open(page, address="#job=1501")
    assert tab.locator("#live-explanation h3").inner_text().startswith("Job 1501 of user")
    answers = {"2": "There is no job 2; job numbers range from 1 to 2999.", "x": "There is no job x", "": "Enter the number of a job."}
    for typed, said in answers.items():
        tab.fill("#live-job", typed)
        tab.get_by_role("button", name="Find").click()
        assert said in tab.locator("#live-controls [role=status]").inner_text()
    worst = wt.explanation.longest_waits(schedules[0], 1)[0]
    tab.get_by_role("button", name=f"Show job {worst.job}").first.click()
    assert tab.url.endswith(f"#job={worst.job}")
    row = tab.locator("#live-explanation tbody tr").first.inner_text()
    assert human_time(worst.wait) in row
    assert row.split("\t")[-2:] == [f"{worst.ahead:,}", f"{worst.overtaken_by:,}"]


def test_links_to_jobs__from_the_keyboard_go_on_in_the_chart_of_their_policy(tabs, page, schedules):
    tab = tabs(width=390).open(page)
    worst = wt.explanation.longest_waits(schedules[1], 1)[0]
    link = tab.locator("td[data-p='1']").get_by_role("button", name=f"Show job {worst.job}")
    focused = lambda: tab.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")  # noqa: E731
    link.focus()
    tab.keyboard.press("Enter")
    assert focused() == f"Gantt chart of the whole schedule under {TITLES[1]}"
    assert f"Under {TITLES[1]}: " in tab.locator("#live-explanation").inner_text()
    before = view_of(tab)
    tab.keyboard.press("+")
    assert view_of(tab)[1] - view_of(tab)[0] == pytest.approx((before[1] - before[0]) / 2)
    tab.get_by_role("button", name="its explanation").press("Enter")
    assert tab.evaluate("document.activeElement.id") == "live-explanation"
    top = tab.locator("#live-explanation h3").bounding_box()["y"]
    assert 0 <= top < 300, "the explanation is in sight"
    tab.get_by_role("button", name="Close").click()
    link.click()
    assert focused() == f"Show job {worst.job}", "a pointer does not move the focus"


def test_tables__sort_by_number(tabs, page, schedules):
    tab = tabs().open(page)
    table = tab.get_by_role("region", name="Averages, one row per policy")
    order = lambda: table.locator("tbody th").all_inner_texts()  # noqa: E731
    head = table.get_by_role("button", name="mean wait")
    waits = {title: s.summary().mean_wait for title, s in zip(TITLES, schedules, strict=True)}
    head.click()
    assert order() == sorted(TITLES, key=waits.get, reverse=True)
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("mean wait")
    head.click()
    assert order() == sorted(TITLES, key=waits.get)
    head.click()
    assert order() == TITLES
    tab.locator("summary", has_text="Mean wait by the users").click()
    users = tab.get_by_role("region", name="Mean wait by the users with most processor time")
    users.get_by_role("button", name="jobs").click()
    counts = [int(cell.replace(",", "")) for cell in users.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)


def test_choice__hides_policies_and_compares_with_another(tabs, page, schedules):
    tab = tabs().open(page)
    assert tab.locator(".gantt:visible").count() == 3
    tab.get_by_label("FCFS", exact=True).uncheck()
    assert tab.locator(".gantt:visible figcaption").all_inner_texts() == ["EASY", "Conservative"]
    table = tab.get_by_role("region", name="Averages, one row per policy")
    assert table.locator("tbody th:visible").all_inner_texts() == ["EASY", "Conservative"]
    assert not tab.locator("h3", has_text="From EASY to FCFS").is_visible()
    assert tab.locator("h3", has_text="From EASY to conservative").is_visible()
    tab.locator("#live-base").select_option("Conservative")
    waits = [s.summary().mean_wait for s in schedules]
    shown = table.locator("tbody tr", has_text="EASY").locator('td[data-key="mean_wait"] small').inner_text()
    assert shown == human_difference(100 * (waits[0] - waits[2]) / waits[2])
    assert table.locator("tbody tr", has_text="Conservative").locator("small").count() == 0
    for name in ("EASY", "Conservative"):  # the last one stays
        tab.get_by_label(name, exact=True).click()
    assert tab.locator(".gantt:visible").count() == 1


def test_charts__values_under_the_pointer(tabs, page, schedules):
    tab = tabs().open(page)
    begin, end = view_of(tab)
    edges = np.linspace(begin, end, 501)
    for chart, of in (
        ("#live-queue", [metrics.means_between(*metrics.queue_length(s.submit, s.start), edges) for s in schedules]),
        (
            "#live-busy",
            [metrics.means_between(*metrics.busy_processors(s.start, s.end, s.workload.procs), edges) / 1.28 for s in schedules],
        ),
    ):
        over = tab.locator(f"{chart} .u-over")
        over.scroll_into_view_if_needed()
        box = over.bounding_box()
        for share in (0.11, 0.5, 0.83):
            tab.mouse.move(box["x"] + share * box["width"], box["y"] + 20)
            near = [[own[k] for own in of] for k in range(int(share * 500) - 2, int(share * 500) + 2)]

            def values(chart=chart):
                texts = tab.locator(f"{chart} .u-value").all_inner_texts()[1:]
                return [float(text.rstrip(" %").replace("--", "nan")) for text in texts]

            shown = until(tab, values, lambda seen, near=near: any(np.allclose(seen, one, atol=0.5) for one in near))
            assert any(np.allclose(shown, one, atol=0.5) for one in near), (shown, near)
    tab.locator("#live-wait").focus()
    tab.keyboard.press("ArrowRight")
    shares = [float(value.rstrip(" %")) for value in tab.locator("#live-wait .u-value").all_inner_texts()[1:]]
    assert shares == pytest.approx([100 * np.mean(s.wait == 0) for s in schedules], abs=0.06)


def test_charts__dragging_zooms_the_gantt_charts_too(tabs, page):
    tab = tabs().open(page)
    begin, end = view_of(tab)
    over = tab.locator("#live-queue .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 4, box["y"] + 50)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=5)
    tab.mouse.up()
    box_of(tab)  # scrolls there, so that it is drawn
    near = view_of(tab)
    assert near == pytest.approx((begin + (end - begin) / 4, (begin + end) / 2), abs=(end - begin) / 100)
    over.dblclick()
    box_of(tab)
    assert view_of(tab) == (begin, end)


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), pytest.param(400, "dark", marks=pytest.mark.nightly)])
def test_report__everybody_can_use_it(tabs, page, keep, scheme, width):
    tab = tabs(width=width, scheme=scheme).open(page, address="#job=1501")
    for details in tab.locator("details").all():
        details.evaluate("(element) => { element.open = true }")
    assert_accessible(tab, width)
    keep(tab, f"report-{scheme}-{width}")


def test_names__cannot_break_out(tabs, tmp_path):
    evil = '</script><script>console.log("no")</script><img src="https://example.org/x">'
    names = {"user": tuple(f"{k}{evil}" for k in range(1, 20))}
    workload = jobs(50, origin=Origin(evil, sha256="ab" * 32, records=50, unix_start_time=10**9, names=names))
    tab = tabs().open(write_comparison_page(tmp_path / "evil.html", [simulate(workload, "easy")], title=evil), address="#job=9")
    assert tab.locator("h1").inner_text() == evil
    assert (
        tab.locator("#live-explanation h3").inner_text() == f"Job 9 of user {workload.origin.name_of('user', workload.columns['user'][4])}"
    )


@pytest.mark.nightly
def test_times__local_across_clock_changes_and_without_a_calendar(tabs, tmp_path):
    """Jobs each hour around the end of summer time in Stockholm, and the same without a calendar."""
    start = 846_370_800  # 1996-10-26 23:00 UTC; at 01:00 UTC clocks go from 03:00 back to 02:00
    submit = np.arange(5) * 3600
    for origin, shown in (
        (Origin("a", unix_start_time=start, time_zone="Europe/Stockholm"), ["01:00", "02:00", "02:00", "03:00", "04:00"]),
        (Origin("b", unix_start_time=start, time_zone="-3600"), ["22:00", "23:00", "00:00", "01:00", "02:00"]),
        (Origin("c"), ["the first submission", "1 h 00 min", "2 h 00 min", "3 h 00 min", "4 h 00 min"]),
    ):
        workload = Workload.from_arrays(submit=submit, runtime=[60] * 5, procs=[1] * 5, machine_procs=1, origin=origin)
        path = write_comparison_page(tmp_path / f"{origin.name}.html", [simulate(workload, "easy")])
        tab = tabs().open(path)
        for number, said in zip(range(1, 6), shown, strict=True):
            tab.fill("#live-job", str(number))
            tab.keyboard.press("Enter")
            assert said in re.search(r"submitted at (.*)\.", tab.locator("#live-explanation").inner_text())[1]


@pytest.mark.nightly
def test_gantt__quarter_of_a_million_jobs(tabs, tmp_path, keep):
    """Drawn, and zoomed by keys; how fast is measured by benchmarks/pages.py."""
    path = write_comparison_page(tmp_path / "large.html", [simulate(jobs(250_000, load=0.8), "easy")])
    tab = tabs().open(path)
    begin, end = view_of(tab)
    tab.locator(".gantt canvas").first.focus()
    for _ in range(3):
        tab.keyboard.press("+")
    zoomed = until(tab, lambda: view_of(tab), lambda view: view[1] - view[0] < (end - begin) / 4)
    assert zoomed[1] - zoomed[0] < (end - begin) / 4
    keep(tab, "report-large")


@pytest.mark.nightly
def test_kth__small_enough(kth_page):
    assert kth_page.stat().st_size < 5_000_000


@pytest.fixture
def kth_page(tmp_path):
    workload = read(trace_path("KTH-SP2-1996-2"))
    return write_comparison_page(
        tmp_path / "kth.html", [simulate(workload, policy) for policy in (Easy(), NoBackfilling(), Conservative())]
    )
