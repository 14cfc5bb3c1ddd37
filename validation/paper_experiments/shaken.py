"""Schedulers on shaken copies of a log: means over the seeds, bands, and differences seed by seed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import mean_interval, paired_difference, percentile_band
from walltime.papers import drawing
from walltime.papers.mualem01.experiment import SHAKE
from walltime.papers.results import Entry, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

Array = np.ndarray
T = TypeVar("T", bound=Hashable)
METRIC = "mean_bounded_slowdown"
GREY, EDGE = "#B8BCC2", "#20242A"
"""Colours of bars and of their edges."""


def shaken_runs(
    study: Study, label: str, subject: Subject, schedulers: Mapping[T, Mapping[str, Any]], *, by: str | None = None, **options: Any
) -> dict[T, Any]:
    """Simulate schedulers on shaken copies of a log; return a data frame of the rows of each, by seed, or `by` a grouping of jobs.

    `schedulers`: the parameters of a campaign that make each one. `options`: further arguments of `Study.cells`.
    """
    import polars as pl

    axes = [{"trace": str(subject.file.resolve()), **words} for words in schedulers.values()]
    table = study.cells(f"{subject.name}: {label}", subject, axes, [{"shake": SHAKE}], by=by, **options)
    usual = {"predictor": None, "predictions_for": "regular", "backfill_order": None, "correction": "tsafrir07"}
    rows = {}
    for name, words in schedulers.items():
        settings = {key: value for key, value in (usual | dict(words)).items() if key in table.columns}
        rows[name] = table.filter(*(pl.col(key).eq_missing(pl.lit(value)) for key, value in settings.items())).sort("seed")
    return rows


def band_entries(values: Array) -> list[Entry]:
    """Return two entries of a row: the mean over the seeds, and the 5th to the 95th percentile."""
    band = percentile_band(values)
    return [Value(band.mean, digits=1), f"{band.low:,.1f} to {band.high:,.1f}"]


def difference(values: Array, base: Array) -> str:
    """Return the mean difference of values to the base, seed by seed, with its interval, relative to the base's mean."""
    away = paired_difference(values, base) if len(values) > 1 else mean_interval(np.array([values[0] - base[0]] * 2))
    middle = float(base.mean())
    return f"{100 * away.mean / middle:+.1f} % (+-{100 * away.half_width / middle:.1f})"


def draw_bands(axes: Axes, by_name: Mapping[str, Array], _row: str) -> None:
    """Draw a bar for each scheduler, with the band over the seeds."""
    places, bands = np.arange(len(by_name)), [percentile_band(values) for values in by_name.values()]
    spread = np.maximum([[band.mean - band.low for band in bands], [band.high - band.mean for band in bands]], 0)
    means = np.array([band.mean for band in bands])
    axes.bar(places, means, 0.7, color=GREY, edgecolor=EDGE, linewidth=0.5)
    axes.errorbar(places, means, spread, fmt="none", ecolor="black", elinewidth=1, capsize=2)
    axes.set_xticks(places, list(by_name), rotation=75, fontsize=6.5, ha="right")
    drawing.from_zero(axes)


def seeds_by_column(by_log: Mapping[str, Mapping[str, Array]]) -> dict[str, list[Any]]:
    """Return the values of each seed, by log and scheduler, as the data of a chart."""
    rows = [
        (log, name, seed, value)
        for log, by_name in by_log.items()
        for name, values in by_name.items()
        for seed, value in enumerate(values.tolist())
    ]
    return by_column(["log", "scheduler", "seed", METRIC], rows)
