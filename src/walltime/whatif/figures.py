"""The figures of a what-if: the differences in mean wait with their intervals, and the distribution of waits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from walltime.metrics.intervals import SHOWN_LEVEL
from walltime.report.page import Chart, Drawing
from walltime.whatif.effects import Effect, signed
from walltime.whatif.simulations import TODAY
from walltime.whatif.whatif import WhatIf

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRUE_CHANGE = f"true change, {SHOWN_LEVEL}"
MARGIN = 0.04
"""Margin beyond the outermost marks of the first figure, as a share of its width."""
MOST_CURVES = 6
FIRST = 6.2
"""Width of the first figure, inches, so that its text is legible on a phone."""


def drawings(answer: WhatIf) -> list[Drawing]:
    """Draw the differences in mean wait with their intervals, and the distribution of waits under each change."""
    values = "; ".join(f"{effect.name}: {signed(effect.differences['mean_wait'].difference)}" for effect in answer.ranked)
    meaning = f"Differences in mean wait from today: {values}."
    if all(effect.record is not None for effect in answer.ranked):
        figure, caption = (
            true_changes_figure(answer),
            f"Expected change of the mean wait, with the {SHOWN_LEVEL} interval of the true change.",
        )
    else:
        figure = differences_figure(answer)
        ones = [effect.differences["mean_wait"] for effect in answer.ranked]
        lines = ["thick: sampling of weeks"] if any(math.isfinite(one.low) for one in ones) else []
        lines += ["thin: shaken copies of the log"] if any(math.isfinite(one.scatter) for one in ones) else []
        caption = "Difference in mean wait from today" + (f", with {SHOWN_LEVEL} intervals ({'; '.join(lines)})." if lines else ".")
        caption += " Grey: the calibration error." if _shown_error(answer) else ""
    first = f", of today and the first {MOST_CURVES - 1} changes" if len(answer.ranked) >= MOST_CURVES else ""
    curves = f"Curves of the share of jobs that wait less than a given time: {values}."
    grid, shares = _wait_shares(answer)
    chart = Chart("Wait", grid.tolist(), shares, "%", most=100)
    told = f"Share of jobs that wait less than the time on the horizontal axis{first}."
    return [
        Drawing(figure, "differences", meaning, caption, wide=False, rows=list(map(_row_text, answer.ranked))),
        Drawing(waits_figure(answer), "waits", curves, told, live=[chart]),
    ]


def _row_text(effect: Effect) -> str:
    """Return the tooltip of a change: its difference with both intervals."""
    one = effect.differences["mean_wait"]
    lines = [effect.name, f"difference in mean wait {signed(one.difference)}"]
    lines += [] if effect.record is None else [f"{TRUE_CHANGE}: {effect.record.interval}"]
    if math.isfinite(one.low):
        lines.append(f"sampling of weeks: {signed(one.low)} to {signed(one.high)}")
    if math.isfinite(one.scatter):
        lines.append(f"shaken copies: {signed(one.difference - one.scatter)} to {signed(one.difference + one.scatter)}")
    return "\n".join(lines)


def _widest(answer: WhatIf) -> float:
    """Return the largest absolute difference in mean wait or end of its interval, s."""
    ones = [effect.differences["mean_wait"] for effect in answer.ranked]
    return max((abs(value) for one in ones for value in (one.difference, one.low, one.high) if math.isfinite(value)), default=1.0)


def _shown_error(answer: WhatIf) -> float:
    """Return the calibration error, s, for the figure; 0 if it is unknown or too large to draw."""
    error = 0.0 if answer.calibration is None else answer.calibration.overall.threshold
    return error if error <= 2 * _widest(answer) else 0.0


def true_changes_figure(answer: WhatIf) -> Figure:
    """Draw the expected relative change of the mean wait with each change, and the interval of the true change."""
    from walltime.report.figures import BLUE, percent_ticks, rows_figure

    names = [effect.name for effect in answer.ranked]
    with rows_figure(names, "change of the mean wait from today", 0.42, 1.0, FIRST) as (figure, axes):
        for k, effect in enumerate(answer.ranked):
            if (one := effect.record) is not None and not effect.nothing:
                axes.plot([100 * one.low, 100 * one.high], [k, k], color=BLUE, linewidth=4, alpha=0.6, solid_capstyle="butt")
                axes.plot([100 * one.expected], [k], marker="o", color=BLUE, markersize=6)
        low, high = axes.get_xlim()
        low, high = min(low, 0.0), max(high, 0.0)
        axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))
        axes.axvline(0, color="#808890", linewidth=0.8)
        percent_ticks(axes.xaxis)
    return figure


def differences_figure(answer: WhatIf) -> Figure:
    """Draw the difference in mean wait of each change with its intervals, and the calibration error as a band."""
    from walltime.report.figures import BLUE, INK, rows_figure, unit_of

    ones = [effect.differences["mean_wait"] for effect in answer.ranked]
    divisor, unit = unit_of(_widest(answer))
    names = [effect.name for effect in answer.ranked]
    with rows_figure(names, f"difference in mean wait from today, {unit}", 0.42, 1.0, FIRST) as (figure, axes):
        for k, one in enumerate(ones):
            if math.isfinite(one.scatter):
                ends = [(one.difference - one.scatter) / divisor, (one.difference + one.scatter) / divisor]
                axes.plot(ends, [k, k], color=INK, linewidth=1)
            if math.isfinite(one.low):
                axes.plot([one.low / divisor, one.high / divisor], [k, k], color=BLUE, linewidth=4, alpha=0.6, solid_capstyle="butt")
            axes.plot([one.difference / divisor], [k], marker="o", color=BLUE, markersize=6)
        low, high = axes.get_xlim()
        if reach := _shown_error(answer) / divisor:
            axes.axvspan(-reach, reach, color="#808890", alpha=0.18, linewidth=0)
            low, high = min(low, -reach), max(high, reach)
        low, high = min(low, 0.0), max(high, 0.0)
        axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))
        axes.axvline(0, color="#808890", linewidth=0.8)
    return figure


def _wait_shares(answer: WhatIf) -> tuple[np.ndarray, dict[str, Sequence[float]]]:
    """Return waits, s, and, for each setting, the percentage of measured jobs that wait less."""
    ids = answer.today.workload.job_id[answer.measured]
    settings = [(TODAY, answer.today), *((effect.name, effect.schedule) for effect in answer.ranked)][:MOST_CURVES]
    waits = [(label, schedule.wait[np.isin(schedule.workload.job_id, ids)]) for label, schedule in settings]
    longest = max(int(wait.max(initial=1)) for _, wait in waits)
    grid = np.geomspace(1, max(longest + 1, 60), 300)
    return grid, {label: (100 * np.searchsorted(np.sort(wait), grid, "left") / max(len(wait), 1)).tolist() for label, wait in waits}


def waits_figure(answer: WhatIf) -> Figure:
    """Draw the cumulative distribution of the wait of the measured jobs under each setting."""
    from matplotlib.figure import Figure

    from walltime.report.figures import look, share_axes, shortened, style, time_ticks

    grid, shares = _wait_shares(answer)
    with style():
        figure = Figure(figsize=(9.2, 3.9), layout="constrained")
        axes = figure.subplots()
        for k, (label, share) in enumerate(shares.items()):
            axes.plot(grid, share, label=shortened(label), **look(k))
        share_axes(axes, grid[-1], "wait less than")
        time_ticks(axes)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure
