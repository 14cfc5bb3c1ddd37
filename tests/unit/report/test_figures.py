"""The figures: what they draw is what the schedule says."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import walltime as wt
from tests.errors import raises
from walltime.accuracy.estimate_figures import estimates_figure
from walltime.checking.difference_page import KEY
from walltime.errors import PolicyError, WorkloadError
from walltime.explanation.page import USERS
from walltime.policy import NoBackfilling
from walltime.preparation.workload_figures import compare_workloads
from walltime.report import figures
from walltime.report.figure_files import figure_bytes, resize, slim, to_svg, write_figure
from walltime.report.stretch import JOBS, assign_processors, choose_stretch
from walltime.schedule.elsewhere import OtherProgram
from walltime.schedule.schedule import Schedule
from walltime.workload import Origin, Workload
from walltime.workload.models import Lublin99


def in_order(submit, runtime, procs, machine_procs):
    """First come, first served, second by second in spirit: each job starts as soon as its processors are free."""
    w = Workload.from_arrays(submit=submit, runtime=runtime, procs=procs, machine_procs=machine_procs)
    start = np.zeros(len(w), np.int64)
    free_at = np.zeros(machine_procs, np.int64)
    last = 0
    for i in range(len(w)):
        free_at.sort()
        start[i] = last = max(int(w.submit[i]), int(free_at[w.procs[i] - 1]), last)
        free_at[: w.procs[i]] = start[i] + w.runtime[i]
    kind = np.where(start > w.submit, 1, 0).astype(np.uint8)
    return Schedule(w, NoBackfilling(), start, start + w.runtime, w.runtime, kind, start)


def random_schedule(n=800, seed=3, machine=32):
    rng = np.random.default_rng(seed)
    return in_order(np.sort(rng.integers(0, 30_000, n)), rng.integers(0, 800, n), rng.integers(1, 17, n), machine)


jobs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=40)


@given(jobs)
def test_assign_processors__never_overlap_never_exceed_the_machine(rows):
    s = in_order(*map(list, zip(*rows, strict=True)), 12)
    procs = s.workload.procs
    job, first, count = assign_processors(s.start, s.end, procs, 12)
    assert (count > 0).all()
    assert (first >= 0).all()
    assert (first + count <= 12).all()
    owned = np.bincount(job, weights=count, minlength=len(s))
    assert np.array_equal(owned, np.where(s.runtime > 0, procs, 0))
    for t in np.unique(s.start):
        alive = (s.start[job] <= t) & (t < s.end[job])
        places = np.concatenate([np.arange(a, a + c) for a, c in zip(first[alive], count[alive], strict=True)] or [np.zeros(0)])
        assert len(places) == len(np.unique(places))


def test_assign_processors__keeps_a_job_together_where_it_can():
    start, end = np.array([0, 0, 0, 5]), np.array([5, 9, 9, 9])
    job, first, count = assign_processors(start, end, np.array([1, 1, 2, 2]), 8)
    assert list(zip(job, first, count, strict=True)) == [(0, 0, 1), (1, 1, 1), (2, 2, 2), (3, 4, 2)]


def test_assign_processors__names_a_schedule_that_needs_too_much():
    with raises(WorkloadError, "overfull_machine", "3", "4"):
        assign_processors(np.array([0, 3]), np.array([9, 9]), np.array([3, 2]), 4)


def test_choose_stretch__shows_about_as_many_jobs_as_asked_for():
    s = random_schedule()
    begin, end = choose_stretch([s])
    shown = int(((s.start < end) & (s.end > begin) & (s.runtime > 0)).sum())
    assert JOBS <= shown <= 1.3 * JOBS
    slow = Schedule(s.workload, NoBackfilling(), 3 * s.start, 3 * s.start + s.runtime, s.runtime, s.kind, s.reserved_start)
    begin, end = choose_stretch([s, slow])
    assert min(int(((x.start < end) & (x.end > begin) & (x.runtime > 0)).sum()) for x in (s, slow)) >= JOBS
    waiting = ((s.workload.submit < end) & (s.start > begin)).sum()
    assert waiting > 50
    few = in_order([3, 4], [5, 6], [1, 1], 2)
    assert choose_stretch([few]) == (3, 10)
    assert choose_stretch([in_order([], [], [], 2)]) == (0, 1)


def test_choose_stretch__where_nobody_waits():
    n = 1000
    s = in_order(np.arange(n) * 10, np.full(n, 35), np.ones(n, np.int64), 16)
    begin, end = choose_stretch([s, s])
    assert 0 <= begin < end <= int(s.end.max())
    assert JOBS <= ((s.start < end) & (s.end > begin)).sum() <= 1.3 * JOBS


def patches(figure):
    (axes,) = figure.axes
    return [p for p in axes.patches if len(p.get_path().vertices)]


@pytest.mark.parametrize("window", [(0, 10**6), (5000, 9000)])
def test_gantt__area_of_each_kind_is_processor_time(window):
    s = random_schedule(300)
    begin, end = window
    by_colour = {p.get_facecolor(): p for p in patches(figures.gantt(s, begin, end))}
    inside = np.clip(s.end, begin, end) - np.clip(s.start, begin, end)
    total = 0.0
    for patch in by_colour.values():
        corners = patch.get_path().vertices.reshape(-1, 5, 2)
        low, high = corners.min(axis=1), corners.max(axis=1)
        assert (low >= 0).all()
        assert (high[:, 1] <= s.workload.machine_procs).all()
        total += float(np.prod(high - low, axis=1).sum())
    unit = 86_400 if end > 4 * 86_400 else 3600 if end - begin > 3 * 3600 else 60
    assert total * unit == pytest.approx(float(np.dot(inside, s.workload.procs)))


def test_distributions__read_off_the_curve():
    s = random_schedule()
    (axes,) = figures.WAITS.figure([s]).axes
    x, y = axes.lines[0].get_data()
    assert y[0] == pytest.approx(100 * np.mean(s.wait == 0))
    assert y[-1] == 100
    assert len(x) <= 500
    k = 200
    assert y[k] == pytest.approx(100 * np.mean(s.wait < x[k]))
    mask = s.runtime > 400
    (axes,) = figures.SLOWDOWNS.figure([s], [mask]).axes
    x, y = axes.lines[0].get_data()
    ratio = np.maximum(1, (s.wait + s.runtime) / np.maximum(s.runtime, 10))[mask]
    assert y[k] == pytest.approx(100 * np.mean(ratio <= x[k]))


def test_queue_and_utilization__averages_add_up():
    s = random_schedule()
    queue, busy = figures.queue_and_utilization([s]).axes
    for axes, total in ((queue, s.wait.sum()), (busy, 100 * np.dot(s.runtime, s.workload.procs) / s.workload.machine_procs)):
        values, edges, _ = axes.patches[0].get_data()
        assert float(np.dot(values, np.diff(edges))) == pytest.approx(float(total))


@pytest.mark.nightly
def test_figures__leave_matplotlib_as_it_was():
    before = dict(matplotlib.rcParams)
    to_svg(figures.gantt(random_schedule(50), 0, 5000), "a")
    assert dict(matplotlib.rcParams) == before
    code = "import sys, walltime.report; assert 'matplotlib' not in sys.modules; import walltime.report.figures; "
    code += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_to_svg__numbers_at_ticks_are_not_rounded():
    with figures.panel() as (figure, axes):
        pass
    axes.set_xlim(0.345, 0.395)
    axes.set_xticks([0.355, 0.365])
    svg = to_svg(figure, "x")
    assert {">0.355<", ">0.365<"} <= set(re.findall(r">0\.\d+<", svg))
    assert not re.search(r"<path[^>]* d=\"[^\"]*\d\.\d{3}", svg)


def test_to_svg__ids_carry_the_prefix():
    svg = to_svg(figures.WAITS.figure([random_schedule(50)]), "w")
    assert 'id="w-' in svg
    assert all(part.startswith("w-") for part in [*svg.split('id="')[1:], *svg.split("url(#")[1:], *svg.split('href="#')[1:]])
    assert figures.INK not in svg
    assert "metadata" not in svg


@pytest.mark.nightly
def test_size__of_a_page_of_a_long_log():
    n = 240_000
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 80_000_000, n))
    w = Workload.from_arrays(submit=submit, runtime=rng.integers(1, 4000, n), procs=rng.integers(1, 64, n), machine_procs=2**14)
    start = submit + rng.integers(0, 900, n)
    s = Schedule(w, NoBackfilling(), start, start + w.runtime, w.runtime, np.zeros(n, np.uint8), start)
    from tests.pages import render

    assert len(render([s], live=False)) < 1_000_000
    assert len(render([s])) < 20 * n


def test_queue_and_utilization__ticks_at_the_firsts_of_months():
    day = 86_400
    w = Workload.from_arrays(
        submit=[0, 100 * day],
        runtime=[day, day],
        procs=[1, 1],
        machine_procs=2,
        origin=Origin(unix_start_time=0, time_zone="3600"),
    )
    s = Schedule(w, NoBackfilling(), w.submit, w.submit + day, w.runtime, np.zeros(2, np.uint8), w.submit)
    axes = figures.queue_and_utilization([s]).axes[1]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["Feb\n1970", "Mar\n1970", "Apr\n1970"]
    assert axes.get_xticks()[0] == 31 * day - 3600
    assert figures.moment(s, 0) == "1970-01-01 01:00"


def test_moment__outside_the_calendar_is_counted_from_the_first_submission(golden):
    w = Workload.from_arrays(submit=[60], runtime=[1], procs=[1], machine_procs=1, origin=Origin(unix_start_time=2**59))
    s = Schedule(w, NoBackfilling(), w.submit, w.submit + 1, w.runtime, np.zeros(1, np.uint8), w.submit)
    assert figures.moment(s, 60) == "the first submission"
    golden("compare", figures.moment(s, 180))


@pytest.mark.slow
def test_figures__letters_that_the_font_lacks_give_no_warning(tmp_path):
    name = "日本 ü"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runtime = np.arange(1, 301)
        write_figure(tmp_path / "x.png", estimates_figure(runtime, runtime * 2, title=name))
        s = random_schedule()
        w = Workload.from_arrays(submit=s.submit, runtime=s.runtime, procs=s.workload.procs, machine_procs=32, origin=Origin(name=name))
        for kind in ("png", "svg"):
            figure_bytes(compare_workloads([w, w], [name, "b"]), kind)
        to_svg(figures.gantt(s, 0, 5000, title=name), "x")


def test_compare_workloads__names_in_the_legend_have_no_folders():
    w = Lublin99().generate(50, 8, 0.7, seed=1)
    drawn = compare_workloads([w, w], ["/home/ann/logs/KTH-SP2.swf", "own.py:" + "long" * 20])
    first, second = (text.get_text() for text in drawn.legends[0].get_texts())
    assert first == "KTH-SP2.swf"
    assert len(second) == figures.LETTERS


@pytest.mark.parametrize("colours", [USERS.values(), KEY.values()])
def test_colours__that_touch_differ_in_grey(colours):
    greys = sorted(float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114))) for colour in colours)
    assert min(np.diff(greys)) > 0.12


def test_legend__of_many_long_names_has_two_columns_on_a_page():
    schedule = random_schedule()
    drawn = [
        replace(schedule, policy=replace(OtherProgram(), program=f"/home/ann/orders_with_long_names_{k}.py:BIGGEST")) for k in range(25)
    ]
    (legend,) = wt.figures.wait_distribution(*drawn, width="page").get_figure().legends
    assert legend._ncols == 2
    names = [text.get_text() for text in legend.get_texts()]
    assert len(set(names)) == 25


@pytest.mark.parametrize("columns", [1, 2])
def test_resize__gives_the_width_and_puts_narrow_panels_below_each_other(columns):
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, columns))
    resize(figure, 3.5)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == 3.5
    assert figure.get_figheight() == pytest.approx(0.68 * 3.5 * columns)
    assert len({round(axes.get_position().x0, 3) for axes in panels}) == 1


def test_write_figure__takes_the_widths_of_journals(tmp_path):
    path = write_figure(tmp_path / "w.svg", figures.WAITS.figure([random_schedule(50)]), "ieee-column")
    assert 'width="252pt"' in path.read_text()
    with raises(PolicyError, "unknown_width", "'furlong'"):
        write_figure(tmp_path / "w.svg", Figure(), "furlong")
    assert figures.columns_of(["short", "short"], 40) == 2
    assert figures.columns_of(["a name of many letters", "short"], 40) == 1


def test_slim__is_a_narrow_copy_that_leaves_the_figure_alone():
    names = ["easy:order=sjf", "easy:order=saf", "easy:order=a-very-long-name-of-an-order"]
    with figures.rows_figure(names, "change") as (figure, axes):
        for label in ("test", "training"):
            axes.plot([0.8, 0.9, 1.5], range(3), label=label)
        axes.set_xticks([0.5, 0.7, 0.8, 0.9, 1.0, 1.5])
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    before = to_svg(figure, "x")
    small = slim(figure)
    assert small.get_size_inches()[0] == 4
    assert small.get_size_inches()[1] == figure.get_size_inches()[1]
    assert [one.get_text() for one in small.axes[0].get_yticklabels()] == ["sjf", "saf", "a-very-long-name-…"]
    assert len(small.axes[0].get_xticks()) <= 4
    assert [one.get_text() for one in small.legends[0].get_texts()] == ["test", "training"]
    assert to_svg(figure, "x") == before


def test_slim__puts_panels_below_each_other():
    figure = compare_workloads([Lublin99().generate(200, 64, seed=1)])
    small = slim(figure)
    assert small.get_size_inches().tolist() == [4.0, 4.8]  # of four panels, so that they fit below the answer
    assert [axes.get_ylabel() for axes in small.axes] == ["share of jobs"] * 3 + ["per half hour"]
    places = [axes.get_subplotspec().get_geometry() for axes in small.axes]
    assert {(rows, columns) for rows, columns, *_ in places} == {(4, 1)}
    assert {axes.get_subplotspec().get_gridspec().ncols for axes in figure.axes} == {2}


def test_slim__panels_that_share_names_get_their_own_and_keep_their_height():
    figure = Figure(figsize=(9.2, 2.0), layout="constrained")
    grid = figure.subplots(2, 2)
    for k, axes in enumerate(grid.ravel()):
        axes.set_yticks([0, 1], ["easy", "fcfs"])
        axes.tick_params(labelleft=k % 2 == 0)
    grid[1, 1].set_visible(False)
    small = slim(figure)
    assert len(small.axes) == 3
    assert small.get_size_inches().tolist() == [4.0, 3.0]  # an inch each, as before
    assert all(axes.yaxis.get_tick_params()["labelleft"] for axes in small.axes)
