"""Draw the figure of an analysis of estimates: the used fraction, the distributions, and the accuracy."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from walltime.metrics.estimates import FEW_HOURS, OVER, SHORT, accuracy_by_runtime, distribution, use_histogram
from walltime.report.figures import BLUE, COLOURS, DASHES, INK, percent_ticks, share_axes, style, time_ticks

Array = np.ndarray

GREY, ORANGE = "#B8BCC2", "#E69F00"
HEADROOM = 1.25
"""If a peak would flatten all other bars, the scale of the histogram ends at twice the usual height times this factor."""
FLAT = 4
"""Peaks above this multiple of the usual height are cut off, and labelled with their height."""


def estimates_figure(runtime: Array, requested: Array, *, killed: Array | None = None, emax: int | None = None, title: str = "") -> Figure:
    """Draw four panels on the estimates of a log or a model.

    The panels show a histogram of the used fraction of the estimate (mualem01, Fig. 8, left), runtime against estimate up to 2 h (right),
    the distributions of runtimes and estimates (tsafrir06, Fig. 11), and accuracy against runtime (tsafrir06, Fig. 12).

    `runtime`, `requested`: int64 s; `killed`: bool, or None; shape (jobs,). `emax`: the largest estimate, s, which is marked if given.
    """
    with style():
        figure = Figure(figsize=(9.6, 6.8), layout="constrained", facecolor="white")
        ((use, scatter), (spread, by_runtime)) = figure.subplots(2, 2)
        draw_use(use, runtime, requested, killed)
        draw_scatter(scatter, runtime, requested)
        draw_distributions(spread, runtime, requested, emax)
        draw_accuracy(by_runtime, runtime, requested)
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def draw_use(axes: Axes, runtime: Array, requested: Array, killed: Array | None = None) -> None:
    """Draw a histogram of the used percentage of the estimate, by groups of jobs; values over 100 % are one bar at the right."""
    rest = np.ones(len(runtime), bool) if killed is None else ~killed
    brief, others = rest & (runtime < SHORT), rest & (runtime >= SHORT)
    groups = [] if killed is None else [("killed", BLUE, killed)]
    groups += [(f"{'' if killed is None else 'others '}under {SHORT} s", ORANGE, brief), ("all others", GREY, others)]
    places = np.append(np.arange(OVER), OVER + 3)
    base = np.zeros(OVER + 1, np.int64)
    for name, colour, mask in reversed(groups):
        counts = use_histogram(runtime[mask], requested[mask])
        axes.bar(
            places, counts, width=1.0, bottom=base, align="edge", color=colour, label=f"{name} ({np.count_nonzero(mask):,})", linewidth=0
        )
        base = base + counts
    _cut_peaks(axes, places, base)
    over = [places[OVER] + 0.5] if base[OVER] else []
    axes.set_xlim(-1.5, OVER + (5 if over else 1.5))
    axes.xaxis.set_major_locator(FixedLocator([0, 20, 40, 60, 80, 100, *over]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f} %" if x <= 100 else "\nmore"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_title("share of the estimate used")
    axes.set_ylabel("jobs")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], loc="upper center")


def _cut_peaks(axes: Axes, places: Array, heights: Array) -> None:
    """Limit single peaks that would flatten all other bars, and label them with their heights."""
    usual = int(np.sort(heights[:OVER])[-6])
    top = int(heights.max())
    if top <= FLAT * max(usual, 1):
        axes.set_ylim(0, 1.35 * max(top, 1))
        return
    limit = HEADROOM * 2 * max(usual, 1)
    axes.set_ylim(0, limit)
    lines = {True: 0, False: 0}
    for k in np.flatnonzero(heights > limit):
        left = bool(places[k] < 50)
        axes.annotate(
            f"{heights[k]:,}",
            (places[k] + 0.5, limit),
            xytext=(7 if left else -7, -8 - 11 * lines[left]),
            textcoords="offset points",
            ha="left" if left else "right",
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
        lines[left] += 1


def draw_scatter(axes: Axes, runtime: Array, requested: Array, limit: int = FEW_HOURS) -> None:
    """Draw runtime against estimate, with a dot for each job with an estimate of at most `limit` s."""
    few = requested <= limit
    axes.plot([0, limit / 60], [0, limit / 60], color=INK, linewidth=0.6, alpha=0.5)
    crowd = min(max(4000 / max(int(np.count_nonzero(few)), 1), 0.06), 0.6)
    look: dict[str, Any] = {"linestyle": "", "marker": ".", "markersize": 2.2 if crowd < 0.6 else 4, "markeredgewidth": 0, "color": BLUE}
    axes.plot(requested[few] / 60, runtime[few] / 60, alpha=crowd, rasterized=True, **look)
    axes.set_xlim(0, limit / 60 * 1.02)
    axes.set_ylim(0, limit / 60 * 1.02)
    axes.xaxis.set_major_locator(FixedLocator(list(range(0, limit // 60 + 1, 15))))
    axes.yaxis.set_major_locator(FixedLocator(list(range(0, limit // 60 + 1, 30))))
    axes.set_xlabel("estimate (min)")
    axes.set_ylabel("runtime (min)")
    over = int(np.count_nonzero(runtime[few] > requested[few]))
    longer = f"; {over:,} ran longer" if over else ""
    axes.set_title(f"the {np.count_nonzero(few):,} jobs with estimates of at most {limit // 3600} h{longer}")


def draw_distributions(axes: Axes, runtime: Array, requested: Array, emax: int | None = None) -> None:
    """Draw the cumulative distributions of runtimes and estimates; steps are popular values."""
    high = max(int(max(runtime.max(), requested.max())), 60)
    for name, values, colour, dash in (("runtime", runtime, COLOURS[1], DASHES[1]), ("estimate", requested, BLUE, DASHES[0])):
        x, percent = distribution(np.maximum(values, 1))
        x, percent = np.concatenate((x[:1], x, [high])), np.concatenate(([0.0], percent, [100.0]))
        axes.step(x, percent, where="post", label=name, color=colour, linestyle=dash, linewidth=1.5)
    share_axes(axes, high * 1.1)
    axes.set_ylabel("")
    time_ticks(axes)
    if emax is not None:
        axes.axvline(emax, color=INK, linewidth=0.6, linestyle=":")
        place: dict[str, Any] = {"xytext": (-4, 0), "textcoords": "offset points", "ha": "right", "va": "bottom"}
        axes.annotate(f"largest estimate\n{short_time(emax)}", (emax, 4), fontsize=8, **place)
    axes.set_title("share of jobs with at most this time")
    axes.legend(loc="upper left")


def draw_accuracy(axes: Axes, runtime: Array, requested: Array) -> None:
    """Draw the mean accuracy of each hundredth of the jobs, in ascending order of runtime."""
    mean_runtime, ratio = accuracy_by_runtime(runtime, requested)
    count = len(ratio)
    middle = (np.arange(count) + 0.5) * 100 / count
    axes.plot(middle, 100 * ratio, color=BLUE, linewidth=1.3, marker="o", markersize=2.5)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    ticks = np.array([0, 20, 40, 60, 80, 100])
    shown = mean_runtime[np.minimum(ticks * count // 100, count - 1)]
    axes.set_xticks(ticks, [f"{t} %\n{short_time(s)}" for t, s in zip(ticks.tolist(), shown.tolist(), strict=True)])
    percent_ticks(axes.yaxis)
    axes.set_xlabel("jobs from the shortest, and their runtime")
    axes.set_title("mean accuracy (runtime / estimate)")
    axes.grid()


def short_time(seconds: float) -> str:
    """Format a time in one unit, with two significant digits.

    >>> [short_time(s) for s in (1.3, 41, 2816, 12_600, 64_800, 216_000, 1e6)]
    ['1.3 s', '41 s', '47 min', '3.5 h', '18 h', '60 h', '12 d']
    """
    for unit, name, most in ((1, "s", 100), (60, "min", 100), (3600, "h", 100)):
        if seconds < unit * most:
            value = seconds / unit
            return f"{value:.0f} {name}" if value >= 9.95 or value == round(value) else f"{value:.1f} {name}"
    return f"{seconds / 86_400:,.0f} d"
