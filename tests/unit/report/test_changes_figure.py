"""The picture of changes in %: an axis of ratios, with ticks that have room."""

import numpy as np
import pytest

from walltime.metrics import Interval
from walltime.report.changes import MOST_TICKS, changes_figure


def interval(mean, low, high):
    return Interval(mean, low, high, "")


def shown(figure):
    """The labels of the ticks on the axis."""
    figure.draw_without_rendering()
    return [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_axis__half_and_twice_are_equally_far_from_no_change():
    figure = changes_figure(["a", "b"], [("", [interval(-50, -60, -40), interval(100, 80, 150)])], "wait")
    axes = figure.axes[0]
    half, none, twice = (axes.transData.transform((ratio, 0))[0] for ratio in (0.5, 1, 2))
    assert twice - none == pytest.approx(none - half)
    assert {"-50 %", "0", "+100 %"} <= set(shown(figure))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_ticks__are_not_too_many_for_a_wide_range():
    figure = changes_figure(["a", "b"], [("", [interval(-98, -99, -95), interval(900_000, 500_000, 990_000)])], "wait")
    assert len(shown(figure)) <= MOST_TICKS
    assert "0" in shown(figure)


def test_bars__marks_of_a_row_share_a_line_without_them():
    series = [("x", [interval(-10, -20, 0)]), ("y", [interval(10, 0, 20)])]
    heights = [
        {float(np.asarray(one.lines[0].get_ydata())[0]) for one in changes_figure(["a"], series, "wait", bars=bars).axes[0].containers}
        for bars in (True, False)
    ]
    assert [len(found) for found in heights] == [2, 1]


def test_change_of_minus_100_percent__is_drawn_at_the_edge():
    figure = changes_figure(["a"], [("", [interval(-100, -120, -50)])], "wait")
    assert figure.axes[0].get_xlim()[0] > 0
