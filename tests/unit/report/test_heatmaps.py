"""Heat maps of the mean wait: what they say is what the schedule says, and they can be read without colour and without eyes."""

import re

import numpy as np
import pytest
from hypothesis import given

import walltime as wt
from tests.pages import outline, render
from tests.strategies import workloads
from walltime.comparison.heatmaps import SHADES, heat_maps, scale_of, short_time, size_grid, size_map, week_grid, week_map

ORIGIN = wt.workload.Origin(unix_start_time=843480031, time_zone="Europe/Stockholm")  # a Monday, 14:40
HOUR, DAY = 3600, 86_400


def schedule(origin: wt.workload.Origin = ORIGIN):
    workload = wt.Workload.from_arrays(
        submit=[0, 60, 120, DAY],
        runtime=[HOUR, HOUR, HOUR, 60],
        requested=[HOUR, HOUR, 2 * HOUR, 60],
        procs=[4, 4, 4, 1],
        machine_procs=4,
        origin=origin,
    )
    return wt.simulate(workload, "easy")


def everybody(one) -> np.ndarray:
    return np.ones(len(one), bool)


def test_size_grid__worked_by_hand():
    grid = size_grid(schedule(), everybody(schedule()))
    assert list(grid.rows) == ["1", "3-4"]
    assert list(grid.columns) == ["up to 10 min", "10 min to 1 h", "1 h to 4 h"]
    assert grid.jobs.tolist() == [[1, 0, 0], [0, 2, 1]]
    assert grid.wait[0, 0] == 0
    assert grid.wait[1, 1] == (HOUR - 60) / 2
    assert grid.wait[1, 2] == 2 * HOUR - 120
    assert np.isnan(grid.wait[0, 1])


def test_week_grid__has_every_hour_of_every_day():
    grid = week_grid(schedule(), everybody(schedule()))
    assert grid is not None
    assert grid.jobs.shape == (7, 24)
    assert {(grid.rows[k], grid.columns[j]): int(grid.jobs[k, j]) for k, j in np.argwhere(grid.jobs)} == {
        ("Mon", "14"): 3,
        ("Tue", "14"): 1,
    }
    assert grid.wait[0, 14] == (0 + HOUR - 60 + 2 * HOUR - 120) / 3
    without = schedule(wt.workload.Origin())
    assert week_grid(without, everybody(without)) is None


def test_grids__leave_out_what_is_not_measured():
    one = schedule()
    grid = size_grid(one, np.array([True, True, False, False]))
    assert grid.jobs.sum() == 2
    assert grid.jobs[1, 2] == 0


def test_maps__say_the_mean_and_the_jobs_in_each_cell():
    one = schedule()
    sizes, week = size_grid(one, everybody(one)), week_grid(one, everybody(one))
    assert week is not None
    said = [text.get_text() for text in size_map(sizes, "EASY", scale_of([sizes])).axes[0].texts]
    assert said == ["0 s", "1", "30 min", "2", "2.0 h", "1"]
    figure = week_map(week, "EASY", scale_of([week]))
    assert ["1.0", "0.0"] in [[text.get_text() for text in axes.texts] for axes in figure.axes]


def test_shades__grow_darker_without_colour():
    red, green, blue, _ = SHADES(np.linspace(0, 1, 50)).T
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    assert (np.diff(grey) < 0).all()


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min"), (5960, "99 min"), (6000, "1.7 h"), (2e5, "2.3 d")]
)
def test_short_time(seconds, said):
    assert short_time(seconds) == said


@pytest.mark.slow
def test_page__has_heat_maps_with_a_description_and_a_table(golden):
    page = render([schedule()])
    assert ">Waits by group</h2>" in page
    assert page.count('aria-label="Heat map') == 3  # the wide one's box has it, too
    golden("compare", outline(page))
    assert not re.search(r'id="(?!first-|size1-|week1-|wait-|slowdown-|time-|gantt1-|caveats|live-|section-)', page)
    assert "by hours and days" not in render([schedule(wt.workload.Origin())])


@pytest.mark.slow
def test_page__has_tables_of_groups_that_the_log_knows(golden):
    users = {"user": np.array([1, 2, 2, 3]), "queue": np.array([1, 1, 1, 2])}
    workload = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10] * 4, procs=[1, 2, 2, 1], machine_procs=2, columns=users)
    page = render([wt.simulate(workload, "fcfs"), wt.simulate(workload, "easy")])
    golden("compare", outline(page))
    assert "Mean wait by queue" in page
    assert "Mean wait by partition" not in page
    assert "mean wait, EASY" in page


@pytest.mark.slow
def test_heat_maps__only_of_the_first_policies():
    parts = str(heat_maps([schedule()] * 5, [everybody(schedule())] * 5))
    assert "4 of 5" in parts
    assert "EASY (4)" in parts
    assert "EASY (5)" not in parts


@given(workloads(max_size=6))
def test_heat_maps__of_any_workload(workload):
    one = wt.simulate(workload, "easy", engine="reference")
    grid = size_grid(one, everybody(one))
    assert grid.jobs.sum() == len(one)
    assert np.nansum(grid.jobs * np.nan_to_num(grid.wait)) == pytest.approx(one.wait.sum())
    low, high = scale_of([grid])
    assert 0 < low < high
