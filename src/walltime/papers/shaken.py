"""Schedulers on shaken copies of a log: their means over the seeds, the bands, and the differences seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import mean_interval, paired_difference, percentile_band
from walltime.papers import drawing
from walltime.papers.results import by_column

Array = np.ndarray
SHAKE = 30
"""Seconds by which submissions are shaken, up or down."""
METRIC = "mean_bounded_slowdown"


def of_scheduler(table: Any, words: Mapping[str, Any]) -> Any:
    """The rows of a campaign's table of the scheduler that these words make, by seed."""
    import polars as pl

    settings = {"predictor": None, "believe": "regular", "backfill_order": None, "correction": "tsafrir07"} | dict(words)
    settings = {name: value for name, value in settings.items() if name in table.columns}
    return table.filter(*(pl.col(name).eq_missing(pl.lit(value)) for name, value in settings.items())).sort("seed")


def difference(values: Array, base: Array) -> str:
    """The mean difference of values to the base, seed by seed, with its interval, relative to the base's mean."""
    away = paired_difference(values, base) if len(values) > 1 else mean_interval(np.array([values[0] - base[0]] * 2))
    middle = float(base.mean())
    return f"{100 * away.mean / middle:+.1f} % (+-{100 * away.half_width / middle:.1f})"


def bars(axes: Axes, by_name: Mapping[str, Array]) -> None:
    """A bar for each scheduler, with the band over the seeds."""
    places, bands = np.arange(len(by_name)), [percentile_band(values) for values in by_name.values()]
    spread = np.maximum([[band.mean - band.low for band in bands], [band.high - band.mean for band in bands]], 0)
    means = np.array([band.mean for band in bands])
    axes.bar(places, means, 0.7, color=drawing.GREY, edgecolor=drawing.EDGE, linewidth=0.5)
    axes.errorbar(places, means, spread, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    axes.set_xticks(places, list(by_name), rotation=75, fontsize=6.5, ha="right")
    drawing.from_zero(axes)


def seeds_by_column(by_log: Mapping[str, Mapping[str, Array]]) -> dict[str, list[Any]]:
    """The values of each seed, by log and scheduler, as the data of a chart."""
    rows = [
        (log, name, seed, value)
        for log, by_name in by_log.items()
        for name, values in by_name.items()
        for seed, value in enumerate(values.tolist())
    ]
    return by_column(["log", "scheduler", "seed", METRIC], rows)
