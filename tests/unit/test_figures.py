"""Figures for papers and talks: on given axes or new ones, and from the command line."""

from __future__ import annotations

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime import figures
from walltime.errors import WorkloadError
from walltime.machine import Machine, Partition, Pool
from walltime.report import nodes_figure
from walltime.schedule.elsewhere import OtherProgram

JOBS = wt.Workload.from_arrays(
    submit=np.arange(60) * 40,
    runtime=30 + np.arange(60) * 7 % 200,
    requested=300 + np.arange(60) * 11 % 900,
    procs=1 + np.arange(60) % 4,
    machine_procs=4,
)
SCHEDULES = [wt.simulate(JOBS, name) for name in ("easy", "fcfs")]
TWO_NODES = Machine((Pool("thin", 1, 4), Pool("fat", 1, 8, second=2, memory=100)), (Partition("all", ("thin", "fat")),))
ON_NODES = wt.simulate(
    wt.Workload.from_arrays(
        submit=[0, 0, 40],
        runtime=[100, 50, 50],
        procs=[4, 2, 4],
        machine_procs=12,
        columns={name: np.array(values) for name, values in {"gpus": [0, 2, 0], "mem_mb_per_node": [0, 25, 60]}.items()},
    ),
    "slurm:sched_interval=1,bf_interval=1",
    machine=TWO_NODES,
)
OF_WORKLOADS = (figures.estimate_use, figures.estimates_against_runtimes, figures.estimate_distribution, figures.accuracy_by_runtime)


@pytest.mark.slow
@pytest.mark.parametrize("name", figures.OF_SCHEDULES)
def test_figure__draws_on_given_axes_or_new_ones(name):
    draw = figures.OF_SCHEDULES[name]
    given = Figure().subplots()
    what = {"gantt": SCHEDULES[:1], "nodes": [ON_NODES]}.get(name, SCHEDULES)
    assert draw(*what, ax=given) is given
    new = draw(*what, width="column")
    assert isinstance(new, Axes)
    assert new.get_figure().get_figwidth() == figures.WIDTHS["column"]
    assert draw(*what, width=5).get_figure().get_figwidth() == 5
    if name not in figures.SINGLE:
        assert [text.get_text() for text in new.get_figure().legends[0].get_texts()] == ["EASY", "FCFS"]


@pytest.mark.slow
@pytest.mark.parametrize("width", ["column", "ieee-column", "page", "slide"])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_legend__covers_no_data_and_lies_within_the_figure(width, count):
    schedules = [
        replace(SCHEDULES[k % 2], policy=replace(OtherProgram(), program=f"/home/a/folder/my_orders_{k}.py:MINE")) for k in range(count)
    ]
    for draw in (figures.wait_distribution, figures.utilization, figures.queue_length):
        axes = draw(*schedules, width=width)
        figure = axes.get_figure()
        figure.draw_without_rendering()
        inside = figure.bbox
        frame = axes.get_window_extent()
        assert frame.height > 0.8 * figure.dpi, "the axes are a sliver"
        if count == 1:
            assert not figure.legends
            continue
        box = figure.legends[0].get_window_extent()
        assert not box.overlaps(axes.get_tightbbox())
        assert box.x0 >= inside.x0 - 1
        assert box.x1 <= inside.x1 + 1
        assert box.y0 >= inside.y0 - 1
        assert not any("/" in text.get_text() for text in figure.legends[0].get_texts())


def test_series__can_be_zoomed():
    for draw in (figures.utilization, figures.queue_length):
        axes = draw(*SCHEDULES, begin=600, end=1200)
        assert axes.get_xlim() == (600, 1200)
        with raises(WorkloadError, "empty_period", "600"):
            draw(*SCHEDULES, begin=600, end=600)
    axes = figures.utilization(SCHEDULES[0], begin=600, end=1200)
    values, edges, _ = axes.patches[0].get_data()
    easy, drawn = SCHEDULES[0], float((values * np.diff(edges)).sum()) / 100 * JOBS.machine_procs
    inside = np.maximum(np.minimum(easy.end, 1200) - np.maximum(easy.start, 600), 0)
    assert drawn == pytest.approx(float((inside * JOBS.procs).sum()))


def test_heat_maps__have_a_cell_for_each_group():
    axes = figures.wait_by_size(SCHEDULES[0])
    counts = [int(text.get_text().replace(",", "")) for text in axes.texts[1::2]]
    assert sum(counts) == len(JOBS)
    assert figures.wait_by_size(SCHEDULES[0], ax=(given := Figure().subplots())) is given
    with raises(WorkloadError, "unknown_start_time"):
        figures.wait_by_hour(SCHEDULES[0])
    jobs = wt.workload.Workload.from_arrays(
        submit=JOBS.submit,
        runtime=JOBS.runtime,
        procs=JOBS.procs,
        machine_procs=4,
        origin=wt.workload.Origin(unix_start_time=843480031, time_zone="Europe/Stockholm"),
    )
    figure = figures.wait_by_hour(wt.simulate(jobs, "fcfs"), width="page")
    assert figure.get_figwidth() == figures.WIDTHS["page"]
    assert sum(bar.get_height() for bar in figure.axes[0].patches) == len(JOBS)


@pytest.mark.parametrize("draw", OF_WORKLOADS, ids=lambda draw: draw.__name__)
def test_figure__of_a_workload(draw):
    given = Figure().subplots()
    assert draw(JOBS, ax=given) is given
    assert draw(JOBS).get_figure().get_figwidth() == figures.WIDTHS["column"]


@pytest.mark.slow
def test_gantt_of_several_policies__has_a_panel_for_each(capsys, tmp_path):
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, JOBS)
    file = tmp_path / "gantt.svg"
    status, _, err = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--no-spread", "--figure", file)
    assert (status, err) == (0, "")
    assert file.stat().st_size > 0
    axes = figures.gantts(SCHEDULES).axes
    assert [one.get_title("left") for one in axes] == [schedule.title for schedule in SCHEDULES]
    assert len({one.get_xlim() for one in axes}) == 1


def test_wait_distribution__is_the_share_of_jobs_that_wait_less():
    axes = wt.figures.wait_distribution(SCHEDULES[1])
    x, y = (np.asarray(values) for values in axes.lines[0].get_data())
    assert y.tolist() == [100 * float((SCHEDULES[1].wait < at).mean()) for at in x]
    assert axes.get_legend() is None  # a single line needs none


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("processors", [[1, 1, 1, 1], [0.25, 0.45, 0.5, 0.3]]),
        ("gpus", [[1, 1, 0, 0]]),
        ("memory", [[0.25, 0.49, 0.6, 0.36]]),
    ],
)
def test_nodes__shows_the_share_in_use_on_each_node(of, expected, monkeypatch):
    monkeypatch.setattr(nodes_figure, "COLUMNS", 4)
    (mesh,) = figures.nodes(ON_NODES, 0, 100, of=of).collections
    assert np.asarray(mesh.get_array()).reshape(-1, 4) == pytest.approx(np.array(expected))


def test_nodes__are_those_of_a_schedule_that_has_them():
    with raises(WorkloadError, "no_nodes", "EASY", "slurm"):
        figures.nodes(SCHEDULES[0])
    with raises(WorkloadError, "unknown_resource", "licences", "processors", "gpus", "memory"):
        figures.nodes(ON_NODES, of="licences")


def test_figures__leave_the_users_settings_alone_and_keep_grids_below_the_data(tmp_path):
    before = dict(matplotlib.rcParams)
    axes = figures.queue_length(*SCHEDULES)
    assert dict(matplotlib.rcParams) == before
    assert axes.get_axisbelow() is True


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_save__gives_the_same_bytes_every_time(tmp_path, ending):
    files = [figures.save(figures.wait_distribution(*SCHEDULES), tmp_path / f"{k}.{ending}") for k in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 2000


@pytest.mark.slow
def test_pdf__has_fonts_that_publishers_take(tmp_path):
    content = figures.save(figures.wait_distribution(*SCHEDULES), tmp_path / "wait.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/CIDFontType2" in content


def test_figures__say_what_they_cannot_draw(tmp_path):
    with raises(wt.WorkloadError, "no_schedule"):
        figures.wait_distribution()
    with raises(wt.WorkloadError, "wrong_type", "walltime.simulate"):
        figures.gantt(JOBS)
    with raises(wt.WorkloadError, "wrong_type"):
        figures.estimate_use(SCHEDULES[0])
    with raises(wt.PolicyError, "unknown_width", "'poster'", "column", "page", "slide"):
        figures.wait_distribution(SCHEDULES[0], width="poster")
    with raises(wt.PolicyError, "wrong_type"):
        figures.save(None, tmp_path / "x.pdf")
    with raises(wt.errors.OutputError, "unknown_file_extension"):
        figures.save(figures.gantt(SCHEDULES[0]), tmp_path / "x.gif")


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "small.swf"
    file.write_text(HEADER + "".join(record(i, i * 5, 20 + i * 3 % 17, 1 + i % 4, 60) for i in range(1, 30)))
    return file


@pytest.mark.slow
def test_command_line__draws_what_is_asked_for(golden, capsys, log, tmp_path):
    wait, queue = tmp_path / "wait.pdf", tmp_path / "q.svg"
    options = ("--figure", wait, "--figure", f"queue={queue}")
    status, out, _ = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", *options)
    assert status == 0
    golden("simulate", out.replace("\n", ""))
    assert wait.read_bytes().startswith(b"%PDF")
    assert "<svg" in queue.read_text()
    assert call(capsys, "simulate", log, "--figure", tmp_path / "gantt.png")[0] == 0
    assert (tmp_path / "gantt.png").read_bytes().startswith(b"\x89PNG")


def test_command_line__refuses_figures_that_there_are_not(golden, capsys, log, tmp_path):
    golden("simulate", one_line(*call(capsys, "simulate", log, "--figure", tmp_path / "x.pdf")))
    assert "unsupported file extension" in one_line(*call(capsys, "simulate", log, "--figure", "wait.gif"))
    assert "cannot be written" in one_line(*call(capsys, "simulate", log, "--figure", tmp_path / "none" / "wait.pdf"))
    assert "shows a single run" in one_line(
        *call(capsys, "compare", log, "--figure", tmp_path / "queue.pdf", "--shake", 5, "--replications", 2)
    )


def test_axes__a_notebook_shows_the_figure():
    content, size = figures.wait_distribution(*SCHEDULES)._repr_png_()
    assert content.startswith(b"\x89PNG")
    assert size["width"] == int(96 * figures.WIDTHS["column"])


def test_width__is_a_name_or_inches():
    assert figures.width_in_inches("ieee-column") == 3.5
    assert figures.width_in_inches("3.25") == figures.width_in_inches(3.25) == 3.25
    for wrong in ("ieee", "nan", 0, 50):
        with raises(wt.PolicyError, "unknown_width", "column", "page"):
            figures.width_in_inches(wrong)


def test_bands__lie_around_the_mean_of_the_replications():
    from walltime.comparison.many_runs_page import curves

    kept = wt.replicate(lambda seed: wt.workloads.shake(JOBS, 30, seed), "easy", range(4), keep=curves())
    axes = figures.bands([kept], "wait")
    drawn = axes.lines[0].get_ydata()
    assert np.allclose(drawn, np.mean([pair[0] for pair in kept.kept], axis=0)[: len(drawn)])
    assert len(axes.collections) == 1
    with raises(wt.PolicyError, "unknown_figure"):
        figures.bands([kept], "gantt")
    with raises(wt.PolicyError, "missing_curves"):
        figures.bands([wt.replicate(lambda seed: wt.workloads.shake(JOBS, 30, seed), "easy", range(2))])


def test_nodes__are_no_sliver_in_a_column():
    axes = figures.nodes(ON_NODES, width="column")
    axes.get_figure().draw_without_rendering()
    assert axes.get_position().height * axes.get_figure().get_figheight() > 0.7


def test_ticks__half_a_page_has_them_all():
    labels = [label.get_text() for label in figures.wait_distribution(SCHEDULES[0], width=4.9).get_xticklabels()]
    assert labels[:3] == ["1 s", "10 s", "1 min"]
